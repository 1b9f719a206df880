"""Statistics per problem and choice, compared with numpy group by group."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.statistics import statistics


def times_of(dataset: Dataset, problem: int, choice: int) -> list[float]:
    return [time for p, c, time in dataset.rows.iter_rows() if (p, c) == (problem, choice)]


def test_every_group_agrees_with_numpy(make_log: Callable[..., Path]) -> None:
    generator = np.random.default_rng(0)
    rows = [
        f"{generator.integers(5)},x,{generator.integers(3)},{'abc'[generator.integers(3)]},{time!r}"
        for time in np.where(generator.random(400) < 0.1, np.inf, generator.lognormal(0, 2, 400)).tolist()
    ]
    dataset = read_log(make_log(rows))
    found = statistics(dataset)
    assert found.median_ms.shape == (len(dataset.problems), 3)
    for problem in range(len(dataset.problems)):
        for choice in range(3):
            times = times_of(dataset, problem, choice)
            finite = [time for time in times if time < math.inf]
            at = (problem, choice)
            assert found.count[at] == len(finite)
            assert found.failed[at] == len(times) - len(finite)
            if finite:
                assert found.median_ms[at] == np.median(finite)
                assert found.mean_ms[at] == pytest.approx(np.mean(finite), rel=1e-14)
            else:
                assert math.isnan(found.median_ms[at])
                assert math.isnan(found.mean_ms[at])
            if len(finite) > 1:
                assert found.std_ms[at] == pytest.approx(np.std(finite, ddof=1), rel=1e-12)
            else:
                assert math.isnan(found.std_ms[at])


@pytest.mark.parametrize(
    ("times", "count", "failed", "median", "mean", "std"),
    [
        ([2.0], 1, 0, 2.0, 2.0, math.nan),
        ([4.0, 1.0], 2, 0, 2.5, 2.5, math.sqrt(4.5)),
        ([3.0, 1.0, 2.0], 3, 0, 2.0, 2.0, 1.0),
        ([9.0, 1.0, 2.0, 4.0], 4, 0, 3.0, 4.0, math.sqrt(38 / 3)),
        ([math.inf, 3.0], 1, 1, 3.0, 3.0, math.nan),
        ([math.inf, math.inf], 0, 2, math.nan, math.nan, math.nan),
    ],
)
def test_small_groups_come_out_as_by_hand(
    make_log: Callable[..., Path],
    times: list[float],
    count: int,
    failed: int,
    median: float,
    mean: float,
    std: float,
) -> None:
    found = statistics(read_log(make_log([f"8,x,16,orig,{time}" for time in times], choices=["orig", "never"])))
    assert found.count.tolist() == [[count, 0]]
    assert found.failed.tolist() == [[failed, 0]]
    np.testing.assert_array_equal(found.median_ms, [[median, math.nan]])
    np.testing.assert_array_equal(found.mean_ms, [[mean, math.nan]])
    np.testing.assert_allclose(found.std_ms, [[std, math.nan]], rtol=1e-15)


def test_repeated_times_have_no_spread(make_log: Callable[..., Path]) -> None:
    found = statistics(read_log(make_log(["8,x,16,orig,0.1"] * 7)))
    assert found.median_ms[0, 0] == 0.1
    assert found.std_ms[0, 0] == pytest.approx(0, abs=1e-16)
