"""What learners predict of a choice: how much is lost by not taking it."""

from __future__ import annotations

import numpy as np

from autoheur.train.learner import Examples, Floats


def advantages(examples: Examples, clip: float) -> Floats:
    """Mean advantage of each choice over the others: P x C, from 0 to 1.

    The advantage over another choice is the logarithm of that one's time over the choice's own, from 0 to ``clip``,
    divided by ``clip``; it is 0 over faster ones. The clip keeps a few problems with huge differences from drawing the
    splits: whether 1.3 or 13 times as fast, the choice is clear. Choices that do not count are not compared and get 0.
    """
    log = np.log(examples.times)
    counted = np.isfinite(log)
    choices = log.shape[1]
    total = np.zeros(log.shape)
    for other in range(choices):
        gap = np.clip(log[:, [other]] - log, 0, clip) / clip
        total += np.where(counted & counted[:, [other]], gap, 0.0)
    return total / np.maximum(counted.sum(axis=1, keepdims=True) - 1, 1)
