"""What learners predict of a choice: what it gains over the others, and what it loses against the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs
import numpy as np

from autoheur.learning import Examples, Floats, Forest, Statistic, Tree, row_inputs

Precision = Literal["float32", "float64"]

GAIN_CLIP, LOSS_CLIP = 0.05, 0.2
"""Logarithms of ratios (5 % and 22 %) from which on a gain is as clear, and a loss as bad, as can be."""

OFFSET = 0.1
"""What is added to gains, so that their ratio does not depend on how near to zero the smaller one is."""

PAIR_CLIP = 1.5
"""The logarithm of a ratio (4.5) from which on a choice is hopeless."""

PAIR_SCALE = 1.0
"""A choice that is e times slower than the best counts 1/e of what the best does."""

_DIGITS = 6
"""Scores are rounded to so many digits after the point: no decision depends on more, and files are half as long."""


@attrs.frozen
class Target:
    """What scores are made of, for examples of choices without features.

    Strictly, with a tolerance of 1, the score of a choice is :data:`OFFSET` plus its expected gain over the others
    (:func:`advantages`). The ratio of two scores weighs what the better one is expected to gain against what it may
    lose. Where choices within a tolerance are as good as the best, ties are no reason to be unsure: then the score is
    minus the expected loss (:func:`losses`), and, with two choices, the best score alone says what is risked. Of more
    choices the differences of expected losses say which may be the best. Gains and losses are always predicted
    together, since trees that know both split better.
    """

    examples: Examples

    @property
    def strict(self) -> bool:
        return self.examples.tolerance == 1

    @property
    def statistic(self) -> Statistic:
        if self.strict:
            return "ratio"
        return "score" if len(self.examples.choices) == 2 else "difference"

    @property
    def base(self) -> float:
        return OFFSET if self.strict else 0.0

    @property
    def values(self) -> Floats:
        """What an estimator is fitted to: P x 2 C, gains and then losses."""
        return np.hstack([advantages(self.examples, GAIN_CLIP), losses(self.examples, LOSS_CLIP)])

    def scores(self, predicted: Floats, trees: int = 1) -> Floats:
        """Scores without :attr:`base`, of each of ``trees`` trees: N x 2 C in, N x C out."""
        choices = predicted.shape[1] // 2
        kept = predicted[:, :choices] if self.strict else -predicted[:, choices:]
        return np.round(kept / trees, _DIGITS)

    def forest(self, trees: Sequence[Tree]) -> Forest:
        """The forest of these trees, whose leaves hold :meth:`scores`."""
        base = [self.base] * len(self.examples.choices)
        return Forest(list(self.examples.inputs), base, list(trees), "vector", "float32", self.statistic)


@attrs.frozen
class PairTarget:
    """What scores are made of where choices have features: the logarithm of the best time over the choice's own.

    It is clipped, since whether a choice is 4 or 40 times slower than the best makes no difference to what is kept, and
    learned once per problem and choice. The difference of two scores is the logarithm of a predicted speed-up.
    """

    examples: Examples

    @property
    def values(self) -> Floats:
        """One value per finite time (R), problem by problem."""
        log = np.log(self.examples.times)
        lost = np.nanmin(log, axis=1, keepdims=True) - log
        values: Floats = np.maximum(lost[np.isfinite(lost)], -PAIR_CLIP)
        return values

    @property
    def weights(self) -> Floats:
        """What each of those counts: that of its problem, more the nearer the choice is to the best."""
        problem, _ = np.nonzero(np.isfinite(self.examples.times))
        own = np.ones(len(self.examples)) if self.examples.weights is None else self.examples.weights
        weights: Floats = own[problem] * np.exp(self.values / PAIR_SCALE)
        return weights

    def forest(self, trees: Sequence[Tree], base: float = 0.0, precision: Precision = "float32") -> Forest:
        """The forest of these trees, whose leaves hold the logarithm of a speed-up."""
        return Forest(list(row_inputs(self.examples)), [base], list(trees), "row", precision, "difference")


def advantages(examples: Examples, clip: float) -> Floats:
    """What each choice gains over the others, on average: P x C, from 0 to 1.

    The gain over another choice is the logarithm of that one's time over the choice's own, at least 0 and at most
    ``clip``, divided by ``clip``. The clip keeps a few problems with huge differences from drawing the splits: whether
    1.3 or 13 times as fast, the choice is clear. Choices that do not count are not compared and gain 0.
    """
    log = np.log(examples.times)
    counted = np.isfinite(log)
    total = np.zeros(log.shape)
    for other in range(log.shape[1]):
        gain = np.clip(log[:, [other]] - log, 0, clip) / clip
        total += np.where(counted & counted[:, [other]], gain, 0.0)
    result: Floats = total / np.maximum(counted.sum(axis=1, keepdims=True) - 1, 1)
    return result


def losses(examples: Examples, clip: float) -> Floats:
    """What each choice loses against the best: P x C, from 0 to 1.

    The loss is the logarithm of the choice's time over the best one's, at most ``clip``, divided by ``clip``. Choices
    that do not count lose 1.
    """
    log = np.log(examples.times)
    best = np.nanmin(log, axis=1, keepdims=True)
    return np.where(np.isfinite(log), np.minimum(log - best, clip) / clip, 1.0)
