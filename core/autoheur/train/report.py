"""What a report on a heuristic says beyond its figures: other thresholds, groups of problems, the worst decisions."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from autoheur.dataset.dataset import Dataset
from autoheur.heuristic.artifact import Artifact
from autoheur.train.apply import Applied, apply, learned_from
from autoheur.train.examples import Filter
from autoheur.train.figures import Row, best_choice
from autoheur.train.noise import good_enough
from autoheur.types import Value

MOST_STEPS = 400
"""Thresholds in a trade-off: as many as a curve can show."""

MOST_GROUPS = 12
"""Categories of a feature with a line of their own; a feature with more says little about each."""


@attrs.frozen
class Step:
    """What the policy would leave with another ``threshold``; all are shares.

    ``coverage``: of problems decided. ``saved``: of benchmarks that nobody has to run. ``wrong``: of problems whose
    best choice is not left. ``too_slow``: of problems with no choice left that is good enough, which is within the
    tolerance of the best or the noise.
    """

    threshold: float
    coverage: float
    saved: float
    wrong: float
    too_slow: float


@attrs.frozen
class Mistake:
    """A decision for a choice that is not the best; ``regret`` is its time over that of the best."""

    problem: dict[str, Value]
    chosen: str
    best: str
    regret: float
    confidence: float
    times_ms: dict[str, float]


@attrs.frozen
class Section:
    """The report on one dataset. ``groups`` holds, per categorical feature, the figures of each category's problems;
    ``learned_from`` says that the dataset is no test, since the heuristic was learned from it."""

    row: Row
    learned_from: bool
    steps: tuple[Step, ...]
    groups: dict[str, tuple[Row, ...]]
    mistakes: tuple[Mistake, ...]


def report_on(
    artifact: Artifact, name: str, dataset: Dataset, tolerance: float, rule: Filter | None = None, mistakes: int = 20
) -> Section:
    """Report on an artifact's decisions for a dataset, called ``name``, with its worst ``mistakes``.

    Raises:
        InputError: see :func:`~autoheur.train.apply.apply`.
    """
    applied = apply(artifact, dataset, rule)
    return Section(
        row=applied.judge(artifact, name, tolerance),
        learned_from=learned_from(artifact, dataset),
        steps=tuple(_steps(artifact, applied, tolerance)),
        groups=dict(_groups(artifact, applied, tolerance)),
        mistakes=tuple(_mistakes(artifact, applied, mistakes)),
    )


def _steps(artifact: Artifact, applied: Applied, tolerance: float) -> Iterator[Step]:
    """The trade-off between saving benchmarks and losing the best choice, from the highest threshold on."""
    times, noise = applied.selection.times, applied.selection.noise
    found = applied.shortlists(artifact)
    best = np.zeros(times.shape, bool)
    np.put_along_axis(best, best_choice(times)[:, None], True, axis=1)
    good = good_enough(times, noise, tolerance)
    ends = np.where(applied.applies[:, None], found.ends, -np.inf)
    wrong, too_slow = (np.where(applied.applies, found.threshold_needed(each), -np.inf) for each in (best, good))
    if not (ends > -np.inf).any():
        return
    offered = np.isfinite(times).sum(axis=1)
    # A threshold leaves as many as the next end below it does: one more, below all, leaves the least.
    limits = np.unique(ends[np.isfinite(ends)])[::-1]
    limits = np.append(limits, (limits[-1] if len(limits) else 0.0) - 1)
    for limit in limits[np.unique(np.linspace(0, len(limits) - 1, MOST_STEPS).astype(int))].tolist():
        left = offered - (ends > limit).sum(axis=1)
        yield Step(
            threshold=limit,
            coverage=float((left == 1).mean()),
            saved=1 - float(np.where(left == 1, 0, left).sum() / offered.sum()),
            wrong=float((wrong > limit).mean()),
            too_slow=float((too_slow > limit).mean()),
        )


def _groups(artifact: Artifact, applied: Applied, tolerance: float) -> Iterator[tuple[str, tuple[Row, ...]]]:
    for feature in artifact.features:
        if feature.kind != "categorical" or feature.name not in applied.selection.columns:
            continue
        column = applied.selection.columns[feature.name]
        categories = sorted(set(column.tolist()))
        if 1 < len(categories) <= MOST_GROUPS:
            rows = (applied.judge(artifact, category, tolerance, column == category) for category in categories)
            yield feature.name, tuple(rows)


def _mistakes(artifact: Artifact, applied: Applied, count: int) -> Iterator[Mistake]:
    selection = applied.selection
    times = selection.times
    found = applied.shortlists(artifact)
    best = best_choice(times)
    rows = np.arange(len(times))
    taken = found.kept.argmax(axis=1)
    regret = times[rows, taken] / times[rows, best]
    wrong = np.flatnonzero(found.decided & (regret > 1))
    for row in wrong[np.argsort(-regret[wrong], kind="stable")][:count]:
        measured = zip(selection.choices, times[row].tolist(), strict=True)
        yield Mistake(
            problem={feature.name: selection.columns[feature.name].item(row) for feature in artifact.raw_features},
            chosen=selection.choices[taken[row]],
            best=selection.choices[best[row]],
            regret=float(regret[row]),
            confidence=float(found.confidence[row]),
            times_ms={choice: time_ms for choice, time_ms in measured if np.isfinite(time_ms)},
        )
