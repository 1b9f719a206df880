"""The protocol published with PyTorch's AutoHeuristic (torchgen/_autoheuristic, pull requests 128643 and later)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from autoheur.heuristic.model import Policy
from autoheur.train.evaluation import Row, decide_all, judge
from autoheur.train.examples import PUBLISHED
from autoheur.train.learner import Examples, FittedModel, Floats
from autoheur.train.protocol import Data, Options, Outcome
from autoheur.train.search import Candidate, Progress, label, run_all

ALWAYS = 0.0
"""The threshold where no prediction on val is wrong. (The published script has NaN there, which always decides too.)"""


def safe_threshold(scores: Floats, times: Floats, policy: Policy) -> float:
    """The greatest confidence among wrong predictions; :data:`ALWAYS` where none is wrong.

    ``scores`` and ``times`` are P x C; the threshold of ``policy`` is not looked at. A decision must be *above* the
    threshold, so on these problems none is wrong.
    """
    available = np.isfinite(times)
    decisions = decide_all(scores, available, policy)
    wrong = decisions.choice != np.where(available, times, np.inf).argmin(axis=1)
    return float(decisions.confidence[wrong].max()) if wrong.any() else ALWAYS


@attrs.frozen(eq=False)
class _Trial:
    """One candidate, fitted and judged."""

    candidate: Candidate
    model: FittedModel
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
        trials = run_all(lambda candidate: _try(candidate, data, options), candidates, progress, label)
        best = max(trials, key=lambda trial: trial.correct)
        learner, parameters = best.candidate
        rows = [attrs.evolve(row, chosen=trial is best) for trial in trials for row in trial.rows]
        notes = []
        if best.policy.threshold == ALWAYS:
            notes.append(f"{label(best.candidate)}: no prediction on val is wrong, so every problem is decided")
        return Outcome(learner, parameters, best.model, best.policy, rows, notes)


def _try(candidate: Candidate, data: Data, options: Options) -> _Trial:
    learner, parameters = candidate
    model = learner.fit(data.train, parameters)
    scores = {name: model.scores(examples.matrix) for name, examples in data.named().items()}
    # Nothing but the threshold keeps a published heuristic from answering.
    policy = Policy(learner.statistic, ALWAYS, guard=False)
    policy = attrs.evolve(policy, threshold=safe_threshold(scores["val"], data.val.times, policy))

    def row(name: str, examples: Examples) -> Row:
        return judge(
            scores[name],
            examples.times,
            policy,
            dataset=name,
            learner=learner.name,
            params=parameters,
            tolerance=options.tolerance,
            noise=examples.noise,
        )

    return _Trial(candidate, model, policy, [row(name, examples) for name, examples in data.named().items()])
