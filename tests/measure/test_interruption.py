"""A collection killed or interrupted from outside, for real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from autoheur.dataset.parquet import read_parquet
from autoheur.measure.journal import parse

PROGRAM = """
import json, os, sys
from pathlib import Path
from autoheur.measure import collector as session
from autoheur.measure.collection import collect
from autoheur.measure.timers import CpuTimer
from autoheur.types import Choice, Feature

class Sums:
    name = "sums"
    raw_features = (Feature("n", integer=True),)

    def choices(self, problem=None):
        return (Choice("sum"), Choice("loop"))

    def benchmark(self, problem, device):
        with open("measured", "a") as file:
            file.write(f"{problem['n']} {os.getpid()}\\n")
        return {"sum": lambda: sum(range(100)), "loop": lambda: [i for i in range(100)]}

    def problems(self, random, device):
        while True:
            yield {"n": random.randint(1, 500)}

def tell(progress):
    print(progress.measured, flush=True)

session.MOST_PROBLEMS = 20
result = collect(Sums(), Path("d.parquet"), problems=int(sys.argv[1]), seed=7, resume=sys.argv[2] == "resume",
                 timer=CpuTimer(min_run_ms=0.05), progress=tell)
print(json.dumps([result.interrupted, result.measured, result.problems]))
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@contextmanager
def collecting(folder: Path, problems: int, until: int) -> Iterator[subprocess.Popen[str]]:
    """A process that collects and has told that it measured ``until`` problems."""
    command = [sys.executable, "-c", PROGRAM, str(problems), "afresh"]
    with subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if int(line) >= until:
                    break
            yield process
        finally:
            process.kill()


def run(folder: Path, problems: int, how: str) -> list[int | bool]:
    command = [sys.executable, "-c", PROGRAM, str(problems), how]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=True, timeout=300
    )
    answer: list[int | bool] = json.loads(done.stdout.splitlines()[-1])
    return answer


def found(folder: Path) -> list[int]:
    values: list[int] = read_parquet(folder / "d.parquet").problems.get_column("n").to_list()
    return values


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """The problems of a collection that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    assert run(folder, 200, "afresh") == [False, 200, 200]
    return found(folder)


def test_kill_9_loses_the_batch_in_flight_only_and_resuming_measures_nothing_twice(
    tmp_path: Path, whole: list[int]
) -> None:
    with collecting(tmp_path, 200, until=65) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "d.parquet").exists(), "nothing half-written"
    data = (tmp_path / "d.parquet.journal").read_bytes()
    batches = parse("journal", data[: data.rfind(b"\n") + 1]).batches
    kept = [entry.key[0] for batch in batches for entry in batch.entries]
    assert len(kept) >= 60
    assert kept == whole[: len(kept)]

    assert run(tmp_path, 200, "resume") == [False, 200 - len(kept), 200]
    assert found(tmp_path) == whole
    assert not (tmp_path / "d.parquet.journal").exists()
    lines = set((tmp_path / "measured").read_text().splitlines())  # one per problem and process
    processes = Counter(int(line.split()[0]) for line in lines)
    assert {problem for problem, count in processes.items() if count > 1}.isdisjoint(kept)
    assert max(processes.values()) <= 2


def test_ctrl_c_leaves_a_dataset_that_can_be_resumed(tmp_path: Path, whole: list[int]) -> None:
    with collecting(tmp_path, 200, until=30) as process:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0
    interrupted, measured, problems = json.loads(output.splitlines()[-1])
    assert interrupted is True
    assert measured == problems >= 30
    assert found(tmp_path) == whole[:measured]
    assert not (tmp_path / "d.parquet.journal").exists()
    assert run(tmp_path, 200, "resume") == [False, 200 - measured, 200]
    assert found(tmp_path) == whole
