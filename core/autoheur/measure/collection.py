"""Collects measurements into a dataset that no interruption can harm."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import attrs

from autoheur.dataset.dataset import Dataset
from autoheur.dataset.parquet import read_parquet, write_parquet
from autoheur.errors import InputError, PluginError
from autoheur.files import check_writable
from autoheur.fingerprint import Fingerprint
from autoheur.measure import assembly
from autoheur.measure.collector import Progress, Session
from autoheur.measure.engines import Engine, InProcess
from autoheur.measure.interleaving import Effort
from autoheur.measure.journal import Header, Journal
from autoheur.measure.problems import Key, as_problem, key_of
from autoheur.measure.timers import Timer
from autoheur.measure.worker import Job, Measurable
from autoheur.types import Problem

MOST_REPEATS = 100_000
"""Problems that a sampler may repeat in a row before it counts as exhausted."""


@attrs.frozen
class CollectResult:
    """What a collection left in ``path``; the counts are of this call, except ``problems``, which is of the whole file.

    ``failed`` counts choices that failed. ``noisy_batches`` of ``batches`` were measured while the reference kernel's
    time was off. ``lost`` workers died or had their device break down, and were replaced.
    """

    path: Path
    problems: int
    measured: int
    repetitions: int
    failed: int
    wins: Mapping[str, int]
    batches: int
    noisy_batches: int
    lost: int
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
    engine: Engine | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> CollectResult:
    """Measure problems of ``operator`` on ``device`` into the dataset ``out``.

    Problems come from the operator's sampler, started with ``seed`` (default 0), or from ``source``. Collecting ends
    when ``out`` holds ``problems`` of them, after ``time_budget_s`` (at least one problem is measured), when the
    source is exhausted, or on Ctrl-C. Measurements are gathered in a journal beside ``out``, which becomes ``out`` in
    the end. ``resume`` continues what is there, finished or killed, with the seed it was started with and on any
    engine, and measures no problem twice. Problems of a source that leave nothing to choose are passed over.

    ``engine`` is where the workers are (default: this process). One with workers in other processes looks the operator
    up by name, in the installed plugins. The same seed gives the same problems on every engine, in the order in which
    they were done.

    Raises:
        InputError: there is neither goal nor source; ``out`` exists and ``resume`` was not asked for; what is there is
            of another operator, device or seed; the device is not at hand; the folder cannot be written to.
        PluginError: the operator breaks the contract.
        AutoheurError: the device stopped working; what was measured is kept, and can be resumed.
    """
    start = time.monotonic()
    _check_limits(problems, time_budget_s, source)
    check_writable(out)
    journal_path = out.with_name(f"{out.name}.journal")
    if not resume:
        _refuse_existing(out, journal_path)
    engine = engine or InProcess()
    fingerprint = engine.fingerprint(device)
    header = Header(operator.name, tuple(operator.raw_features), fingerprint)
    previous = _previous(out, header)
    job = Job(operator.name, device, effort or Effort(), timer)
    with Journal(journal_path, header) as journal:
        before = _Before.of(previous, journal)
        used_seed = None if source is not None else before.seed(seed, out)
        upcoming = _unmeasured(operator, fingerprint, used_seed, source, before.keys)
        upcoming, goal = _limited(upcoming, source is not None, problems, len(before.keys))
        session = Session(operator, job, engine, journal, len(before.keys), goal, time_budget_s, start, progress)
        environment = {"seed": used_seed, "started": datetime.now(UTC).isoformat(timespec="seconds")}
        try:
            if goal is None or goal > len(before.keys):
                session.run(upcoming, environment)
        finally:
            # Also after an error: the journal holds whole batches only, and the dataset is replaced as a whole.
            total = _finish(journal, out, operator, previous)
    return CollectResult(
        path=out,
        problems=total,
        measured=sum(len(batch.entries) for batch in session.batches),
        repetitions=session.repetitions,
        failed=session.failed,
        wins=dict(session.wins),
        batches=len(session.batches),
        noisy_batches=session.noisy_batches,
        lost=session.lost,
        seconds=time.monotonic() - start,
        interrupted=session.interrupted,
    )


def _check_limits(problems: int | None, time_budget_s: float | None, source: Sequence[Problem] | None) -> None:
    if problems is None and time_budget_s is None and source is None:
        raise InputError("nothing says when to stop: give a number of problems, a time budget, or a file of shapes")
    if problems is not None and problems < 1:
        raise InputError(f"the number of problems must be at least 1, not {problems}")
    if time_budget_s is not None and not time_budget_s > 0:
        raise InputError(f"the time budget must be more than 0 s, not {time_budget_s:g}")


def _refuse_existing(out: Path, journal: Path) -> None:
    for path, what in ((out, "exists"), (journal, "holds an interrupted collection")):
        if path.exists():
            raise InputError(f"{path} {what}: add --resume to continue it, or choose another --out")


def _previous(out: Path, header: Header) -> Dataset | None:
    """What an earlier collection finished in ``out``, checked against ``header``."""
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
        keys = {entry.key for batch in journal.contents.batches for entry in batch.entries}
        sessions: list[dict[str, Any]] = []
        if previous is not None:
            keys |= assembly.keys_of(previous)
            sessions += previous.environment.get("sessions", ())
        sessions += journal.contents.sessions
        seeds = [session["seed"] for session in sessions if session.get("seed") is not None]
        return cls(keys, seeds[-1] if seeds else None)

    def seed(self, asked: int | None, out: Path) -> int:
        """The seed to sample with: the one it was started with, which must be the one ``asked`` for."""
        if self.last_seed is None:
            return 0 if asked is None else asked
        if asked not in (None, self.last_seed):
            raise InputError(
                f"{out}: it was started with seed {self.last_seed}, not {asked}; leave --seed out to continue it"
            )
        return self.last_seed


def _unmeasured(
    operator: Measurable, device: Fingerprint, seed: int | None, source: Iterable[Problem] | None, measured: set[Key]
) -> Iterator[Key]:
    """The problems to measure, each once, without those in ``measured`` and those that leave nothing to choose."""
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
            if len(operator.choices(as_problem(key, operator.raw_features))) > 1:
                yield key
        elif (repeats := repeats + 1) > MOST_REPEATS:
            return


def _limited(
    upcoming: Iterator[Key], finite: bool, problems: int | None, earlier: int
) -> tuple[Iterator[Key], int | None]:
    """Stop at ``problems`` in all, and say how many there will be where that is known."""
    if finite:
        keys = list(upcoming)
        goal = earlier + len(keys) if problems is None else min(problems, earlier + len(keys))
        return iter(keys[: max(0, goal - earlier)]), goal
    return upcoming if problems is None else itertools.islice(upcoming, max(0, problems - earlier)), problems


def _finish(journal: Journal, out: Path, operator: Measurable, previous: Dataset | None) -> int:
    """Turn the journal into the dataset ``out`` and remove it; return how many problems ``out`` holds."""
    contents = journal.read()
    dataset = previous
    if contents.batches:
        dataset = assembly.assemble(contents, [choice.name for choice in operator.choices(None)], previous)
        write_parquet(dataset, out)
    journal.remove()
    return 0 if dataset is None else len(dataset.problems)
