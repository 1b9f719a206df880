"""A fixed kernel timed along with the problems: it tells when the machine is busy or throttled."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import attrs
import torch

from autoheur.measure.timers import Timer

QUIET_WITHIN = 0.1
"""A reference time may differ from its session's median by this share before measurements count as noisy."""

REPETITIONS = 3


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
        self._repetition = timer.prepare(lambda: torch.mm(left, right, out=out))

    def time(self) -> float:
        """The median of a few repetitions, in milliseconds."""
        return statistics.median(self._repetition() for _ in range(REPETITIONS))


def is_quiet(before_and_after: Sequence[float], usual: float) -> bool:
    """Whether the reference times around a batch are near the ``usual`` one, all in milliseconds."""
    return all(abs(time / usual - 1) <= QUIET_WITHIN for time in before_and_after)
