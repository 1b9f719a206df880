"""What learners predict of a choice: what it gains over the others, and what it loses against the best."""

from __future__ import annotations

import numpy as np

from autoheur.train.learner import Examples, Floats


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
