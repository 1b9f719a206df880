"""A worker measures shards of problems on one device, in whatever process it lives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Protocol

import attrs

from autoheur.errors import PluginError
from autoheur.fingerprint import Fingerprint
from autoheur.measure import devices
from autoheur.measure.interleaving import Effort, Measurement, describe
from autoheur.measure.journal import Entry
from autoheur.measure.problems import Key, as_problem
from autoheur.measure.reference import Reference
from autoheur.measure.timers import Timer, timer_for
from autoheur.types import Choice, Feature, Problem


class Measurable(Protocol):
    """What collecting needs of an operator; the registry's operators have it."""

    @property
    def name(self) -> str: ...

    @property
    def raw_features(self) -> Sequence[Feature]: ...

    def choices(self, problem: Problem | None = None) -> Sequence[Choice]: ...

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
    """Problems to measure together, at least one, in about ``seconds``.

    ``losses`` counts the workers that were lost while they measured it.
    """

    keys: tuple[Key, ...]
    seconds: float
    losses: int = 0


@attrs.frozen
class Outcome:
    """What became of a shard: problems measured, and the ``rest``, which was not.

    ``reference_ms`` are the reference kernel's times before, and after each time that all had a turn. ``breakdown``
    says how the device stopped working, and ``culprit`` on which problem, where that is known; it is kept as failed, so
    that it is not tried again. ``interrupted`` is for Ctrl-C.
    """

    entries: tuple[Entry, ...]
    reference_ms: tuple[float, ...]
    rest: tuple[Key, ...]
    breakdown: str | None = None
    culprit: Key | None = None
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
        self.environment: dict[str, Any] = {
            **devices.environment(job.device, threads),
            "timer": self._timer.settings,
            "effort": attrs.asdict(job.effort),
            "reference": self._reference.kernel,
        }

    def measure(self, shard: Shard, tell: Callable[[Entry], None] = lambda _: None) -> Outcome:
        """Measure a shard, whose problems take turns, and ``tell`` each problem that is done.

        No new problem is begun when the first repetitions of those begun will take half of the shard's time; the other
        half is for those whose choices are close.

        The reference kernel is timed along, and after each failure; where that fails, the device is broken. What
        has not had its first repetitions then, or at Ctrl-C, is part of the rest.

        Raises:
            PluginError: the operator breaks the contract.
        """
        begun: dict[Key, Measurement] = {}
        done: dict[Key, Entry] = {}
        reference_ms: list[float] = []
        suspect: Key | None = None
        breakdown, interrupted = None, False

        def settle(hurry: bool) -> None:
            for key, measurement in begun.items():
                if key not in done and not measurement.wants_another_turn(hurry=hurry):
                    done[key] = Entry(key, measurement.times, measurement.failures)
                    tell(done[key])

        try:
            reference_ms.append(self._reference.time())
            start = time.monotonic()
            for suspect in shard.keys:
                if begun and time.monotonic() >= start + shard.seconds / 2 / self._effort.first:
                    break
                begun[suspect] = self._begin(suspect)
                self._turn(begun[suspect])
            while True:
                suspect = None
                reference_ms.append(self._reference.time())
                settle(hurry=time.monotonic() >= start + shard.seconds)
                if len(done) == len(begun):
                    break
                for suspect in [key for key in begun if key not in done]:
                    self._turn(begun[suspect])
        except KeyboardInterrupt:
            interrupted = True
        except PluginError:
            raise
        except Exception as error:
            breakdown = describe(error)
            if suspect in begun:
                begun[suspect].give_up(f"the device stopped working: {breakdown}")
        if interrupted or breakdown is not None:
            settle(hurry=True)
        entries = tuple(done[key] for key in begun if key in done)
        rest = tuple(key for key in shard.keys if key not in done)
        return Outcome(entries, tuple(reference_ms), rest, breakdown, suspect if breakdown else None, interrupted)

    def _begin(self, key: Key) -> Measurement:
        problem = as_problem(key, self.operator.raw_features)
        choices = [choice.name for choice in self.operator.choices(problem)]
        return Measurement(choices, partial(self._prepare, problem, choices), self._timer, self._effort)

    def _prepare(self, problem: Problem, choices: Sequence[str]) -> Mapping[str, Callable[[], object]]:
        functions = self.operator.benchmark(problem, self.device)
        unknown = [choice for choice in functions if choice not in choices]
        if unknown:
            raise PluginError(f"operator {self.operator.name!r} benchmarks {unknown[0]!r}, none of its choices")
        return functions

    def _turn(self, measurement: Measurement) -> None:
        failed = len(measurement.failures)
        measurement.turn()
        if len(measurement.failures) > failed:
            devices.release_memory(self.device)
            self._reference.time()
