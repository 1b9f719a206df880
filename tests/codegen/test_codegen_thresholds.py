from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoheur.codegen.thresholds import float64_limit

LARGEST = float(np.finfo(np.float32).max)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def goes_left(value: float, threshold: float) -> bool:
    """What scikit-learn does."""
    with np.errstate(over="ignore", under="ignore"):
        return bool(np.float64(np.float32(value)) <= np.float64(threshold))


@given(FINITE, FINITE)
def test_the_limit_compares_as_float32_rounding_does(threshold: float, value: float) -> None:
    assert (value <= float64_limit(threshold)) == goes_left(value, threshold)


EDGES = (
    *(0.0, -0.0, 5e-324, -5e-324, 2.0**-149, -(2.0**-149), 2.0**-150, 2.0**-126, 1.0, 0.1, -0.1, 652.5),
    *(2.0**24 + 1, LARGEST, -LARGEST, math.nextafter(LARGEST, math.inf), math.nextafter(-LARGEST, -math.inf)),
    *(3.4028235677973366e38, -3.4028235677973366e38, 1e39, -1e39, 1.7e308, -1.7e308, 880.0238647460938),
)


@pytest.mark.parametrize("threshold", EDGES)
def test_the_limit_is_exact_on_both_sides(threshold: float, values_around: Callable[[float], list[float]]) -> None:
    limit = float64_limit(threshold)
    for value in (*EDGES, *values_around(threshold), limit, math.nextafter(limit, math.inf)):
        assert (value <= limit) == goes_left(value, threshold), value


@given(FINITE)
def test_the_limit_is_exact_around_any_threshold(threshold: float) -> None:
    limit = float64_limit(threshold)
    for value in (math.nextafter(limit, -math.inf), limit, math.nextafter(limit, math.inf), threshold):
        assert (value <= limit) == goes_left(value, threshold), value


def test_an_infinite_threshold_has_its_own_limit() -> None:
    assert float64_limit(math.inf) == math.inf
    assert 1e300 > float64_limit(-math.inf) >= -1e39
