"""Collecting with several processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from autoheur import fingerprint
from autoheur.dataset.parquet import read_parquet
from autoheur.errors import AutoheurError, InputError
from autoheur.fingerprint import Fingerprint
from autoheur.measure import collector as session
from autoheur.measure import cores
from autoheur.measure.collection import CollectResult, collect
from autoheur.measure.collector import Progress
from autoheur.measure.pool import Pool
from autoheur.measure.timers import CpuTimer
from autoheur.types import Problem

QUICK = CpuTimer(min_run_ms=0.05)
WORKERS = 2

needs_two_cores = pytest.mark.skipif(
    len(cores.physical_cores(cores.usable_cores())) < WORKERS, reason="needs a core for each of two workers"
)


def run(tiny: Any, out: Path, **options: Any) -> CollectResult:
    return collect(tiny.operator, out, timer=QUICK, engine=Pool(WORKERS), **options)


def problems(path: Path) -> list[int]:
    values: list[int] = read_parquet(path).problems.get_column("n").to_list()
    return values


@needs_two_cores
def test_a_pool_measures_the_problems_of_its_seed_once_each_and_can_be_resumed(tiny: Any, tmp_path: Path) -> None:
    out = tmp_path / "pool.parquet"
    first = run(tiny, out, problems=50, seed=3)
    assert (first.problems, first.measured, first.lost) == (50, 50, 0)
    second = run(tiny, out, problems=90, resume=True)
    assert (second.problems, second.measured) == (90, 40)

    expected = tiny.operator.problems(Random(3), fingerprint.cpu())
    assert set(problems(out)) == {next(expected)["n"] for _ in range(90)}
    measured = tiny.measured
    assert set(Counter(problem for problem, _ in measured).values()) == {1}
    assert os.getpid() not in {process for _, process in measured}
    dataset = read_parquet(out)
    assert dataset.device.cores == len(cores.divide(WORKERS)[0])
    sessions = dataset.environment["sessions"]
    assert {session["workers"] for session in sessions} == {WORKERS}
    assert len({session["id"] for session in sessions}) == len(sessions) >= 2
    assert {tuple(session["cores"]) for session in sessions} <= set(cores.divide(WORKERS))
    assert sum(batch["problems"] for batch in dataset.environment["batches"]) == 90


@needs_two_cores
def test_a_killed_workers_batch_is_measured_again(tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_SECONDS", "0.05")
    killed: list[int] = []

    def kill_one() -> None:
        while not tiny.measured:
            time.sleep(0.01)
        killed.append(tiny.measured[-1][1])
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    result = run(tiny, tmp_path / "d.parquet", problems=50, seed=3)
    killer.join()
    assert (result.problems, result.failed, result.lost) == (50, 0, 1)
    assert len(set(problems(tmp_path / "d.parquet"))) == 50
    processes = {process for _, process in tiny.measured}
    assert len(processes - set(killed)) >= 2, "a new worker took its place"


@needs_two_cores
def test_a_problem_that_kills_its_worker_every_time_is_kept_as_failed(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source: list[Problem] = [{"n": n} for n in range(1, 24)]
    monkeypatch.setenv("TINY_DEADLY", "7")
    result = run(tiny, tmp_path / "d.parquet", source=source)
    dataset = read_parquet(tmp_path / "d.parquet")
    assert (result.problems, result.failed, result.lost) == (23, 2, 3), "the batch twice, the problem alone"
    failures = dataset.environment["failures"]
    assert {problems(tmp_path / "d.parquet")[failure["problem"]] for failure in failures} == {7}
    assert {failure["reason"] for failure in failures} == {"the worker was lost: its process was ended by SIGKILL"}
    assert (
        collect(tiny.operator, tmp_path / "d.parquet", engine=Pool(WORKERS), source=source, resume=True).measured == 0
    )


@needs_two_cores
def test_workers_that_die_one_after_the_other_end_the_collection(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MOST_LOSSES_IN_A_ROW", 1)
    monkeypatch.setenv("TINY_DEADLY", "1,2")
    with pytest.raises(AutoheurError, match=r"2 workers in a row were lost, .*SIGKILL"):
        run(tiny, tmp_path / "d.parquet", source=[{"n": 1}, {"n": 2}])
    assert not list(tmp_path.glob("d.parquet*"))


@needs_two_cores
def test_ctrl_c_keeps_the_batches_that_were_done(tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_SECONDS", "0.02")
    monkeypatch.setattr(session, "MOST_PROBLEMS", 20)

    def interrupt(progress: Progress) -> None:
        if progress.measured == 40:
            raise KeyboardInterrupt

    result = run(tiny, tmp_path / "d.parquet", problems=10_000, progress=interrupt)
    assert result.interrupted
    assert result.problems == result.measured == 40
    assert no_longer_there(tiny)
    assert run(tiny, tmp_path / "d.parquet", problems=50, resume=True).measured == 10


DRIVER = """
import sys
from pathlib import Path
from autoheur import default_registry
from autoheur.measure.collection import collect
from autoheur.measure.pool import Pool

