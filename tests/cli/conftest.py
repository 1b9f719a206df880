"""A small log and artifact for the command line's tests."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from autoheur import registry
from autoheur.cli.main import main


@attrs.frozen
class Result:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def error(self) -> str:
        """The one line that a user sees of bad input."""
        assert self.code == 2, self
        assert self.out == ""
        assert len(self.err.splitlines()) == 1, self.err
        assert self.err.startswith("autoheur: error: ")
        return self.err.removeprefix("autoheur: error: ").strip()


Run = Callable[..., Result]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process, with plugins and installed artifacts looked up afresh."""

    def call(*arguments: str | Path) -> Result:
        registry.default_registry.cache_clear()
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """An operator without a plugin, where ``fast`` wins by far for large ``x`` with dtype b, else ``slow``."""
    source = random.Random(7)
    metadata = {
        "shared_memory": 1024,
        "device_capa": [8, 0],
        "name": "made_up",
        "numerical_features": ["x", "y"],
        "categorical_features": ["dtype"],
    }
    lines = [json.dumps(metadata), "x,dtype,y,choice,feedback"]
    for number in range(240):
        x, y, dtype = number + 1, source.random(), source.choice("ab")
        for choice in ("slow", "fast"):
            wins = (choice == "fast") == (x > 100 and dtype == "b")
            time = 1.0 if wins else 2.5
            lines += [f"{x},{dtype},{y!r},{choice},{time * source.uniform(0.99, 1.01)!r}" for _ in range(3)]
    path = tmp_path / "made_up.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def artifact(run: Run, log: Path, tmp_path: Path) -> Path:
    """A heuristic learned from the log."""
    path = tmp_path / "made_up.json"
    assert run("train", log, "--protocol", "autoheuristic", "--name", "made_up", "--out", path).code == 0
    return path
