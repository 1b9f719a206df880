"""Statistics per problem and choice, over all repetitions."""

from __future__ import annotations

import attrs
import numpy as np
import polars as pl
from numpy.typing import NDArray

from autoheur.dataset.dataset import Dataset

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@attrs.frozen(eq=False)
class Statistics:
    """Arrays of shape (problems, choices), in the order of the dataset's problems and choices.

    ``count`` is the number of finite measurements, ``failed`` the number of failed ones. ``median_ms``, ``mean_ms``
    and ``std_ms`` (sample standard deviation, ddof=1) are over the finite measurements, in milliseconds; NaN where
    there is none, ``std_ms`` also where there is only one.
    """

    count: Counts
    failed: Counts
    median_ms: Floats
    mean_ms: Floats
    std_ms: Floats


def statistics(dataset: Dataset) -> Statistics:
    """Group the measurements by problem and choice; O(n log n) in rows. Medians equal ``numpy.median`` exactly."""
    shape = (len(dataset.problems), len(dataset.choices))
    size = shape[0] * shape[1]
    group = pl.col("problem").cast(pl.UInt64) * shape[1] + pl.col("choice")
    ordered = dataset.rows.select(group.alias("group"), "time_ms").sort("group", "time_ms")
    groups: Counts = ordered.get_column("group").to_numpy().astype(np.int64)
    times: Floats = ordered.get_column("time_ms").to_numpy()
    del ordered
    finite = np.isfinite(times)
    failed: Counts = np.bincount(groups[~finite], minlength=size)
    times, groups = times[finite], groups[finite]
    count: Counts = np.bincount(groups, minlength=size)
    measured = np.flatnonzero(count)
    repetitions = count[measured]
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(repetitions)))[:-1]
    median: Floats = np.full(size, np.nan)
    mean, std = median.copy(), median.copy()
    if len(measured):
        # The mean of the two middle ones, which are the same one for an odd count.
        low, high = times[starts + (repetitions - 1) // 2], times[starts + repetitions // 2]
        median[measured] = np.where(repetitions % 2 == 1, low, (low + high) / 2)
        average = np.add.reduceat(times, starts) / repetitions
        mean[measured] = average
        squares = np.add.reduceat((times - np.repeat(average, repetitions)) ** 2, starts)
        several = repetitions > 1
        std[measured[several]] = np.sqrt(squares[several] / (repetitions[several] - 1))
    return Statistics(
        count=count.reshape(shape),
        failed=failed.reshape(shape),
        median_ms=median.reshape(shape),
        mean_ms=mean.reshape(shape),
        std_ms=std.reshape(shape),
    )