if __name__ == "__main__":
    collect(default_registry().operator("tiny"), Path(sys.argv[1]), problems=10_000, engine=Pool(2))
"""


@needs_two_cores
def test_workers_end_when_the_collecting_process_is_killed(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_SECONDS", "0.02")
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    with subprocess.Popen([sys.executable, str(script), str(tmp_path / "d.parquet")]) as process:
        while len({worker for _, worker in tiny.measured}) < WORKERS:
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    assert no_longer_there(tiny)
    assert not (tmp_path / "d.parquet").exists()
    assert run(tiny, tmp_path / "d.parquet", problems=60, resume=True).problems == 60


def no_longer_there(tiny: Any) -> bool:
    """Whether all workers end, given some time."""
    workers = {worker for _, worker in tiny.measured}
    for _ in range(400):
        if not any(is_running(worker) for worker in workers):
            return True
        time.sleep(0.05)
    return False


def is_running(process: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


@needs_two_cores
def test_what_is_wrong_in_a_worker_is_told_as_if_it_had_happened_here(tiny: Any, tmp_path: Path) -> None:
    class Unknown:
        name = "unknown"
        raw_features = tiny.operator.raw_features
        choices = staticmethod(tiny.operator.choices)
        benchmark = staticmethod(tiny.operator.benchmark)
        problems = staticmethod(tiny.operator.problems)

    with pytest.raises(InputError, match="no operator 'unknown'"):
        collect(Unknown(), tmp_path / "d.parquet", problems=1, engine=Pool(WORKERS))


def test_cores_are_divided_by_physical_core(tmp_path: Path) -> None:
    for core in range(8):
        folder = tmp_path / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{core % 4},{core % 4 + 4}\n")
    assert cores.physical_cores(range(8), tmp_path) == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert cores.divide(2, range(8), tmp_path) == [(0, 4, 1, 5), (2, 6, 3, 7)]
    assert cores.divide(3, range(8), tmp_path) == [(0, 4), (1, 5), (2, 6)]
    assert cores.physical_cores([1, 9], tmp_path) == [(1,), (9,)], "an unknown core is one of its own"
    with pytest.raises(InputError, match="5 workers need a core each, but this process has 4"):
        cores.divide(5, range(8), tmp_path)


def test_a_gpu_pool_needs_a_device_for_each_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(device: str) -> Fingerprint:
        if device in ("cuda", "cuda:0", "cuda:1"):
            return Fingerprint("cuda", "NVIDIA A100")
        raise InputError("torch sees none")

    monkeypatch.setattr("autoheur.measure.devices.device_fingerprint", found)
    monkeypatch.setattr(cores, "divide", lambda workers: [(worker,) for worker in range(workers)])
    assert Pool(2).fingerprint("cuda") == Fingerprint("cuda", "NVIDIA A100")
    with pytest.raises(InputError, match="3 workers need as many cuda devices"):
        Pool(3).fingerprint("cuda")
    with pytest.raises(InputError, match="'cuda:1' is one device"):
        Pool(2).fingerprint("cuda:1")
