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
    """What the policy would decide with another ``threshold``: shares of all problems.

    ``wrong`` counts decisions for another choice than the best, ``too_slow`` those beyond tolerance and noise.
    """

    threshold: float
    coverage: float
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
    """The trade-off between deciding much and deciding well, from the surest decision on."""
    times = applied.selection.times
    found = applied.shortlists(artifact)
    rows = np.arange(len(times))
    regret = times[rows, found.first] / np.nanmin(times, axis=1)
    slow = ~good_enough(times, applied.selection.noise, tolerance)[rows, found.first]
    asked = np.flatnonzero(applied.applies & ~np.isnan(found.confidence))
    order = asked[np.argsort(-found.confidence[asked], kind="stable")]
    confidence = found.confidence[order]
    wrong, beyond = np.cumsum(regret[order] > 1), np.cumsum(slow[order])
    # Equal confidences are decided together: a step ends where the next confidence is another one.
    ends = np.flatnonzero(np.append(confidence[1:] != confidence[:-1], True)) if len(order) else np.array([], np.intp)
    for end in ends[np.unique(np.linspace(0, len(ends) - 1, MOST_STEPS).astype(int))] if len(ends) else ends:
        share = 1 / len(times)
        yield Step(float(confidence[end]), (end + 1) * share, wrong[end] * share, beyond[end] * share)


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
