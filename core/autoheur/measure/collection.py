"""Collects measurements: problems, one after the other, into a file that no interruption can harm."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Protocol

import attrs

from autoheur.dataset.dataset import Dataset
from autoheur.dataset.store import read_parquet, write_parquet
from autoheur.errors import AutoheurError, InputError, PluginError
from autoheur.fingerprint import Fingerprint
from autoheur.measure import assembly, devices
from autoheur.measure.interleaving import Effort, Measured, describe, measure
from autoheur.measure.journal import Batch, Entry, Header, Journal
from autoheur.measure.problems import Key, as_problem, key_of
from autoheur.measure.reference import Reference, is_quiet
from autoheur.measure.timers import Timer, timer_for
from autoheur.types import Feature, Problem

BATCH_PROBLEMS = 20
BATCH_SECONDS = 5.0
"""A batch, which is what a kill can lose, ends after as many problems or as much time, whichever comes first."""

_MOST_REPEATS = 100_000
"""Problems that a sampler may repeat in a row before it counts as exhausted."""


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

    ``problems`` counts those in the file, ``measured`` those of this call; ``goal`` is how many problems there will be in the end,
    where that is known. ``seconds`` have passed of ``budget_s``. ``wins`` counts, per choice, the problems it was quickest on; ``failed`` the
    choices that failed.
    """

    problems: int
    measured: int
    goal: int | None
    seconds: float
    budget_s: float | None
    wins: Mapping[str, int]
    failed: int
    noisy_batches: int


@attrs.frozen
class CollectResult:
    """What a collection left in ``path``; the counts are of this call, except ``problems``, which is of the whole file.

    ``noisy_batches`` of ``batches`` were measured while the reference kernel's time was off.
    """

    path: Path
    problems: int
    measured: int
    repetitions: int
    failed: int
    wins: Mapping[str, int]
    batches: int
    noisy_batches: int
    seconds: float
    interrupted: bool


