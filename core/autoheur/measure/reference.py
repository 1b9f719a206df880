"""A fixed kernel timed along with the problems: it tells when the machine is busy or throttled."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import attrs
import torch

from autoheur.measure.timers import Function, Timer

QUIET_WITHIN = 0.1
"""A batch's reference times may exceed the undisturbed one by this share on average before it counts as noisy."""

REPETITIONS = 5


@attrs.frozen
class Products:
    """``count`` square matrix products of ``size`` and ``dtype``; none that the precision of float32 changes."""

    count: int
    size: int
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{self.count} mm of {self.size} x {self.size}, {self.dtype}"

    def on(self, device: str) -> Function:
        """What runs them once."""
        shape = (self.size, self.size)
        left, right, out = (torch.ones(shape, dtype=self.dtype, device=device) for _ in range(3))
        return lambda: [torch.mm(left, right, out=out) for _ in range(self.count)]


CPU_KERNEL = (Products(1, 256, torch.float64), Products(200, 16, torch.float64))
"""One that all cores share, and as much time in calls of small ones, which feel it most when the core of the calling
thread has a busy neighbour."""

GPU_KERNEL = (Products(1, 4096, torch.bfloat16),)


class Reference:
    """The reference kernel on one device; ``kernel`` says what it is."""

    def __init__(self, timer: Timer, device: str) -> None:
        parts = CPU_KERNEL if torch.device(device).type == "cpu" else GPU_KERNEL
        self.kernel = " and ".join(map(str, parts))
        functions = [products.on(device) for products in parts]
        self._run = lambda: [function() for function in functions]
        self._stopwatch = timer.stopwatch()

    def time(self) -> float:
        """The median of a few repetitions, in milliseconds."""
        return statistics.median(self._stopwatch(self._run) for _ in range(REPETITIONS))


def undisturbed(reference_ms: Sequence[float]) -> float:
    """What the reference kernel takes when nothing disturbs: a tenth of its times are quicker, all in milliseconds.

    Other programs and throttling only ever slow a kernel down, for most of a session maybe, so a mean or median of its
    times would call the disturbed state usual.
    """
    return sorted(reference_ms)[len(reference_ms) // 10]


def is_quiet(reference_ms: Sequence[float], undisturbed_ms: float) -> bool:
    """Whether the reference times of a batch are near the undisturbed one."""
    return statistics.fmean(abs(time / undisturbed_ms - 1) for time in reference_ms) <= QUIET_WITHIN
