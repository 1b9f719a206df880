"""One session of collecting: hands problems to an engine, shard by shard, and writes what comes back to a journal."""

from __future__ import annotations

import itertools
import math
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from autoheur.errors import AutoheurError, InputError
from autoheur.measure.assembly import undisturbed_references
from autoheur.measure.engines import Engine, Event, Finished, Lost, Started
from autoheur.measure.journal import Batch, Entry, Journal
from autoheur.measure.problems import Key, as_problem
from autoheur.measure.reference import is_quiet
from autoheur.measure.worker import Job, Measurable, Outcome, Shard

SHORTEST_BATCH_S, LONGEST_BATCH_S = 10.0, 60.0
BATCH_SHARE = 0.5
"""A batch, which is what a kill can lose, takes about this share of the time spent before, within these limits: the
longer it is, the further apart are the repetitions of a problem, and the more of the machine's moods they see."""

LEAST_BATCH_S = 2.0
"""What is left of a time budget must be this much for another batch."""

FEWEST_PROBLEMS, MOST_PROBLEMS = 20, 600
"""Problems per batch. Near a goal there are fewer, so that all workers are done at about the same time."""

MOST_LOSSES = 2
"""Workers that a batch may cost before its problems are tried one by one; one that costs yet another has failed."""

MOST_LOSSES_IN_A_ROW = 8
"""Workers that may be lost without a batch in between, before it is taken that all would be."""


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
    """Measures problems of ``operator`` as ``job`` says, on the workers of ``engine``, into ``journal``.

    ``earlier`` problems are in the file already, ``goal`` will be in the end. The time budget counts from ``start``
    (``time.monotonic``). ``lost`` counts workers that died or whose device broke down, and were replaced.
    """

    operator: Measurable
    job: Job
    engine: Engine
    journal: Journal
    earlier: int
    goal: int | None
    budget_s: float | None
    start: float
    progress: Callable[[Progress], None] | None = None
    measured: int = 0
    repetitions: int = 0
    failed: int = 0
    lost: int = 0
    wins: Counter[str] = attrs.field(factory=Counter)
    batches: list[Batch] = attrs.field(factory=list)
    interrupted: bool = False
    _environment: dict[str, Any] = attrs.field(factory=dict)
    _numbers: dict[str, int] = attrs.field(factory=dict)
    _again: deque[Shard] = attrs.field(factory=deque)
    _hopeless: list[Entry] = attrs.field(factory=list)
    _submitted: int = 0
    _taken: int = 0
    _losses_in_a_row: int = 0

    def run(self, upcoming: Iterator[Key], environment: dict[str, Any]) -> None:
        """Measure what is upcoming until there is no more, the budget is spent, or Ctrl-C.

        Raises:
            AutoheurError: the device stopped working, or the workers keep dying.
            InputError: the workers' devices are of different kinds.
            PluginError: the operator breaks the contract.
        """
        self._environment = {**environment, **self.engine.settings}
        try:
            self.engine.start(self.job, self.operator, self._count)
            while self._submit(upcoming) or self.engine.in_flight:
                self._handle(self.engine.wait())
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self.engine.close()
        if self._hopeless and self.batches:
            self._keep(self.batches[-1].session, (), self.batches[-1].reference_ms)

    def _submit(self, upcoming: Iterator[Key]) -> bool:
        """Hand shards to the workers that wait for one; return whether there may be more for those that start."""
        while self.engine.wants():
            shard = self._next_shard(upcoming)
            if shard is None:
                return False
            self._submitted += 1
            self.engine.submit(shard)
        return True

    def _next_shard(self, upcoming: Iterator[Key]) -> Shard | None:
        elapsed = time.monotonic() - self.start
        seconds = min(max(SHORTEST_BATCH_S, BATCH_SHARE * elapsed), LONGEST_BATCH_S)
        if self.budget_s is not None:
            seconds = min(seconds, self.budget_s - elapsed)
        if self.interrupted or (seconds < LEAST_BATCH_S and self._submitted):
            return None
        if self._again:
            return attrs.evolve(self._again.popleft(), seconds=seconds)
        keys = tuple(itertools.islice(upcoming, self._batch_size()))
        self._taken += len(keys)
        return Shard(keys, seconds) if keys else None

    def _batch_size(self) -> int:
        if self.goal is None:
            return MOST_PROBLEMS
        share = math.ceil((self.goal - self.earlier - self._taken) / self.engine.workers)
        return min(max(FEWEST_PROBLEMS, share), MOST_PROBLEMS)

    def _handle(self, event: Event) -> None:
        match event:
            case Started(worker, device, environment):
                mismatch = self.journal.contents.header.device.mismatch(device)
                if mismatch:
                    raise InputError(
                        f"worker {worker} is on another device ({device.label()}) than this collection: {mismatch}"
                    )
                described = {**self._environment, **environment, "id": secrets.token_hex(8)}
                self._numbers[worker] = self.journal.start_session(described)
            case Finished(worker, shard, outcome):
                self._finish(worker, shard, outcome)
            case Lost(worker, shard, reason):
                self._lose(worker, shard, reason)

    def _finish(self, worker: str, shard: Shard, outcome: Outcome) -> None:
        if outcome.entries:
            self._keep(self._numbers[worker], outcome.entries, outcome.reference_ms)
        if not self.engine.in_process:
            for entry in outcome.entries:
                self._count(entry)
        if outcome.rest:
            self._again.appendleft(attrs.evolve(shard, keys=outcome.rest))
        self.interrupted = self.interrupted or outcome.interrupted
        if outcome.breakdown is None:
            self._losses_in_a_row = 0
        elif self.engine.in_process:
            where = ""
            if outcome.culprit is not None:
                problem = as_problem(outcome.culprit, self.operator.raw_features)
                where = f" on {problem}, which resuming leaves out"
            raise AutoheurError(
                f"device {self.job.device!r} stopped working ({outcome.breakdown}){where}; "
                "what was measured before is kept"
            )
        else:
            self._count_loss(worker, outcome.breakdown)

    def _lose(self, worker: str, shard: Shard | None, reason: str) -> None:
        """Have a lost worker's problems measured again: together once, then one by one, to find the one to blame."""
        if shard is not None:
            losses = shard.losses + 1
            if losses < MOST_LOSSES:
                self._again.append(attrs.evolve(shard, losses=losses))
            elif len(shard.keys) > 1:
                self._again.extend(attrs.evolve(shard, keys=(key,), losses=losses - 1) for key in shard.keys)
            else:
                for key in shard.keys:
                    self._give_up(key, reason)
        self._count_loss(worker, reason)

    def _give_up(self, key: Key, reason: str) -> None:
        choices = [choice.name for choice in self.operator.choices(as_problem(key, self.operator.raw_features))]
        failures = dict.fromkeys(choices, f"the worker was lost: {reason}")
        self._hopeless.append(Entry(key, {choice: [math.inf] for choice in choices}, failures))
        self._count(self._hopeless[-1])

    def _count_loss(self, worker: str, reason: str) -> None:
        self.lost += 1
        self._losses_in_a_row += 1
        if self._losses_in_a_row > MOST_LOSSES_IN_A_ROW:
            raise AutoheurError(
                f"{self._losses_in_a_row} workers in a row were lost, the last one ({worker}): {reason}; "
                "what was measured before is kept"
            )

    def _keep(self, session: int, entries: tuple[Entry, ...], reference_ms: tuple[float, ...]) -> None:
        batch = Batch(session, (*entries, *self._hopeless), reference_ms)
        self._hopeless.clear()
        self.journal.append(batch)
        self.batches.append(batch)

    def _count(self, entry: Entry) -> None:
        self.measured += 1
        self.failed += len(entry.failures)
        self.repetitions += sum(len(times) for choice, times in entry.times.items() if choice not in entry.failures)
        if entry.winner is not None:
            self.wins[entry.winner] += 1
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
        undisturbed_ms = undisturbed_references(self.batches)
        return sum(not is_quiet(batch.reference_ms, undisturbed_ms[batch.session]) for batch in self.batches)
