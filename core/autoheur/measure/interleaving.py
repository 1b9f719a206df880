"""Measures problems in turns: choices interleaved, with as many repetitions as it takes to tell them apart."""

from __future__ import annotations

import gc
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs

from autoheur.errors import PluginError
from autoheur.measure.timers import Function, Stopwatch, Timer

Times = dict[str, list[float]]


@attrs.frozen
class Effort:
    """How many repetitions a problem is worth.

    Every choice gets ``first`` repetitions; those that may still be the best get more, up to ``most``. A choice is
    clearly behind the best when none of its repetitions was as quick as any of the best's and the gap between the
    medians exceeds ``separation`` standard errors.
    """

    first: int = 3
    most: int = 15
    separation: float = 4.0


class Measurement:
    """One problem that is being measured, a turn at a time.

    Others take their turns in between, so that the repetitions of a problem are seconds apart, and what comes and goes
    on a machine shows in their spread. Each turn has operands of its own: none stay in memory while others are
    measured, and what their place in memory does to the times shows as well.

    ``times`` holds, per choice, every repetition in milliseconds, in the order measured; a choice that failed has the
    one entry ``inf``, and ``failures`` says why.
    """

    def __init__(
        self, choices: Sequence[str], prepare: Callable[[], Mapping[str, Function]], timer: Timer, effort: Effort
    ) -> None:
        """``prepare`` makes the operands and returns what is to be timed, per choice."""
        self._prepare = prepare
        self._effort = effort
        self._turns = 0
        self.times: Times = {choice: [] for choice in choices}
        self._stopwatches: dict[str, Stopwatch] = {choice: timer.stopwatch() for choice in choices}
        self.failures: dict[str, str] = {}

    def turn(self) -> None:
        """Time each choice that may still be the best once, every second turn in reverse order: drift hits all alike.

        A choice that is not there, that raises, or whose time is not a positive finite number has failed; the others
        go on. When the operands cannot be made, all have failed.

        Raises:
            PluginError: preparing broke the contract.
        """
        contenders = self._contenders()
        try:
            functions = self._prepare()
        except PluginError:
            raise
        except Exception as error:  # most often out of memory
            self.give_up(describe(error))
        else:
            with _without_garbage_collection():
                for choice in reversed(contenders) if self._turns % 2 else contenders:
                    self._repeat(choice, functions.get(choice))
        self._turns += 1

    def wants_another_turn(self, *, hurry: bool) -> bool:
        """Whether the choices have not had their first repetitions, or without ``hurry``, are not told apart yet."""
        if self._turns < self._effort.first:
            return bool(self._stopwatches)
        return not hurry and self._turns < self._effort.most and len(self._contenders()) > 1

    def give_up(self, reason: str) -> None:
        """Count every choice that has not failed yet as failed."""
        for choice in list(self._stopwatches):
            self._fail(choice, reason)

    def _contenders(self) -> list[str]:
        times = {choice: self.times[choice] for choice in self._stopwatches}
        return list(times) if self._turns < self._effort.first else undecided(times, self._effort.separation)

    def _repeat(self, choice: str, function: Function | None) -> None:
        if function is None:
            self._fail(choice, "the operator does not offer it for this problem")
            return
        try:
            time_ms = self._stopwatches[choice](function)
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
        del self._stopwatches[choice]


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
