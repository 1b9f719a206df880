"""Exact binomial bounds on the rate of wrong decisions, and the threshold that keeps one.

The *rate* here is wrong decisions over all problems asked, decided or not. It can only fall as the threshold rises, and
so does the count of wrong decisions on a sample. That is why a single bound suffices, without any correction for the
many thresholds compared: let t be the threshold at which the true rate is exactly the one allowed. A smaller one is
only ever taken when the sample shows at most k wrong decisions at t already, and k is the largest number for which that
has a probability of at most 1 - confidence (Clopper & Pearson, Biometrika 1934; for monotone risks: Bates et al.,
Journal of the ACM 2021, and Angelopoulos et al., "Learn then Test", 2021).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

Floats = NDArray[np.float64]

NEVER = float(np.finfo(np.float64).max)
"""The threshold of a heuristic that decides nothing."""


def at_most(wrong: int, total: int, rate: float) -> float:
    """The probability of at most ``wrong`` events among ``total`` independent ones, each of probability ``rate``."""
    return float(binom.cdf(wrong, total, rate))


def upper_bound(wrong: int, total: int, confidence: float) -> float:
    """The largest rate that ``wrong`` among ``total`` leave possible, with this confidence (Clopper & Pearson, 1934).

    1.0 where ``total`` is 0.
    """
    return 1.0 if wrong >= total else float(beta.ppf(confidence, wrong + 1, total - wrong))


def allowed_wrong(total: int, rate: float, confidence: float) -> int | None:
    """The most wrong decisions among ``total`` problems that still show a rate of at most ``rate``.

    ``None`` where not even none would: see :func:`problems_needed`.
    """
    if total == 0:
        return None
    most = int(binom.ppf(1 - confidence, total, rate))
    most -= at_most(most, total, rate) > 1 - confidence
    return most if most >= 0 else None


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


def threshold_for(needed: Floats, confidence: Floats, allowed: int) -> float:
    """The smallest threshold at which at most ``allowed`` problems are left without a choice that is good enough.

    ``needed`` is, for each problem that counts, the smallest threshold at which its shortlist holds such a choice:
    minus infinity where the best-scored one is, NaN where none is. ``confidence`` is the policy's statistic on all
    problems. An outlier uses up one of the allowed problems and moves the threshold to the next one. Where no more than
    those need a threshold at all, it is just below every confidence there is, so that everything is decided.
    """
    ordered = np.sort(needed[needed > -np.inf])[::-1]
    if len(ordered) > allowed:
        return float(ordered[allowed])
    least = np.min(confidence[~np.isnan(confidence)], initial=NEVER)
    return float(np.nextafter(least, -np.inf))
