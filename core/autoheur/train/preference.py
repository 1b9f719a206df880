"""Choosing among calibrated candidates: what they save first, then size, then speed."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from autoheur.heuristic.model import Forest
from autoheur.heuristic.reference import comparisons
from autoheur.learning import Examples
from autoheur.train.examples import questions

SLACK = 0.02
"""Shares this close are taken for equal: a few problems set a threshold, and it varies by about as much."""

_SAMPLE = 500


@attrs.frozen
class Cost:
    """What a model costs: its ``leaves`` (generated code grows with them), and the ``comparisons`` of one decision."""

    leaves: int
    comparisons: float

    @staticmethod
    def of(forest: Forest, examples: Examples) -> Cost:
        """Count; the comparisons are the mean over some of the examples."""
        leaves = sum(feature < 0 for tree in forest.trees for feature in tree.feature)
        sample = questions(examples.take(np.arange(0, len(examples), max(1, len(examples) // _SAMPLE))))
        if forest.layout == "vector":
            place = {column: position for position, column in enumerate(sample.inputs)}
            return Cost(leaves, comparisons(forest, sample.matrix[:, [place[column] for column in forest.inputs]]))
        choices = sample.offered.sum() / len(sample.matrix)
        return Cost(leaves, comparisons(forest, sample.rows(forest.inputs)) * float(choices))


def prefer(candidates: Sequence[tuple[str, float, Cost]]) -> tuple[int, str | None]:
    """Pick from (label, share of benchmarks saved, cost): within :data:`SLACK` of the best, the smallest, the quickest.

    Returns its position, and the reason in words where there was a choice.
    """
    best = max(saved for _, saved, _ in candidates)
    close = [position for position, (_, saved, _) in enumerate(candidates) if saved >= best - SLACK]
    chosen = min(close, key=lambda position: (candidates[position][2].leaves, candidates[position][2].comparisons))
    if len(candidates) == 1:
        return chosen, None
    label, saved, cost = candidates[chosen]
    reason = f"chosen of {len(candidates)}: {label}, which saves {saved:.1%} of the benchmarks out of fold"
    if saved < best:
        reason += f"; the most that any saves is {best:.1%}, and of the {len(close)} within {SLACK:.0%} of it this"
        reason += f" is the smallest ({_words(cost)})"
    elif len(close) > 1:
        reason += f", the most of all and the smallest of {len(close)} within {SLACK:.0%} ({_words(cost)})"
    else:
        reason += f", the most of all by more than {SLACK:.0%} ({_words(cost)})"
    return chosen, reason


def _words(cost: Cost) -> str:
    return f"{cost.leaves:,} leaves, {cost.comparisons:,.0f} comparisons a decision"
