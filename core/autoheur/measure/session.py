"""One session of collecting: the loop that measures problems, batch by batch, into a journal."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Protocol

import attrs

from autoheur.errors import AutoheurError, PluginError
from autoheur.fingerprint import Fingerprint
from autoheur.measure import devices
from autoheur.measure.assembly import usual_reference
from autoheur.measure.interleaving import Effort, Measured, describe, measure
from autoheur.measure.journal import Batch, Entry, Journal
from autoheur.measure.problems import Key, as_problem
from autoheur.measure.reference import Reference, is_quiet
from autoheur.measure.timers import Timer
from autoheur.types import Feature, Problem

BATCH_PROBLEMS = 20
BATCH_SECONDS = 5.0
"""A batch, which is what a kill can lose, ends after as many problems or as much time, whichever comes first."""


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
class Progress:
    """How far a collection is, after each problem.

    ``problems`` counts those in the file, ``measured`` those of this session; ``goal`` is how many there will be in
    the end, where that is known. ``seconds`` have passed of ``budget_s``. ``wins`` counts, per choice, the problems it
    was quickest on; ``failed`` the choices that failed.
    """

    problems: int
    measured: int
    goal: int | None
    seconds: float
    budget_s: float | None
    wins: Mapping[str, int]
    failed: int
    noisy_batches: int


@attrs.define
class Session:
    """Measures problems of ``operator`` on ``device`` into ``journal``.

    ``earlier`` problems are in the file already, ``goal`` will be in the end. The time budget counts from ``start``
    (``time.monotonic``).
    """

    operator: Measurable
    device: str
    timer: Timer
    effort: Effort
    journal: Journal
    earlier: int
    goal: int | None
    budget_s: float | None
    start: float
    progress: Callable[[Progress], None] | None = None
    measured: int = 0
    repetitions: int = 0
    failed: int = 0
    wins: Counter[str] = attrs.field(factory=Counter)
    batches: list[Batch] = attrs.field(factory=list)
    interrupted: bool = False

    def run(self, upcoming: Iterator[Key], environment: dict[str, Any]) -> None:
        """Measure what is upcoming until there is no more, the budget is spent, or Ctrl-C.

        Raises:
            AutoheurError: the device stopped working.
            PluginError: the operator breaks the contract.
        """
        try:
            reference = Reference(self.timer, self.device)
            latest = reference.time()
            described = {
                **environment,
                "timer": self.timer.settings,
                "effort": attrs.asdict(self.effort),
                "reference": str(reference.kernel),
            }
            number = self.journal.start_session(described)
            while not self.interrupted and (batch := self._batch(upcoming)):
                before, latest = latest, self._time(reference, number, latest, batch)
                self._keep(Batch(number, tuple(batch), (before, latest)))
        except KeyboardInterrupt:
            self.interrupted = True

    def _batch(self, upcoming: Iterator[Key]) -> list[Entry]:
        """Measure the next batch. Ctrl-C ends it, without the problem in flight."""
        entries: list[Entry] = []
        end = time.monotonic() + BATCH_SECONDS
        try:
            while len(entries) < BATCH_PROBLEMS and time.monotonic() < end and not self._out_of_time():
                key = next(upcoming, None)
                if key is None:
                    break
                measured = self._measure(key)
                entries.append(Entry(key, measured.times, measured.failures))
                self._count(measured)
        except KeyboardInterrupt:
            self.interrupted = True
        return entries

    def _out_of_time(self) -> bool:
        return self.budget_s is not None and self.measured > 0 and time.monotonic() - self.start >= self.budget_s

    def _measure(self, key: Key) -> Measured:
        problem = as_problem(key, self.operator.raw_features)
        choices = self.operator.choices(problem)
        try:
            functions = self.operator.benchmark(problem, self.device)
        except PluginError:
            raise
        except Exception as error:  # most often out of memory: no choice can run
            measured = Measured({choice: [math.inf] for choice in choices}, dict.fromkeys(choices, describe(error)))
        else:
            unknown = [choice for choice in functions if choice not in choices]
            if unknown:
                raise PluginError(f"operator {self.operator.name!r} benchmarks {unknown[0]!r}, none of its choices")
            measured = measure(choices, functions, self.timer, self.effort)
            del functions  # the operands must be gone before memory is released and the next ones come
        if measured.failures:
            devices.release_memory(self.device)
        return measured

    def _time(self, reference: Reference, number: int, before: float, batch: Sequence[Entry]) -> float:
        """Time the reference kernel after a batch.

        Raises:
            AutoheurError: it does not run any more. The problem that broke the device is kept as failed, so that it is
                not tried again; those after it are not kept, since their failures say nothing about them.
        """
        try:
            return reference.time()
        except KeyboardInterrupt:
            self.interrupted = True
            return before
        except Exception as error:
            # Nothing runs on a broken device: its work ends in problems of which every choice failed.
            last_good = max((i for i, entry in enumerate(batch) if len(entry.failures) < len(entry.times)), default=-1)
            kept = batch[: last_good + 2]
            self._keep(Batch(number, tuple(kept), (before, before)))
            problem = as_problem(kept[-1].key, self.operator.raw_features)
            raise AutoheurError(
                f"device {self.device!r} stopped working ({describe(error)}), probably on {problem}; "
                "what was measured before is kept, and resuming leaves that problem out"
            ) from error

    def _keep(self, batch: Batch) -> None:
        self.journal.append(batch)
        self.batches.append(batch)

    def _count(self, measured: Measured) -> None:
        self.measured += 1
        self.failed += len(measured.failures)
        good = [times for choice, times in measured.times.items() if choice not in measured.failures]
        self.repetitions += sum(map(len, good))
        if measured.winner is not None:
            self.wins[measured.winner] += 1
        if self.progress is not None:
            self.progress(
                Progress(
                    problems=self.earlier + self.measured,
                    measured=self.measured,
                    goal=self.goal,
                    seconds=time.monotonic() - self.start,
                    budget_s=self.budget_s,
                    wins=dict(self.wins),
                    failed=self.failed,
                    noisy_batches=self.noisy_batches,
                )
            )

    @property
    def noisy_batches(self) -> int:
        usual = usual_reference(self.batches)
        return sum(not is_quiet(batch.reference_ms, usual[batch.session]) for batch in self.batches)
