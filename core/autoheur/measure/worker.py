"""A worker measures shards of problems on one device, in whatever process it lives."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Protocol

import attrs

from autoheur.errors import PluginError
from autoheur.fingerprint import Fingerprint
from autoheur.measure import devices
from autoheur.measure.interleaving import Effort, Measured, describe, measure
from autoheur.measure.journal import Entry
from autoheur.measure.problems import Key, as_problem
from autoheur.measure.reference import Reference
from autoheur.measure.timers import Timer, timer_for
from autoheur.types import Feature, Problem


class Measurable(Protocol):
    """What collecting needs of an operator; the registry's operators have it."""

    @property
    def name(self) -> str: ...

    @property
    def raw_features(self) -> Sequence[Feature]: ...

    def choices(self, problem: Problem | None = None) -> Sequence[str]: ...

    def benchmark(self, problem: Problem, device: str) -> Mapping[str, Callable[[], object]]: ...

    def problems(self, random: Random, device: Fingerprint) -> Iterator[Problem]: ...


@attrs.frozen
class Job:
    """How to measure; sent to other processes as it is. ``operator`` is a name, ``timer`` ``None`` the device's own."""

    operator: str
    device: str
    effort: Effort
    timer: Timer | None = None


@attrs.frozen
class Shard:
    """Problems to measure in a row, at least one and no new one after ``seconds``.

    ``losses`` counts the workers that were lost while they measured it.
    """

    keys: tuple[Key, ...]
    seconds: float
    losses: int = 0


@attrs.frozen
class Outcome:
    """What became of a shard: problems measured, and the ``rest``, which was not.

    ``reference_ms`` are the reference kernel's times before and after. ``breakdown`` says how the device stopped
    working; the last of ``entries`` is then the problem that probably broke it. ``interrupted`` is for Ctrl-C.
    """

    entries: tuple[Entry, ...]
    reference_ms: tuple[float, float]
    rest: tuple[Key, ...]
    breakdown: str | None = None
    interrupted: bool = False


class Worker:
    """Measures problems of ``operator`` as ``job`` says; ``environment`` describes what it measures with."""

    def __init__(self, job: Job, operator: Measurable, threads: int) -> None:
        """Prepare the device.

        Raises:
            InputError: the device's timer is missing.
        """
        self.operator = operator
        self.device = job.device
        self._timer = job.timer or timer_for(job.device)
        self._effort = job.effort
        self._reference = Reference(self._timer, job.device)
        self._latest: float | None = None
        self.environment: dict[str, Any] = {
            **devices.environment(job.device, threads),
            "timer": self._timer.settings,
            "effort": attrs.asdict(job.effort),
            "reference": str(self._reference.kernel),
        }

    def measure(self, shard: Shard, tell: Callable[[Entry], None] | None = None) -> Outcome:
        """Measure a shard, and ``tell`` each problem as it is done.

        The reference kernel is timed after it; where that fails, the device is broken. The problem that broke it is
        kept as failed, so that it is not tried again; those after it are not kept, since their failures say nothing
        about them.

        Raises:
            PluginError: the operator breaks the contract.
        """
        entries: list[Entry] = []
        breakdown, interrupted = None, False
        end = time.monotonic() + shard.seconds
        before = self._latest or math.inf
        try:
            before = self._latest = self._latest or self._reference.time()
            for key in shard.keys:
                if entries and time.monotonic() >= end:
                    break
                entries.append(self._measure(key))
                if tell is not None:
                    tell(entries[-1])
            self._latest = self._reference.time()
        except KeyboardInterrupt:
            interrupted = True
        except PluginError:
            raise
        except Exception as error:
            breakdown = describe(error)
            # Nothing runs on a broken device: its work ends in problems of which every choice failed.
            last_good = max(
                (i for i, entry in enumerate(entries) if len(entry.failures) < len(entry.times)), default=-1
            )
            del entries[last_good + 2 :]
        rest = shard.keys[len(entries) :]
        return Outcome(tuple(entries), (before, self._latest or before), rest, breakdown, interrupted)

    def _measure(self, key: Key) -> Entry:
        problem = as_problem(key, self.operator.raw_features)
        choices = self.operator.choices(problem)
        try:
            functions = self.operator.benchmark(problem, self.device)
        except PluginError:
            raise
        except Exception as error:  # most often out of memory: no choice can run
            measured = all_failed(choices, describe(error))
        else:
            unknown = [choice for choice in functions if choice not in choices]
            if unknown:
                raise PluginError(f"operator {self.operator.name!r} benchmarks {unknown[0]!r}, none of its choices")
            measured = measure(choices, functions, self._timer, self._effort)
            del functions  # the operands must be gone before memory is released and the next ones come
        if measured.failures:
            devices.release_memory(self.device)
        return Entry(key, measured.times, measured.failures)


def all_failed(choices: Sequence[str], reason: str) -> Measured:
    """A problem of which no choice could be measured."""
    return Measured({choice: [math.inf] for choice in choices}, dict.fromkeys(choices, reason))