def collect(
    operator: Measurable,
    out: Path,
    device: str = "cpu",
    *,
    problems: int | None = None,
    time_budget_s: float | None = None,
    seed: int | None = None,
    source: Sequence[Problem] | None = None,
    resume: bool = False,
    effort: Effort | None = None,
    timer: Timer | None = None,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> CollectResult:
    """Measure problems of ``operator`` on ``device`` into the dataset ``out``.

    Problems come from the operator's sampler, started with ``seed`` (default 0), or from ``source``. Collecting ends when ``out`` holds
    ``problems`` of them, after ``time_budget_s`` (at least one problem is measured), when the source is exhausted, or on Ctrl-C. Measurements are
    gathered in a journal beside ``out``, which becomes ``out`` in the end. ``resume`` continues what is there, finished or killed, with the
    seed it was started with, and measures no problem twice.

    Raises:
        InputError: there is neither goal nor source; ``out`` exists and ``resume`` was not asked for; what is there is of another
            operator, device or seed; the device is not at hand; the folder cannot be written to.
        PluginError: the operator breaks the contract.
        AutoheurError: the device stopped working; what was measured is kept, and can be resumed.
    """
    start = time.monotonic()
    if problems is None and time_budget_s is None and source is None:
        raise InputError("nothing says when to stop: give a number of problems, a time budget, or a file of shapes")
    fingerprint = devices.device_fingerprint(device)
    header = Header(operator.name, tuple(operator.raw_features), fingerprint)
    journal_path = out.with_name(out.name + ".journal")
    previous = _previous(out, journal_path, header, resume)
    timer = timer or timer_for(device)
    effort = effort or Effort()
    with devices.pinned_settings(threads) as pinned, Journal(journal_path, header) as journal:
        try:
            before = _Before.of(previous, journal)
            seed = None if source is not None else before.seed(seed, out)
            collector = _Collector(operator, device, timer, effort, journal, progress, start, problems, time_budget_s)
            upcoming = _unmeasured(operator, fingerprint, seed, source, before.keys)
            collector.run(upcoming, len(before.keys), seed, devices.environment(device, pinned))
        finally:
            # Also after an error: the journal holds complete batches only, and out is replaced as a whole.
            dataset = _finish(journal, out, operator, previous)
    return collector.result(out, 0 if dataset is None else len(dataset.problems))


def _previous(out: Path, journal: Path, header: Header, resume: bool) -> Dataset | None:
    """What an earlier collection finished in ``out``, checked against ``header``."""
    if not resume:
        for path, what in ((out, "exists"), (journal, "holds an interrupted collection")):
            if path.exists():
                raise InputError(f"{path} {what}: add --resume to continue it, or choose another --out")
    if not out.parent.is_dir():
        raise InputError(f"{out}: there is no folder {out.parent}")
    if not out.exists():
        return None
    previous = read_parquet(out)
    difference = assembly.header_of(previous).difference(header)
    if difference:
        raise InputError(f"{out}: {difference}; choose another --out")
    return previous


@attrs.frozen
class _Before:
    """What earlier sessions measured, and the seed of the last of them that sampled."""

    keys: set[Key]
    last_seed: int | None

    @classmethod
    def of(cls, previous: Dataset | None, journal: Journal) -> _Before:
        sessions: list[dict[str, Any]] = []
        keys: set[Key] = set()
        if previous is not None:
            keys |= assembly.keys_of(previous)
            sessions += previous.environment.get("sessions", ())
        keys |= {entry.key for batch in journal.contents.batches for entry in batch.entries}
        sessions += journal.contents.sessions
        seeds = [session["seed"] for session in sessions if session.get("seed") is not None]
        return cls(keys, seeds[-1] if seeds else None)

    def seed(self, asked: int | None, out: Path) -> int:
        if asked is not None and self.last_seed is not None and asked != self.last_seed:
            raise InputError(f"{out}: it was started with seed {self.last_seed}, not {asked}; leave --seed out to continue it")
        return next((seed for seed in (asked, self.last_seed) if seed is not None), 0)


def _unmeasured(
    operator: Measurable, device: Fingerprint, seed: int | None, source: Iterable[Problem] | None, measured: set[Key]
) -> Iterator[Key]:
    """The problems to measure, each once, without those in ``measured``."""
    seen = set(measured)
    repeats = 0
    for problem in operator.problems(Random(seed), device) if source is None else source:
        try:
            key = key_of(problem, operator.raw_features)
        except ValueError as error:
            raise PluginError(f"operator {operator.name!r}: a problem does not fit its features: {error}") from None
        if key not in seen:
            seen.add(key)
            repeats = 0
            yield key
        elif (repeats := repeats + 1) > _MOST_REPEATS and source is None:
            return


def _finish(journal: Journal, out: Path, operator: Measurable, previous: Dataset | None) -> Dataset | None:
    """Turn the journal into the dataset ``out`` and remove it; ``None`` where nothing was ever measured."""
    contents = journal.read()
    dataset = previous
    if contents.batches:
        dataset = assembly.assemble(contents, operator.choices(None), previous)
        write_parquet(dataset, out)
    journal.remove()
    return dataset


class _Collector:
    """The state of one call: what it measured so far."""

    def __init__(
        self,
        operator: Measurable,
        device: str,
        timer: Timer,
        effort: Effort,
        journal: Journal,
        progress: Callable[[Progress], None] | None,
        start: float,
        goal: int | None,
        budget_s: float | None,
    ) -> None:
        self.operator = operator
        self.device = device
        self.timer = timer
        self.effort = effort
        self.journal = journal
        self.progress = progress
        self.start = start
        self.goal = goal
        self.budget_s = budget_s
        self.measured = 0
        self.repetitions = 0
        self.failed = 0
        self.wins: Counter[str] = Counter()
        self.batches: list[Batch] = []
        self.interrupted = False

    def run(self, upcoming: Iterator[Key], already: int, seed: int | None, environment: dict[str, Any]) -> None:
        """Measure what is upcoming, batch by batch, until a limit is reached."""
        wanted = None if self.goal is None else max(0, self.goal - already)
        upcoming = itertools.islice(upcoming, wanted)
        if wanted == 0:
            return
        try:
            reference = Reference(self.timer, self.device)
            session = self.journal.start_session(
                {
                    **environment,
                    "seed": seed,
                    "started": datetime.now(UTC).isoformat(timespec="seconds"),
                    "timer": self.timer.settings,
                    "effort": attrs.asdict(self.effort),
                    "reference": str(reference.kernel),
                }
            )
            latest = reference.time()
            while batch := self._batch(upcoming, already):
                before, latest = latest, self._reference(reference, batch)
                self._keep(Batch(session, tuple(batch), (before, latest)))
                if self.interrupted:
                    return
        except KeyboardInterrupt:
            self.interrupted = True

    def _batch(self, upcoming: Iterator[Key], already: int) -> list[Entry]:
        """Measure the next batch. Ctrl-C ends it before the problem in flight."""
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
                self._report(already)
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
            reason = describe(error)
            functions, measured = {}, Measured({choice: [math.inf] for choice in choices}, dict.fromkeys(choices, reason))
        else:
            unknown = [choice for choice in functions if choice not in choices]
            if unknown:
                raise PluginError(f"operator {self.operator.name!r} benchmarks {unknown[0]!r}, which is none of its choices")
            measured = measure(choices, functions, self.timer, self.effort)
        del functions  # the operands must be gone before the next ones come
        if measured.failures:
            devices.release_memory(self.device)
        return measured

    def _reference(self, reference: Reference, batch: Sequence[Entry]) -> float:
        """Time the reference kernel after a batch.

        Raises:
            AutoheurError: it does not run any more, so the batch's failures say nothing about its problems.
        """
        try:
            return reference.time()
        except Exception as error:
            broken = next((entry for entry in batch if entry.failures), batch[-1])
            problem = as_problem(broken.key, self.operator.raw_features)
            raise AutoheurError(
                f"device {self.device!r} stopped working ({describe(error)}), perhaps on {problem}; "
                "what was measured before is kept, --resume continues"
            ) from error

    def _keep(self, batch: Batch) -> None:
        self.journal.append(batch)
        self.batches.append(batch)

    def _count(self, measured: Measured) -> None:
        self.measured += 1
        self.failed += len(measured.failures)
        self.repetitions += sum(
            len(times) for choice, times in measured.times.items() if choice not in measured.failures
        )
        if measured.winner is not None:
            self.wins[measured.winner] += 1

    def _report(self, already: int) -> None:
        if self.progress is not None:
            self.progress(
                Progress(
                    problems=already + self.measured,
                    measured=self.measured,
                    goal=self.goal,
                    seconds=time.monotonic() - self.start,
                    budget_s=self.budget_s,
                    wins=dict(self.wins),
                    failed=self.failed,
                    noisy_batches=self._noisy_batches(),
                )
            )

    def _noisy_batches(self) -> int:
        usual = assembly.usual_reference(self.batches)
        return sum(not is_quiet(batch.reference_ms, usual[batch.session]) for batch in self.batches)

    def result(self, path: Path, problems: int) -> CollectResult:
        kept = [entry for batch in self.batches for entry in batch.entries]
        return CollectResult(
            path=path,
            problems=problems,
            measured=len(kept),
            repetitions=self.repetitions,
            failed=self.failed,
            wins=dict(self.wins),
            batches=len(self.batches),
            noisy_batches=self._noisy_batches(),
            seconds=time.monotonic() - self.start,
            interrupted=self.interrupted,
        )
