"""A fixed kernel timed along with the problems: it tells when the machine is busy or throttled."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import attrs
import torch

from autoheur.measure.timers import Timer

QUIET_WITHIN = 0.1
"""A batch's reference times may exceed the undisturbed one by this share on average before it counts as noisy."""

REPETITIONS = 5


@attrs.frozen
class Kernel:
    """A square matrix product of ``size`` and ``dtype``; none that the precision of float32 products changes."""

    size: int
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"mm of {self.size} x {self.size}, {self.dtype}"


CPU_KERNEL = Kernel(256, torch.float64)
GPU_KERNEL = Kernel(4096, torch.bfloat16)


class Reference:
    """The reference kernel on one device."""

    def __init__(self, timer: Timer, device: str) -> None:
        self.kernel = CPU_KERNEL if torch.device(device).type == "cpu" else GPU_KERNEL
        shape = (self.kernel.size, self.kernel.size)
        left, right, out = (torch.ones(shape, dtype=self.kernel.dtype, device=device) for _ in range(3))
        self._product = lambda: torch.mm(left, right, out=out)
        self._stopwatch = timer.stopwatch()

    def time(self) -> float:
        """The median of a few repetitions, in milliseconds."""
        return statistics.median(self._stopwatch(self._product) for _ in range(REPETITIONS))


def undisturbed(reference_ms: Sequence[float]) -> float:
    """What the reference kernel takes when nothing disturbs: a tenth of its times are quicker, all in milliseconds.

    Other programs and throttling only ever slow a kernel down, for most of a session maybe, so a mean or median of its
    times would call the disturbed state usual.
    """
    return sorted(reference_ms)[len(reference_ms) // 10]


def is_quiet(reference_ms: Sequence[float], undisturbed_ms: float) -> bool:
    """Whether the reference times of a batch are near the undisturbed one."""
    return statistics.fmean(abs(time / undisturbed_ms - 1) for time in reference_ms) <= QUIET_WITHIN
