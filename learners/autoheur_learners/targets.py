"""What learners predict of a choice: what it gains over the others, and what it loses against the best."""

from __future__ import annotations

from typing import Literal

import attrs
import numpy as np

from autoheur.train.learner import Examples, Floats

GAIN_CLIP, LOSS_CLIP = 0.05, 0.2
"""Logarithms of ratios (5 % and 22 %) from which on a gain is as clear, and a loss as bad, as can be."""

OFFSET = 0.1
"""What is added to gains, so that their ratio does not hang on how near to zero the smaller one is."""

_DIGITS = 6
"""Scores are rounded to so many digits after the point: no decision hangs on more, and files are half as long."""


@attrs.frozen
class Aim:
    """What scores are made of, for a tolerance.

    Strictly, with a ``tolerance`` of 1, the score of a choice is :data:`OFFSET` plus its expected gain over the others
    (:func:`advantages`). The ratio of two scores weighs what the better one is expected to gain against what it may
    lose. Where choices within a tolerance are as good as the best, ties are no reason to be unsure: then the score is
    minus the expected loss (:func:`losses`), and the best score alone says what is risked. Both are always predicted
    together, since trees that know both split better.
    """

    tolerance: float

    @property
    def strict(self) -> bool:
        return self.tolerance == 1

    @property
    def statistic(self) -> Literal["ratio", "score"]:
        return "ratio" if self.strict else "score"

    @property
    def base(self) -> float:
        return OFFSET if self.strict else 0.0

    def targets(self, examples: Examples) -> Floats:
        """What an estimator is fitted to: P x 2 C, gains and then losses."""
        return np.hstack([advantages(examples, GAIN_CLIP), losses(examples, LOSS_CLIP)])

    def scores(self, predicted: Floats, trees: int = 1) -> Floats:
        """Scores without :attr:`base`, of each of ``trees`` trees: N x 2 C in, N x C out."""
        choices = predicted.shape[1] // 2
        kept = predicted[:, :choices] if self.strict else -predicted[:, choices:]
        return np.round(kept / trees, _DIGITS)


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
