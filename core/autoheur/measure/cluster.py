"""The Ray engine: shards are tasks on a Ray cluster, on as many machines as it has.

With ``RAY_ADDRESS`` set, or in a program that has called ``ray.init``, that cluster is used; else a local one is
started, for this collection alone. All workers must have the same kind of device.
"""

from __future__ import annotations

import os
from collections import deque
from typing import Any

import attrs
import torch

from autoheur.errors import AutoheurError, InputError
from autoheur.fingerprint import Fingerprint
from autoheur.measure import cores, devices
from autoheur.measure.engines import Event, Finished, Lost, Started, Tell
from autoheur.measure.worker import Job, Measurable, Outcome, Shard, Worker
from autoheur.registry import default_registry

OBJECT_STORE_BYTES = 100 * 2**20
"""The object store of a local cluster: shards and outcomes are small."""


_broken: list[str] = []
"""In a worker process: how its device stopped working."""


@attrs.frozen
class _Reply:
    """What a task answers."""

    worker: str
    device: Fingerprint
    environment: dict[str, Any]
    outcome: Outcome


class RayCluster:
    """Tasks on a Ray cluster, each on one GPU, or on a CPU on an equal share of the cluster's cores.

    ``workers`` is how many run at a time; by default one per GPU, or on CPUs one per machine, undisturbed by others.
    Ray does not pin its workers to cores.
    """

    in_process = False

    def __init__(self, workers: int | None = None) -> None:
        """Connect to the cluster, or start one.

        Raises:
            InputError: ray is not installed, or cannot be reached or started.
        """
        try:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody's measurements are reported anywhere
            import ray
        except ImportError:
            raise InputError("the engine ray needs the package ray: pip install 'autoheur[ray]'") from None
        self._ray: Any = ray
        self._own = not ray.is_initialized()
        if self._own:
            self._connect()
        self._workers = workers
        self._resources: dict[str, float] = {}
        self._pending: dict[Any, Shard] = {}
        self._events: deque[Event] = deque()
        self._seen: set[str] = set()
        self._job: Job | None = None
        self._task: Any = None

    def _connect(self) -> None:
        address = os.environ.get("RAY_ADDRESS", "local")
        local: dict[str, Any] = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        try:
            self._ray.init(
                address=address,
                log_to_driver=False,
                logging_level="ERROR",
                **(local if address == "local" else {}),
            )
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            raise InputError(f"no Ray cluster at {address!r}: {_first_line(error)}") from None

    @property
    def workers(self) -> int:
        return self._workers or 1

    @property
    def settings(self) -> dict[str, Any]:
        return {"engine": "ray", "workers": self.workers, "ray": str(self._ray.__version__)}

    def fingerprint(self, device: str) -> Fingerprint:
        try:
            kind = torch.device(device)
        except RuntimeError:
            raise InputError(f"device {device!r} is not one that torch knows; use cpu, cuda or xpu") from None
        if kind.index is not None:
            raise InputError(f"device {device!r}: Ray chooses among the devices; name the kind alone, {kind.type}")
        try:
            self._plan(kind.type)
            probe = self._ray.remote(_fingerprint).options(max_retries=2, **self._resources)
            found: Fingerprint = self._ray.get(probe.remote(device, int(self._resources["num_cpus"])))
        except self._ray.exceptions.RayTaskError as error:
            self.close()
            raise _cause(error) from None
        except BaseException:
            self.close()
            raise
        return found

    def _plan(self, kind: str) -> None:
        """Settle how many tasks run at a time, and what each needs.

        Raises:
            InputError: the cluster has not as much.
        """
        total = self._ray.cluster_resources()
        processors = [int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"]]
        machines = [count for count in processors if count]
        if kind != "cpu":
            most = int(total.get("GPU", 0))
            self._workers = self._workers or most
            if not 0 < self._workers <= most:
                raise InputError(f"the Ray cluster has {most} GPUs, not {self._workers or 'any'}; use --device cpu")
            self._resources = {"num_gpus": 1, "num_cpus": 1}
            return
        self._workers = self._workers or len(machines)
        share = sum(machines) // self._workers if self._workers else 0
        while share and sum(count // share for count in machines) < self._workers:
            share -= 1
        if not share:
            raise InputError(f"the Ray cluster has {sum(machines)} cores, too few for {self._workers} workers")
        self._resources = {"num_cpus": share}

    def start(self, job: Job, operator: Measurable, tell: Tell) -> None:
        self._job = job
        # No retries of Ray's own: the session looks for the problem to blame.
        self._task = self._ray.remote(_measure).options(max_retries=0, **self._resources)

    def wants(self) -> bool:
        return len(self._pending) < self.workers

    def submit(self, shard: Shard) -> None:
        share = int(self._resources["num_cpus"])
        self._pending[self._task.remote(self._job, shard, share)] = shard

    @property
    def in_flight(self) -> int:
        return len(self._pending) + len(self._events)

    def wait(self) -> Event:
        if not self._events:
            [done], _ = self._ray.wait(list(self._pending), num_returns=1)
            self._receive(done, self._pending.pop(done))
        return self._events.popleft()

    def _receive(self, done: Any, shard: Shard) -> None:
        try:
            reply: _Reply = self._ray.get(done)
        except self._ray.exceptions.RayTaskError as error:
            raise _cause(error) from None
        except self._ray.exceptions.RayError as error:
            self._events.append(Lost("of Ray", shard, _first_line(error)))
            return
        if reply.worker not in self._seen:
            self._seen.add(reply.worker)
            self._events.append(Started(reply.worker, reply.device, reply.environment))
        self._events.append(Finished(reply.worker, shard, reply.outcome))

    def close(self) -> None:
        for task in self._pending:
            self._ray.cancel(task, force=True)
        self._pending.clear()
        if self._own and self._ray.is_initialized():
            self._ray.shutdown()


def _fingerprint(device: str, share: int) -> Fingerprint:
    """The device of a task that may use ``share`` cores."""
    found = devices.device_fingerprint(device)
    if found.kind != "cpu":
        return found
    return attrs.evolve(found, cores=min(found.cores or share, share))


def _measure(job: Job, shard: Shard, share: int) -> _Reply:
    """A task: measure one shard. Ray keeps the process for the next one."""
    import ray

    if _broken:
        os._exit(1)  # what is asked of this process next is lost, and measured again by another one
    operator = default_registry().operator(job.operator)
    threads = min(share, len(cores.physical_cores(cores.usable_cores())))
    with devices.selected(job.device), devices.pinned_settings(threads):
        worker = Worker(job, operator, threads)
        outcome = worker.measure(shard)
    if outcome.breakdown is not None:
        _broken.append(outcome.breakdown)
    context = ray.get_runtime_context()
    name = f"{context.get_node_id()[:8]}-{os.getpid()}"
    return _Reply(name, _fingerprint(job.device, share), worker.environment, outcome)


def _cause(error: Exception) -> AutoheurError:
    """What a task raised, where that is an error of ours; else a description of it."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, AutoheurError):
        return cause
    return AutoheurError(f"a worker of the Ray cluster failed: {_first_line(cause or error)}")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
