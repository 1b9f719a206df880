"""Engines: where the workers of a collection live, and how shards get to them and outcomes back.

The one here measures in this process. :mod:`autoheur.measure.pool` has one worker per GPU or set of cores of this
machine, :mod:`autoheur.measure.cluster` those of a Ray cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Protocol

import attrs

from autoheur.fingerprint import Fingerprint
from autoheur.measure import devices
from autoheur.measure.journal import Entry
from autoheur.measure.worker import Job, Measurable, Outcome, Shard, Worker


@attrs.frozen
class Started:
    """A worker is there; from its first shard on, ``environment`` describes what it measures with."""

    worker: str
    device: Fingerprint
    environment: dict[str, Any]


@attrs.frozen
class Finished:
    """A worker has measured a shard."""

    worker: str
    shard: Shard
    outcome: Outcome


@attrs.frozen
class Lost:
    """A worker died and is being replaced; ``shard`` is what it was measuring, if anything."""

    worker: str
    shard: Shard | None
    reason: str


Event = Started | Finished | Lost
Tell = Callable[[Entry], None]


class Engine(Protocol):
    """Workers that measure shards side by side.

    ``in_process`` engines tell of each problem as it is done, and cannot replace a worker whose device broke down; the
    others can.
    """

    in_process: bool

    @property
    def workers(self) -> int:
        """How many workers measure at a time."""
        ...

    @property
    def settings(self) -> dict[str, Any]:
        """What is stored with the measurements; plain JSON data."""
        ...

    def fingerprint(self, device: str) -> Fingerprint:
        """The device of each worker, known before any is started.

        Raises:
            InputError: there is no such device, or not as many as are asked for.
        """
        ...

    def start(self, job: Job, operator: Measurable, tell: Tell) -> None:
        """Start the workers."""
        ...

    def wants(self) -> bool:
        """Whether a worker is waiting for a shard."""
        ...

    def submit(self, shard: Shard) -> None:
        """Hand a shard to a waiting worker."""
        ...

    @property
    def in_flight(self) -> int:
        """Shards that are being measured."""
        ...

    def wait(self) -> Event:
        """Wait for the next event, while workers are starting or shards in flight.

        Raises:
            AutoheurError: a worker cannot work, and another would not either.
        """
        ...

    def close(self) -> None:
        """Stop the workers, whatever they are doing."""
        ...


class InProcess:
    """The one worker that is this process; ``threads`` is torch's thread count while it measures."""

    in_process = True
    workers = 1

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads
        self._settings = ExitStack()
        self._shards: list[Shard] = []
        self._worker: Worker | None = None
        self._start: Callable[[], Worker] | None = None
        self._tell: Tell = lambda _: None

    @property
    def settings(self) -> dict[str, Any]:
        return {"engine": "local", "workers": self.workers}

    def fingerprint(self, device: str) -> Fingerprint:
        return devices.device_fingerprint(device)

    def start(self, job: Job, operator: Measurable, tell: Tell) -> None:
        self._settings.enter_context(devices.selected(job.device))
        threads = self._settings.enter_context(devices.pinned_settings(self._threads))
        self._start = lambda: Worker(job, operator, threads)
        self._tell = tell

    def wants(self) -> bool:
        return not self._shards

    def submit(self, shard: Shard) -> None:
        self._shards.append(shard)

    @property
    def in_flight(self) -> int:
        return len(self._shards)

    def wait(self) -> Event:
        assert self._start is not None
        if self._worker is None:
            self._worker = self._start()
            return Started("0", self.fingerprint(self._worker.device), self._worker.environment)
        shard = self._shards.pop()
        return Finished("0", shard, self._worker.measure(shard, self._tell))

    def close(self) -> None:
        self._settings.close()
