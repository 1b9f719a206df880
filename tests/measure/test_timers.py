"""Timers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from autoheur.errors import InputError
from autoheur.measure.timers import CpuTimer, GpuTimer, timer_for


class SteppingClock:
    """Nanoseconds that pass only when ``work`` is called."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def work(self, microseconds: float) -> Callable[[], None]:
        def run() -> None:
            self.now += round(microseconds * 1000)
            self.calls += 1

        self.calls = 0
        return run


@pytest.mark.parametrize("microseconds", [0.5, 3.0, 70.0, 1999.0, 2000.0, 90_000.0])
def test_cpu_repetition_runs_at_least_as_long_as_asked_and_tells_the_time_of_one_call(microseconds: float) -> None:
    clock = SteppingClock()
    function = clock.work(microseconds)
    stopwatch = CpuTimer(min_run_ms=2.0, clock=clock).stopwatch()
    stopwatch(function)
    clock.calls = 0
    before = clock.now
    assert stopwatch(function) == pytest.approx(microseconds / 1000)
    assert clock.now - before >= 2e6
    assert clock.calls <= 1 + max(1, 2 * 2000 / microseconds), "far more calls than needed"


def test_cpu_timer_warms_up_new_operands_before_every_repetition() -> None:
    clock = SteppingClock()

    def on_new_operands() -> Callable[[], None]:
        first = iter([5_000_000])

        def function() -> None:
            clock.now += next(first, 3_000_000)

        return function

    stopwatch = CpuTimer(clock=clock).stopwatch()
    assert [stopwatch(on_new_operands()) for _ in range(3)] == pytest.approx([3.0] * 3)


def test_cpu_timer_does_not_choose_among_the_times_that_it_sees() -> None:
    """Repeating a repetition that was too short would keep the slow ones only."""
    clock = SteppingClock()
    stopwatch = CpuTimer(min_run_ms=2.0, clock=clock).stopwatch()
    stopwatch(clock.work(100.0))
    assert stopwatch(clock.work(10.0)) == pytest.approx(0.01)


def test_cpu_timer_copes_with_a_clock_that_stands_still_at_first() -> None:
    ticks = itertools.chain([0, 0, 0, 0], itertools.count(10**7, 10**7))
    assert CpuTimer(clock=lambda: next(ticks)).stopwatch()(lambda: None) > 0


class FakeDriver:
    """Triton's driver and the device's events, with times from a script."""

    def __init__(self, times_ms: list[float]) -> None:
        self.times_ms = iter(times_ms)
        self.log: list[str] = []
        driver = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing

            def record(self) -> None:
                driver.log.append("event")

            def elapsed_time(self, end: Event) -> float:
                return next(driver.times_ms)

        self.Event = Event

    def get_device_interface(self) -> FakeDriver:
        return self

    def get_empty_cache_for_benchmark(self) -> str:
        return "cache"

    def clear_cache(self, cache: str) -> None:
        self.log.append("flush")

    def synchronize(self) -> None:
        self.log.append("synchronize")


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[float]], FakeDriver]:
    pytest.importorskip("triton")

    def install(times_ms: list[float]) -> FakeDriver:
        from triton import runtime

        driver = FakeDriver(times_ms)
        monkeypatch.setattr(runtime, "driver", type("Driver", (), {"active": driver}))
        return driver

    return install


def test_quick_gpu_kernels_are_timed_by_do_bench_and_a_repetition_is_its_median(
    monkeypatch: pytest.MonkeyPatch, fake_gpu: Callable[[list[float]], FakeDriver]
) -> None:
    fake_gpu([0.3])
    asked: list[dict[str, Any]] = []

    def do_bench(function: Callable[[], object], **options: Any) -> list[float]:
        asked.append(options)
        return [0.5, 0.25, 9.0]

    monkeypatch.setattr("triton.testing.do_bench", do_bench)
    stopwatch = GpuTimer(warm_up_ms=4.0, run_ms=30.0).stopwatch()
    assert [stopwatch(lambda: None), stopwatch(lambda: None)] == [0.5, 0.5]
    assert asked == [{"warmup": 4.0, "rep": 30.0, "return_mode": "all"}] * 2


def test_slow_gpu_kernels_run_once_a_repetition_with_the_cache_flushed_before(
    monkeypatch: pytest.MonkeyPatch, fake_gpu: Callable[[list[float]], FakeDriver]
) -> None:
    driver = fake_gpu([700.0, 660.0, 650.0, 640.0])
    monkeypatch.setattr("triton.testing.do_bench", lambda *_args, **_options: pytest.fail("ran it eight times"))
    calls = 0

    def function() -> None:
        nonlocal calls
        calls += 1
        driver.log.append("kernel")

    stopwatch = GpuTimer().stopwatch()
    assert stopwatch(function) == 660.0
    driver.log.clear()
    calls = 0
    assert [stopwatch(function), stopwatch(function)] == [650.0, 640.0]
    assert calls == 2
    assert driver.log == ["flush", "event", "kernel", "event", "synchronize"] * 2


def test_timer_is_chosen_by_device() -> None:
    pytest.importorskip("triton")
    assert isinstance(timer_for("cpu"), CpuTimer)
    assert isinstance(timer_for("cuda:1"), GpuTimer)


def test_timing_a_gpu_without_triton_is_the_users_to_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "triton", None)
    with pytest.raises(InputError, match="needs triton"):
        timer_for("cuda")
