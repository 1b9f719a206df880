"""The default protocol: cross-fitting, and a threshold with a bound on the rate of wrong decisions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from autoheur.heuristic.model import Policy
from autoheur.heuristic.reference import Shortlists, shortlists
from autoheur.learning import Examples, Mask, concatenate
from autoheur.train import bounds, noise
from autoheur.train.crossfit import CrossFit, cross_fit, first_of_each, folds, score
from autoheur.train.examples import UNFILTERED
from autoheur.train.figures import Row, best_choice, judge, saved_share
from autoheur.train.preference import Cost, prefer
from autoheur.train.protocols.contract import Data, Options, Outcome
from autoheur.train.search import Candidate, Progress, label

MAX_WRONG_RATE = 0.001
"""The bound on the rate of wrong decisions where none is asked for and the data can support it."""

LOOSEST_RATE = 0.2
"""Where none is asked for and the data cannot support :data:`MAX_WRONG_RATE`, bounds up to this one take its place."""


@attrs.frozen
class Risk:
    """How many wrong decisions out of fold are allowed, and what that shows.

    ``allowed`` wrong among ``problems`` bound the rate by ``rate``; ``None`` where the data supports no decisions at
    all. ``note`` tells the user where that is not what was asked for.
    """

    problems: int
    rate: float
    allowed: int | None
    note: str | None = None


def plan(problems: int, options: Options) -> Risk:
    """Work out what ``problems`` can show.

    Where no rate is asked for and the usual one leaves no room for a wrong decision, it is raised until there is room
    for one: with none, a single outlier could prevent every decision.
    """
    confidence = options.confidence
    rate = MAX_WRONG_RATE if options.max_wrong_rate is None else options.max_wrong_rate
    allowed = bounds.allowed_wrong(problems, rate, confidence)
    asked = options.max_wrong_rate is not None
    if allowed is not None and (asked or allowed > 0):
        return Risk(problems, rate, allowed)
    needed = bounds.problems_needed(rate, confidence, 0 if asked else 1)
    supported = bounds.upper_bound(1, problems, confidence)
    few = (
        f"{problems:,} problems cannot show with {options.confidence:.0%} confidence that at most {rate:.3%} are "
        f"decided wrongly: that takes {needed:,}"
    )
    if supported > LOOSEST_RATE:
        return Risk(problems, rate, None, f"{few}. The heuristic decides nothing; measure more problems")
    if asked:
        hint = f"measure more problems, or ask for --max-wrong-rate {_rounded_up(supported)}, which they support"
        return Risk(problems, rate, None, f"{few}. The heuristic decides nothing; {hint}")
    return Risk(problems, supported, 1, f"{few}. The bound is {supported:.2%} instead")


def _rounded_up(rate: float) -> float:
    """Two significant digits, rounded up, so that asking for it works."""
    digits = 1 - math.floor(math.log10(rate))
    scale = 10.0**digits
    return round(math.ceil(rate * scale) / scale, digits)


@attrs.frozen(eq=False)
class _Trial:
    """One cross-fitted candidate with its policy; ``shortlists`` and ``saved`` are out of fold."""

    fit: CrossFit
    policy: Policy
    shortlists: Shortlists
    saved: float
    cost: Cost

    @property
    def coverage(self) -> float:
        return float(self.shortlists.decided.mean())


class Calibrated:
    """Cross-fit on train and val together and set the threshold by an exact bound on the rate of mistakes.

    A mistake is a problem whose shortlist holds no choice that is good enough: with two choices, a wrong decision. The
    scores that calibrate come from models that have not seen the problem; the artifact's model is fitted to all of
    them, and the threshold is handed on to it: an approximation that docs/calibration.md checks. The rows for train and
    val are out-of-fold figures.
    """

    name = "calibrated"
    description = "cross-fitting, and the threshold that bounds the rate of mistakes"
    rule = UNFILTERED
    default_learner = "extra_trees"

    def run(self, data: Data, candidates: Sequence[Candidate], options: Options, progress: Progress | None) -> Outcome:
        """Run all candidates; of those that save about the most benchmarks the cheapest is chosen."""
        examples = concatenate([data.train, data.val])
        examples = attrs.evolve(examples, weights=noise.weights(examples.times, examples.noise))
        counts = noise.resolved(examples.times, examples.noise, options.tolerance) & first_of_each(examples)
        risk = plan(int(counts.sum()), options)
        parts = folds(examples, options.seed)
        fitted, failed = cross_fit(examples, candidates, parts, progress)
        trials = [_calibrate(fit, examples, counts, risk, options) for fit in fitted]
        best, why = prefer([(label(trial.fit.candidate), trial.saved, trial.cost) for trial in trials])
        rows = [
            row for position, trial in enumerate(trials) for row in _rows(trial, data, options, chosen=position == best)
        ]
        chosen = trials[best]
        learner, parameters = chosen.fit.candidate
        notes = [*failed, *_notes(examples, counts, risk, options, len(parts))]
        if why:
            alone = 1 - (1 - options.confidence) / len(trials)
            notes += [
                why,
                f"the bound holds for each candidate taken alone; --confidence {alone:.4g} makes it hold for the best "
                f"of {len(trials)}",
            ]
        evidence = _evidence(chosen, risk, len(parts))
        return Outcome(learner, parameters, chosen.fit.forest, chosen.policy, rows, notes, evidence)


def _good(examples: Examples, tolerance: float) -> Mask:
    """Which choices are no mistake (P x C); at a tolerance of 1 as the published figures count them."""
    if tolerance == 1:
        best: Mask = np.arange(len(examples.choices)) == best_choice(examples.times)[:, None]
        return best
    return noise.good_enough(examples.times, examples.noise, tolerance)


def _calibrate(fit: CrossFit, examples: Examples, counts: Mask, risk: Risk, options: Options) -> _Trial:
    offered = np.isfinite(examples.times)
    statistic = fit.forest.statistic
    threshold = bounds.NEVER
    if risk.allowed is not None:
        ranked = shortlists(fit.scores, offered, statistic, threshold)
        needed = ranked.threshold_needed(_good(examples, options.tolerance))[counts]
        threshold = bounds.threshold_for(needed, ranked.confidence, risk.allowed)
    found = shortlists(fit.scores, offered, statistic, threshold)
    saved = saved_share(found, offered) or 0.0
    return _Trial(fit, Policy(threshold, guard=True), found, saved, Cost.of(fit.forest, examples))


def _rows(trial: _Trial, data: Data, options: Options, chosen: bool) -> list[Row]:
    learner, parameters = trial.fit.candidate
    middle = len(data.train)
    out_of_fold = {"train": trial.fit.scores[:middle], "val": trial.fit.scores[middle:]}

    def row(name: str, examples: Examples) -> Row:
        scores = out_of_fold[name] if name in out_of_fold else score(trial.fit.forest, examples, data.train.choices)
        return judge(
            scores,
            examples.times,
            trial.fit.forest.statistic,
            trial.policy.threshold,
            dataset=name,
            learner=learner.name,
            params=parameters,
            tolerance=options.tolerance,
            noise=examples.noise,
            chosen=chosen,
            applies=data.within.get(name),
            trusted=data.trusted.get(name),
        )

    return [row(name, examples) for name, examples in data.named().items()]


def _notes(examples: Examples, counts: Mask, risk: Risk, options: Options, parts: int) -> list[str]:
    meaning = "not the quickest" if options.tolerance == 1 else f"slower than {options.tolerance:g} times the best"
    notes = [f"train and val figures are out of fold: {parts} models, each judged on the problems it has not seen"]
    if not counts.all():
        hidden = int((~counts).sum())
        notes.append(
            f"{hidden:,} of {len(examples):,} problems do not count in the bound: they come twice, or the noise of "
            f"their measurements hides differences of {options.tolerance:g}"
        )
    if risk.note:
        notes.append(risk.note)
    if risk.allowed is not None:
        notes.append(
            f"at most {risk.allowed} wrong ({meaning}) among {risk.problems:,} problems: fewer than {risk.rate:.2%} "
            f"wrong of all problems like these, with {options.confidence:.0%} confidence"
        )
    return notes


def _evidence(trial: _Trial, risk: Risk, parts: int) -> dict[str, Any]:
    """What the artifact's provenance says of its calibration; all of it out of fold."""
    return {
        "problems": risk.problems,
        "folds": parts,
        "allowed_wrong": risk.allowed,
        "max_wrong_rate": risk.rate,
        "coverage": trial.coverage,
        "benchmarks_saved": trial.saved,
    }
