"""Exact binomial bounds on the rate of wrong decisions, and the threshold that keeps one.

The *rate* here is wrong decisions over all problems asked, decided or not. It can only fall as the threshold rises, and
so does the count of wrong decisions on a sample. That is why a single bound suffices, without any correction for the
many thresholds compared: let t be the threshold at which the true rate is exactly the one allowed. A smaller one is
only ever taken when the sample shows at most k wrong decisions at t already, and k is the largest number for which that
has a probability of at most 1 - confidence (Clopper & Pearson, Biometrika 1934; for monotone risks: Bates et al.,
Journal of the ACM 2021, and Angelopoulos et al., "Learn then Test", 2021).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

NEVER = float(np.finfo(np.float64).max)
"""The threshold of a heuristic that decides nothing."""


def at_most(wrong: int, total: int, rate: float) -> float:
    """The probability of at most ``wrong`` events among ``total`` independent ones, each of probability ``rate``."""
    if wrong >= total:
        return 1.0
    log_rate, log_other = math.log(rate), math.log1p(-rate)
    whole = math.lgamma(total + 1)
    return math.fsum(
        math.exp(whole - math.lgamma(i + 1) - math.lgamma(total - i + 1) + i * log_rate + (total - i) * log_other)
        for i in range(wrong + 1)
    )


def upper_bound(wrong: int, total: int, confidence: float) -> float:
    """The largest rate that ``wrong`` among ``total`` leave possible, with this confidence (Clopper & Pearson, 1934).

    1.0 where ``total`` is 0.
    """
    if wrong >= total:
        return 1.0
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        if at_most(wrong, total, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def allowed_wrong(total: int, rate: float, confidence: float) -> int | None:
    """The most wrong decisions among ``total`` problems that still show a rate of at most ``rate``.

    ``None`` where not even none would: see :func:`problems_needed`.
    """
    if total == 0 or at_most(0, total, rate) > 1 - confidence:
        return None
    low, high = 0, total  # low is allowed, high is not
    while high - low > 1:
        middle = (low + high) // 2
        if at_most(middle, total, rate) <= 1 - confidence:
            low = middle
        else:
            high = middle
    return low


def problems_needed(rate: float, confidence: float, wrong: int = 0) -> int:
    """How many problems it takes for ``wrong`` among them to show a rate of at most ``rate``."""
    low, high = wrong, wrong + 1
    while at_most(wrong, high, rate) > 1 - confidence:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if at_most(wrong, middle, rate) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def threshold_for(confidence: Floats, wrong: Mask, allowed: int) -> float:
    """The smallest threshold above which at most ``allowed`` decisions are wrong.

    ``confidence`` is a policy's statistic on P problems, ``wrong`` whether the best-scored choice is wrong there. An
    outlier, however confident, uses up one of the allowed decisions and moves the threshold to the next wrong one.
    Where no more than those are wrong, the threshold is just below every confidence there is.
    """
    ordered = np.sort(confidence[wrong])[::-1]
    if len(ordered) > allowed:
        return float(ordered[allowed])
    return float(np.nextafter(confidence.min(), -np.inf))
