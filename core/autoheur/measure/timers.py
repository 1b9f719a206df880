"""Timers: how long one repetition of a function takes."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any, Protocol

import attrs

Function = Callable[[], object]
Stopwatch = Callable[[Function], float]
"""Times one repetition of a function and returns milliseconds per call. What the function raises passes through.

The functions given to one stopwatch do the same on operands made anew: what their first repetition tells, such as how
many calls a repetition takes, holds for the next ones.
"""


class Timer(Protocol):
    """Makes stopwatches. ``settings`` is stored with the measurements; plain JSON data."""

    @property
    def settings(self) -> dict[str, Any]: ...

    def stopwatch(self) -> Stopwatch:
        """A stopwatch for one choice of one problem."""
        ...


@attrs.frozen
class CpuTimer:
    """Times on the CPU. A repetition calls the function as often as it takes to run ``min_run_ms``.

    Operands are warm in the caches, as they are in a graph whose previous kernel wrote them. ``clock`` counts
    nanoseconds.
    """

    min_run_ms: float = 2.0
    clock: Callable[[], int] = time.perf_counter_ns

    @property
    def settings(self) -> dict[str, Any]:
        return {"timer": "cpu", "min_run_ms": self.min_run_ms}

    def stopwatch(self) -> Stopwatch:
        calls = 0

        def time_ms(function: Function) -> float:
            nonlocal calls
            function()  # the first call may create primitives, threads and memory pools, and faults operands in
            calls = calls or self._calls(function)
            return self._run(function, calls) / calls

        return time_ms

    def _calls(self, function: Function) -> int:
        """How often to call the function in one repetition."""
        count = 1
        while (elapsed := self._run(function, count)) < self.min_run_ms:
            needed = math.ceil(1.1 * count * self.min_run_ms / elapsed) if elapsed > 0 else 0
            count = min(max(needed, count + 1), 100 * count)
        return count

    def _run(self, function: Function, count: int) -> float:
        start = self.clock()
        for _ in range(count):
            function()
        return (self.clock() - start) / 1e6


@attrs.frozen
class GpuTimer:
    """Times on a CUDA or XPU device, with events and a flushed L2 cache, through ``triton.testing.do_bench``.

    A repetition is the median of the calls that fit into ``run_ms``. ``do_bench`` runs a function eight times at
    least; one slower than ``slow_ms``, for which neither launch nor clock ramp matters, is run once instead, also
    between events and with a flushed cache.
    """

    warm_up_ms: float = 5.0
    run_ms: float = 20.0
    slow_ms: float = 20.0

    @property
    def settings(self) -> dict[str, Any]:
        return {"timer": "do_bench", **attrs.asdict(self)}

    def stopwatch(self) -> Stopwatch:
        measure: Stopwatch | None = None

        def time_ms(function: Function) -> float:
            nonlocal measure
            if measure is None:
                function()  # loads modules and lets libraries choose their kernel
                measure = _run_once if _run_once(function) >= self.slow_ms else self._bench
            return measure(function)

        return time_ms

    def _bench(self, function: Function) -> float:
        from triton.testing import do_bench

        times = do_bench(function, warmup=self.warm_up_ms, rep=self.run_ms, return_mode="all")
        return float(statistics.median(times))


def _run_once(function: Function) -> float:
    """Milliseconds of one call on the GPU, the L2 cache flushed before."""
    from triton import runtime

    driver = runtime.driver.active
    interface = driver.get_device_interface()
    driver.clear_cache(driver.get_empty_cache_for_benchmark())
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    start.record()
    function()
    end.record()
    interface.synchronize()
    return float(start.elapsed_time(end))


def timer_for(device: str) -> Timer:
    """The timer for a device named as torch names it.

    Raises:
        InputError: the device is a GPU and triton, whose timer is used, is missing.
    """
    if device.split(":")[0] == "cpu":
        return CpuTimer()
    try:
        import triton  # noqa: F401
    except ImportError:
        from autoheur.errors import InputError

        raise InputError(f"timing on {device!r} needs triton, which cannot be imported; install it") from None
    return GpuTimer()
