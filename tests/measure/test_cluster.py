"""Collecting on a Ray cluster of several processes on this machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autoheur.dataset.parquet import read_parquet
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint
from autoheur.measure.cluster import RayCluster
from autoheur.measure.collection import collect
from autoheur.measure.engines import InProcess
from autoheur.measure.timers import CpuTimer

QUICK = CpuTimer(min_run_ms=0.05)
CORES = 2


def problems(path: Path) -> list[int]:
    values: list[int] = read_parquet(path).problems.get_column("n").to_list()
    return values


@pytest.fixture
def ray(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster of one machine with two cores, which finds the operator ``tiny``."""
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("TINY_SECONDS", "0.05")
    ray.init(
        address="local",
        num_cpus=CORES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=100 * 2**20,
    )
    yield ray
    ray.shutdown()


def kill_one(tiny: Any, after: int, killed: list[int]) -> None:
    while len(tiny.measured) < after:
        time.sleep(0.01)
    killed.append(tiny.measured[-1][1])
    os.kill(killed[0], signal.SIGKILL)


def test_the_data_equals_the_local_engines_also_when_a_worker_is_killed_and_resumed_there(
    tiny: Any, ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    killer = threading.Thread(target=kill_one, args=(tiny, 25, killed))
    killer.start()
    out = tmp_path / "ray.parquet"
    result = collect(tiny.operator, out, timer=QUICK, problems=60, seed=3, engine=RayCluster(CORES))
    killer.join()
    assert (result.problems, result.measured, result.failed, result.lost) == (60, 60, 0, 1)
    begun = tiny.measured
    assert len({process for _, process in begun} - set(killed)) >= 2, "several workers, the killed one not counted"
    assert max(Counter(problem for problem, _ in begun).values()) == 2, "the lost batch once more"
    assert ray.is_initialized(), "a cluster that was there is left as it is"

    device = read_parquet(out).device
    assert device.cores == 1
    monkeypatch.setenv("TINY_SECONDS", "0")
    monkeypatch.setattr(InProcess, "fingerprint", lambda _engine, _device: device)
    local = tmp_path / "local.parquet"
    collect(tiny.operator, local, timer=QUICK, problems=70, seed=3)
    assert set(problems(out)) == set(problems(local)[:60])

    tiny.forget()
    assert collect(tiny.operator, out, timer=QUICK, problems=70, resume=True).measured == 10
    assert set(problems(out)) == set(problems(local))
    assert {problem for problem, _ in tiny.measured} == set(problems(local)[60:])
    engines = [session["engine"] for session in read_parquet(out).environment["sessions"]]
    assert set(engines) == {"ray", "local"}


def test_what_the_cluster_lacks_is_told(tiny: Any, ray: Any, tmp_path: Path) -> None:
    for device, workers, message in (
        ("cuda", None, "the Ray cluster has 0 GPUs, not any"),
        ("cpu", CORES + 1, f"has {CORES} cores, too few for {CORES + 1} workers"),
        ("cuda:1", None, "Ray chooses among the devices"),
        ("toaster", None, "not one that torch knows"),
    ):
        with pytest.raises(InputError, match=message):
            collect(tiny.operator, tmp_path / "d.parquet", device, problems=1, engine=RayCluster(workers))
    assert isinstance(RayCluster().fingerprint("cpu"), Fingerprint)


def test_without_ray_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'autoheur\[ray\]'"):
        RayCluster()
