"""Choosing among calibrated candidates: coverage first, then size, then speed."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from autoheur.heuristic.model import Forest
from autoheur.train.learner import Floats
from autoheur.train.scoring import comparisons

SLACK = 0.02
"""Coverages this close are taken for equal: thresholds hang on a few problems, and vary by about as much."""

_SAMPLE = 500


@attrs.frozen
class Cost:
    """What a model costs: its ``leaves`` (generated code grows with them), and the ``comparisons`` of one decision."""

    leaves: int
    comparisons: float

    @staticmethod
    def of(forest: Forest, matrix: Floats, choices: int) -> Cost:
        """Count; ``matrix`` (P x F) holds problems to take the mean over."""
        leaves = sum(feature < 0 for tree in forest.trees for feature in tree.feature)
        sample = matrix[:: max(1, len(matrix) // _SAMPLE)]
        return Cost(leaves, comparisons(forest, sample) * (choices if forest.layout == "row" else 1))


def prefer(candidates: Sequence[tuple[str, float, Cost]]) -> tuple[int, str | None]:
    """Pick from (label, coverage, cost): within :data:`SLACK` of the best coverage, the smallest, then the quickest.

    Returns its position, and the reason in words where there was a choice.
    """
    best = max(coverage for _, coverage, _ in candidates)
    close = [position for position, (_, coverage, _) in enumerate(candidates) if coverage >= best - SLACK]
    chosen = min(close, key=lambda position: (candidates[position][2].leaves, candidates[position][2].comparisons))
    if len(candidates) == 1:
        return chosen, None
    label, coverage, cost = candidates[chosen]
    reason = f"chosen of {len(candidates)}: {label}, which decides {coverage:.1%} out of fold"
    if coverage < best:
        reason += f"; the most that any decides is {best:.1%}, and of the {len(close)} within {SLACK:.0%} of it this"
        reason += f" is the smallest ({_words(cost)})"
    elif len(close) > 1:
        reason += f", the most of all and the smallest of {len(close)} within {SLACK:.0%} ({_words(cost)})"
    else:
        reason += f", the most of all by more than {SLACK:.0%} ({_words(cost)})"
    return chosen, reason


def _words(cost: Cost) -> str:
    return f"{cost.leaves:,} leaves, {cost.comparisons:,.0f} comparisons a decision"
