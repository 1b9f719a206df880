"""The protocol published with PyTorch's AutoHeuristic (torchgen/_autoheuristic, pull requests 128643 and later)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from autoheur.errors import PluginError
from autoheur.heuristic.model import Forest, Policy, Statistic
from autoheur.heuristic.reference import shortlists
from autoheur.learning import Examples, Floats
from autoheur.train.crossfit import score
from autoheur.train.examples import PUBLISHED
from autoheur.train.figures import Row, best_choice, judge
from autoheur.train.protocols.contract import Data, Options, Outcome
from autoheur.train.search import Candidate, Progress, fit, label, run_all

ALWAYS = 0.0
"""The threshold where no prediction on val is wrong. (The published script has NaN there, which always decides too.)"""


def safe_threshold(scores: Floats, times: Floats, statistic: Statistic) -> float:
    """The greatest confidence among wrong predictions; :data:`ALWAYS` where none is wrong.

    ``scores`` and ``times`` are P x C. A decision must be *above* the threshold, so on these problems none is wrong.
    """
    found = shortlists(scores, np.isfinite(times), statistic, ALWAYS)
    wrong = found.first != best_choice(times)
    return float(found.confidence[wrong].max()) if wrong.any() else ALWAYS


@attrs.frozen(eq=False)
class _Trial:
    """One candidate, fitted and judged."""

    candidate: Candidate
    forest: Forest
    policy: Policy
    rows: Sequence[Row]

    @property
    def correct(self) -> int:
        return next(row.correct for row in self.rows if row.dataset == "val")


class AutoHeuristic:
    """Fit on train, set the threshold so that no decision on val is wrong, keep what is most often correct there."""

    name = "autoheuristic"
    description = "the published method: the threshold that makes no decision on val wrong"
    rule = PUBLISHED
    default_learner = "regression_tree"

    def run(self, data: Data, candidates: Sequence[Candidate], options: Options, progress: Progress | None) -> Outcome:
        """Run all candidates; of several equally often correct the first is chosen."""
        results = run_all(lambda candidate: _try(candidate, data, options), candidates, progress, label)
        trials = [result for result in results if not isinstance(result, PluginError)]
        failed = [result for result in results if isinstance(result, PluginError)]
        if not trials:
            raise failed[0]
        best = max(trials, key=lambda trial: trial.correct)
        learner, parameters = best.candidate
        rows = [attrs.evolve(row, chosen=trial is best) for trial in trials for row in trial.rows]
        notes = [f"{error}; it is left out" for error in failed]
        if best.policy.threshold == ALWAYS:
            notes.append(f"{label(best.candidate)}: no prediction on val is wrong, so every problem is decided")
        return Outcome(learner, parameters, best.forest, best.policy, rows, notes)


def _try(candidate: Candidate, data: Data, options: Options) -> _Trial:
    learner, parameters = candidate
    forest = fit(candidate, data.train)
    scores = {name: score(forest, examples, data.train.choices) for name, examples in data.named().items()}
    # Nothing but the threshold keeps a published heuristic from answering.
    policy = Policy(safe_threshold(scores["val"], data.val.times, forest.statistic), guard=False)

    def row(name: str, examples: Examples) -> Row:
        return judge(
            scores[name],
            examples.times,
            forest.statistic,
            policy.threshold,
            dataset=name,
            learner=learner.name,
            params=parameters,
            tolerance=options.tolerance,
            noise=examples.noise,
        )

    return _Trial(candidate, forest, policy, [row(name, examples) for name, examples in data.named().items()])
