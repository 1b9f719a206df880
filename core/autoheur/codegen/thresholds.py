"""Thresholds that compare float64 inputs as the model compares rounded ones.

scikit-learn's trees round an input to float32 (half to even) and compare it with a float64 threshold. Rounding is
monotone, so the inputs that go left are exactly those up to some float64; computing that limit once, here, spares
generated code the rounding.
"""

from __future__ import annotations

import math
import struct

_FLOAT32_MAX = 3.4028234663852886e38
# Half a unit in the last place beyond the largest float32: from here on a number rounds to infinity.
_ROUNDS_TO_INFINITY = 3.4028235677973366e38


def float64_limit(threshold: float) -> float:
    """Return the largest float64 whose float32 rounding is at most ``threshold``; infinite where there is no bound.

    For every float64 ``x``: ``float32(x) <= threshold`` if and only if ``x <= float64_limit(threshold)``.
    """
    if threshold == math.inf:
        return math.inf
    if threshold < -_FLOAT32_MAX:
        return -_ROUNDS_TO_INFINITY  # only what rounds to minus infinity
    below, even = _float32_at_most(threshold)
    if below == _FLOAT32_MAX:
        return math.nextafter(_ROUNDS_TO_INFINITY, -math.inf)
    middle = (below + _next_float32(below)) / 2  # exact: one bit more than float32 holds
    return middle if even else math.nextafter(middle, -math.inf)


def _float32_at_most(value: float) -> tuple[float, bool]:
    """The largest float32 that is at most ``value``, and whether its significand is even."""
    if value >= _FLOAT32_MAX:
        return _FLOAT32_MAX, False
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    if _from_bits(bits) > value:
        bits = _step(bits, up=False)
    return _from_bits(bits), bits % 2 == 0


def _next_float32(value: float) -> float:
    return _from_bits(_step(struct.unpack("<I", struct.pack("<f", value))[0], up=True))


def _step(bits: int, up: bool) -> int:
    """The bits of the neighbouring float32; both zeros count as one."""
    negative, magnitude = bits >> 31, bits & 0x7FFFFFFF
    if magnitude == 0:
        return 1 if up else 0x80000001
    magnitude += 1 if up != bool(negative) else -1
    return negative << 31 | magnitude


def _from_bits(bits: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return value
