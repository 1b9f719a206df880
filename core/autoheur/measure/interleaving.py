"""Measures the choices of one problem, interleaved and with as many repetitions as it takes to tell them apart."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs

from autoheur.measure.timers import Function, Repetition, Timer

Times = dict[str, list[float]]


@attrs.frozen
class Effort:
    """How many repetitions a problem is worth.

    Every choice gets ``first`` repetitions; those that may still be the best get more, up to ``most``, or until the
    problem has taken ``seconds``. A choice is clearly behind the best when none of its repetitions was as quick as any
    of the best's and the gap between the medians exceeds ``separation`` standard errors.
    """

    first: int = 3
    most: int = 15
    seconds: float = 2.0
    separation: float = 4.0


@attrs.frozen
class Measured:
    """What measuring one problem gave.

    ``times`` holds, per choice, every repetition in milliseconds, in the order measured; a choice that failed has the
    one entry ``inf``, and ``failures`` says why.
    """

    times: Times
    failures: dict[str, str]

    @property
    def winner(self) -> str | None:
        """The choice with the smallest median; ``None`` where every choice failed."""
        medians = {choice: statistics.median(times) for choice, times in self.times.items()}
        best = min(medians, key=medians.__getitem__)
        return best if medians[best] < math.inf else None


def measure(
    choices: Sequence[str],
    functions: Mapping[str, Function],
    timer: Timer,
    effort: Effort,
    clock: Callable[[], float] = time.monotonic,
) -> Measured:
    """Time the choices in turns, every second turn in reverse order, so that drift hits all of them alike.

    A choice that ``functions`` lacks, that raises, or whose time is not a positive finite number has failed; the
    others go on. ``clock`` counts seconds.
    """
    problem = _Problem(timer)
    end = clock() + effort.seconds
    with _without_garbage_collection():
        for choice in choices:
            problem.prepare(choice, functions.get(choice))
        for turn in range(effort.most):
            contenders = list(problem.repetitions)
            if turn >= effort.first:
                contenders = undecided({choice: problem.times[choice] for choice in contenders}, effort.separation)
                if len(contenders) < 2 or clock() > end:
                    break
            for choice in contenders if turn % 2 == 0 else reversed(contenders):
                problem.repeat(choice)
    return Measured({choice: problem.times[choice] for choice in choices}, problem.failures)


def undecided(times: Mapping[str, Sequence[float]], separation: float) -> list[str]:
    """The choices that may still be the best: the one with the smallest median, and those not clearly behind it."""
    if not times:
        return []
    best = min(times, key=lambda choice: statistics.median(times[choice]))
    return [choice for choice in times if choice == best or not _clearly_behind(times[choice], times[best], separation)]


def _clearly_behind(slow: Sequence[float], fast: Sequence[float], separation: float) -> bool:
    if min(slow) <= max(fast):
        return False
    # In logarithms, a spread in per cent is the same for a microsecond and for a second.
    logs = [[math.log(time) for time in times] for times in (slow, fast)]
    gap = statistics.median(logs[0]) - statistics.median(logs[1])
    error = math.sqrt(sum(statistics.variance(log) / len(log) for log in logs)) if min(map(len, logs)) > 1 else math.inf
    return gap > separation * error


class _Problem:
    """The state of one problem: repetitions so far, and the choices that still run."""

    def __init__(self, timer: Timer) -> None:
        self.timer = timer
        self.times: Times = {}
        self.failures: dict[str, str] = {}
        self.repetitions: dict[str, Repetition] = {}

    def prepare(self, choice: str, function: Function | None) -> None:
        self.times[choice] = []
        if function is None:
            self._fail(choice, "the operator does not offer it for this problem")
            return
        try:
            self.repetitions[choice] = self.timer.prepare(function)
        except Exception as error:
            self._fail(choice, describe(error))

    def repeat(self, choice: str) -> None:
        try:
            time_ms = self.repetitions[choice]()
        except Exception as error:
            self._fail(choice, describe(error))
            return
        if 0 < time_ms < math.inf:
            self.times[choice].append(time_ms)
        else:
            self._fail(choice, f"timed as {time_ms} ms")

    def _fail(self, choice: str, reason: str) -> None:
        self.times[choice] = [math.inf]
        self.failures[choice] = reason
        self.repetitions.pop(choice, None)


def describe(error: BaseException) -> str:
    """An exception in one short line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """A collection in the middle of a repetition takes longer than many kernels."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
