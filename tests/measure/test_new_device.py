"""The script that takes everything from a new device, in a dry form on this CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autoheur import default_registry
from autoheur.dataset.parquet import read_parquet
from autoheur.measure.collection import collect
from autoheur.measure.interleaving import Effort
from autoheur.measure.timers import CpuTimer

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "new_device.sh"


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [SCRIPT, *map(str, arguments)],
        env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_it_goes_on_where_it_was_and_leaves_figures_of_every_step(tmp_path: Path) -> None:
    learn = tmp_path / "pad_mm-learn.parquet"
    operator = default_registry().operator("pad_mm")
    collect(operator, learn, problems=60, timer=CpuTimer(min_run_ms=0.01), effort=Effort(first=2, most=2))
    before = learn.read_bytes()
    result = run("--device", "cpu", "--seconds", 8, "--operators", "pad_mm", "--out", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert learn.read_bytes() == before, "what is finished is not measured again"
    held_out = read_parquet(tmp_path / "pad_mm-held-out.parquet")
    assert set(held_out.problems.rows()).isdisjoint(read_parquet(learn).problems.rows())
    found = json.loads((tmp_path / "summary.json").read_text())["pad_mm"]
    assert (found["learn"]["problems"], found["held-out"]["problems"]) == (60, len(held_out.problems))
    assert {"autoheur", "torch-PadMMA100"} <= set(found["heuristics"])
    assert len({row["total"] for row in found["heuristics"].values()}) == 1, "all are judged on the same problems"
    assert found["times"]["autotuning_ms"] > found["times"]["decision_us"] / 1000
    text = (tmp_path / "summary.md").read_text()
    assert "| autoheur |" in text
    assert "| torch-PadMMA100 |" in text
    assert (tmp_path / "pad_mm.py").exists()
    assert not list(tmp_path.glob("*.partial"))


def test_a_step_that_fails_is_told_in_the_end(tmp_path: Path) -> None:
    (tmp_path / "pad_mm-learn.parquet").write_bytes(b"no dataset")
    (tmp_path / "pad_mm-held-out.parquet").write_bytes(b"no dataset")
    result = run("--device", "cpu", "--operators", "pad_mm", "--out", tmp_path)
    assert result.returncode == 1
    assert "steps failed" in result.stderr
    assert "autoheur: error:" in (tmp_path / "log.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--colour", "red"], "benchmarks/new_device.sh"), (["--device", "toaster"], "toaster"), (["--out"], "missing")],
)
def test_wrong_arguments_are_told(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
