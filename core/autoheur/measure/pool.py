"""The local pool: worker processes of this machine, one per GPU, or on a CPU one per set of cores.

Each is pinned to cores of its own. On a CPU a worker's device is therefore its set of cores, and what is measured
holds for programs that have as many: workers share caches and memory bandwidth, so one worker measures best.
"""

from __future__ import annotations

import multiprocessing
import signal
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import attrs
import torch

from autoheur.errors import AutoheurError, InputError
from autoheur.fingerprint import Fingerprint
from autoheur.measure import cores, devices
from autoheur.measure.engines import Event, Finished, Lost, Started, Tell
from autoheur.measure.worker import Job, Measurable, Outcome, Shard, Worker
from autoheur.registry import default_registry

_GRACE_SECONDS = 5.0
"""How long a worker may take to end before it is killed."""


@attrs.define(eq=False)
class _Member:
    """One worker process; ``shard`` is what it measures, and it ``waits`` for one when it has started."""

    name: str
    place: int
    process: BaseProcess
    connection: Connection
    shard: Shard | None = None
    waits: bool = False


class Pool:
    """As many worker processes as asked for, numbered; a GPU's workers are on devices 0, 1, …"""

    in_process = False

    def __init__(self, workers: int) -> None:
        """Divide this process's cores among the workers.

        Raises:
            InputError: there are not as many cores as workers.
        """
        self._cores = cores.divide(workers)
        self._members: list[_Member] = []
        self._started = 0
        self._job: Job | None = None

    @property
    def workers(self) -> int:
        return len(self._cores)

    @property
    def settings(self) -> dict[str, Any]:
        return {"engine": "local", "workers": self.workers}

    def fingerprint(self, device: str) -> Fingerprint:
        found = devices.device_fingerprint(device)
        if found.kind == "cpu":
            return attrs.evolve(found, cores=len(self._cores[0]))
        if torch.device(device).index is not None:
            raise InputError(f"device {device!r} is one device; several workers need the kind alone, {found.kind}")
        try:
            devices.device_fingerprint(f"{device}:{self.workers - 1}")
        except InputError:
            raise InputError(f"{self.workers} workers need as many {device} devices; use fewer workers") from None
        return found

    def start(self, job: Job, operator: Measurable, tell: Tell) -> None:
        self._job = job
        self._members = [self._spawn(place) for place in range(self.workers)]

    def _spawn(self, place: int) -> _Member:
        assert self._job is not None
        on_gpu = torch.device(self._job.device).type != "cpu"
        job = attrs.evolve(self._job, device=f"{self._job.device}:{place}") if on_gpu else self._job
        context = multiprocessing.get_context("spawn")  # a fork would inherit threads, and a GPU's state
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, job, self._cores[place]), daemon=True)
        process.start()
        theirs.close()  # so that a dead worker's end is closed, which is how its death is noticed
        self._started += 1
        return _Member(str(self._started), place, process, ours)

    def wants(self) -> bool:
        return any(member.waits for member in self._members)

    def submit(self, shard: Shard) -> None:
        member = next(member for member in self._members if member.waits)
        member.waits, member.shard = False, shard
        with suppress(OSError):  # it has just died, which waiting for it tells
            member.connection.send(shard)

    @property
    def in_flight(self) -> int:
        return sum(member.shard is not None for member in self._members)

    def wait(self) -> Event:
        ready = wait([member.connection for member in self._members])
        member = next(member for member in self._members if member.connection in ready)
        try:
            message = member.connection.recv()
        except (EOFError, OSError):
            return self._replace_dead(member)
        if isinstance(message, AutoheurError):
            raise message
        if isinstance(message, Outcome):
            return self._finished(member, message)
        member.waits = True
        device, environment = message
        return Started(member.name, device, environment)

    def _finished(self, member: _Member, outcome: Outcome) -> Finished:
        assert member.shard is not None
        event = Finished(member.name, member.shard, outcome)
        member.shard, member.waits = None, True
        if outcome.breakdown is not None:
            self._end(member)
            self._members[self._members.index(member)] = self._spawn(member.place)
        return event

    def _replace_dead(self, member: _Member) -> Lost:
        self._end(member)
        self._members[self._members.index(member)] = self._spawn(member.place)
        return Lost(member.name, member.shard, _how_it_ended(member.process.exitcode))

    def _end(self, member: _Member) -> None:
        member.connection.close()
        member.process.join(_GRACE_SECONDS)
        if member.process.is_alive():
            member.process.kill()
            member.process.join()

    def close(self) -> None:
        for member in self._members:
            if member.shard is not None or not member.waits:
                member.process.kill()
        for member in self._members:
            self._end(member)
        self._members = []


def _how_it_ended(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        with suppress(ValueError):  # a signal without a name
            return f"its process was ended by {signal.Signals(-exitcode).name}"
    return f"its process ended with status {exitcode}"


def _serve(connection: Connection, job: Job, own_cores: tuple[int, ...]) -> None:
    """What a worker process does, until its connection is closed: also when the collecting process was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the collecting process, which stops the workers
    cores.pin(own_cores)
    try:
        operator = default_registry().operator(job.operator)
        threads = len(cores.physical_cores(own_cores))
        with devices.selected(job.device), devices.pinned_settings(threads):
            worker = Worker(job, operator, threads)
            environment = {**worker.environment, "cores": list(own_cores)}
            connection.send((devices.device_fingerprint(job.device), environment))
            while True:
                connection.send(worker.measure(connection.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except AutoheurError as error:
        connection.send(error)
