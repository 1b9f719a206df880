"""How sure the measurements themselves are: standard errors of times, and what they let one call wrong."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from autoheur.dataset.dataset import Dataset

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

SIGNIFICANCE = 2.0
"""A difference counts when it exceeds this many standard errors (two-sided 95 % for normal noise)."""

PRIOR = 4.0
"""How many repetitions' worth of trust the noise typical of a dataset gets beside that of a choice's own few."""

HALF_WEIGHT = 0.05
"""The standard error of a gap (5 %) at which a problem weighs half in training."""

_ROBUST_COUNT = 5
_MAD_TO_STD = 1.4826
_MEDIAN_VARIANCE = math.pi / 2


def spreads(dataset: Dataset) -> tuple[Floats, NDArray[np.int64]]:
    """The standard deviation of the logarithms of a choice's repetitions, and their count: both problems x choices.

    0.01 says that repetitions differ by about 1 %; NaN and 0 where nothing was measured. The scale of the noise comes
    from the median absolute deviation, which a few interrupted repetitions do not move, or with fewer than five
    repetitions from the standard deviation. Few repetitions may agree by chance, so a small scale is drawn towards the
    one typical of the dataset (as in Smyth, Statistical Applications in Genetics and Molecular Biology 2004), but a
    large one is believed.
    """
    shape = (len(dataset.problems), len(dataset.choices))
    log = pl.col("time_ms").log().sort()  # so that rounding does not depend on the order of the data
    found = (
        dataset.rows.filter(pl.col("time_ms").is_finite() & (pl.col("time_ms") > 0))
        .group_by("problem", "choice")
        .agg(
            pl.len().alias("count"),
            log.std().alias("std"),
            (log - log.median()).abs().median().alias("mad"),
        )
    )
    where = (found["problem"].to_numpy(), found["choice"].to_numpy())
    count = found["count"].to_numpy().astype(np.int64)
    std = found["std"].cast(pl.Float64).fill_null(math.nan).to_numpy()
    scale = np.where(count >= _ROBUST_COUNT, _MAD_TO_STD * found["mad"].to_numpy(), std)
    several = count > 1
    typical = float(np.median(scale[several] ** 2)) if several.any() else 0.0
    own = np.where(several, count - 1, 0.0)
    squared = np.where(several, scale, 0.0) ** 2
    spread, counts = np.full(shape, np.nan), np.zeros(shape, np.int64)
    spread[where] = np.sqrt(np.maximum(squared, (own * squared + PRIOR * typical) / (own + PRIOR)))
    counts[where] = count
    return spread, counts


def standard_errors(dataset: Dataset) -> Floats:
    """The standard error of the logarithm of each median time: problems x choices, NaN where nothing was measured.

    0.01 says that a median is known to about 1 %. The median of normal values has pi/2 times the variance of their
    mean.
    """
    spread, counts = spreads(dataset)
    errors: Floats = spread * np.sqrt(_MEDIAN_VARIANCE / np.maximum(counts, 1))
    return errors


def good_enough(times: Floats, noise: Floats | None, tolerance: float) -> Mask:
    """Which choices are no mistake to take (P x C), where ``times`` (P x C) are NaN for those that cannot be taken.

    A mistake is more than ``tolerance`` times slower than the best, and significantly so. With a ``tolerance`` of 1
    every slower choice is a mistake, whatever the noise.
    """
    rows = np.arange(len(times))
    best = np.where(np.isfinite(times), times, np.inf).argmin(axis=1)
    with np.errstate(invalid="ignore"):
        lost = np.log(times / times[rows, best][:, None])
        slow: Mask = lost > math.log(tolerance)
        if noise is not None and tolerance != 1:
            slow &= lost > SIGNIFICANCE * np.hypot(noise, noise[rows, best][:, None])
    return np.isfinite(times) & ~slow


def resolved(times: Floats, noise: Floats | None, tolerance: float) -> Mask:
    """Whether a problem's measurements say anything at this tolerance (P).

    They do when the best choice differs from the runner-up significantly, or when a difference as large as the
    tolerance would have been significant. Elsewhere a decision is neither right nor wrong. With a ``tolerance`` of 1
    every problem counts.
    """
    if noise is None or tolerance == 1:
        return np.ones(len(times), bool)
    gap, error = _gap(times, noise)
    return (gap > SIGNIFICANCE * error) | (SIGNIFICANCE * error <= math.log(tolerance))


def weights(times: Floats, noise: Floats | None) -> Floats:
    """What each problem weighs in training (P): 1 where its times are exact, less the noisier they are.

    With an error of :data:`HALF_WEIGHT` between the best choice and the runner-up it is a half, with thrice that a
    tenth: what a learner cannot explain is then mostly the measurement's noise. A tie that is measured well weighs in
    full, since it tells how often a decision there is one between equals; leaving ties out made heuristics too sure.
    """
    if noise is None:
        return np.ones(len(times))
    _, error = _gap(times, noise)
    return 1 / (1 + (error / HALF_WEIGHT) ** 2)


def _gap(times: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Logarithm of the runner-up's time over the best's, and its standard error (both P)."""
    order = np.argsort(np.where(np.isfinite(times), times, np.inf), axis=1, kind="stable")[:, :2]
    best, second = np.take_along_axis(times, order, axis=1).T
    errors = np.take_along_axis(noise, order, axis=1)
    gap: Floats = np.log(second / best)
    return gap, np.hypot(errors[:, 0], errors[:, 1])
