"""A timer that does as it is told, and an operator that worker processes find by its name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from autoheur import registry
from autoheur.measure.timers import Function, Stopwatch
from autoheur.operators import OperatorPlugin

TINY = '''
"""Problems are one number; each turn of one leaves a line with the number and the worker in the file MEASURED."""

import os
import signal
import time

from autoheur.hookspecs import hookimpl
from autoheur.types import Feature, Operator

FOLDER = os.path.dirname(__file__)

@hookimpl
def autoheur_operator():
    return Operator("tiny")

@hookimpl
def autoheur_features():
    return [Feature("n", integer=True)]

@hookimpl
def autoheur_choices():
    return ["sum", "loop"]

@hookimpl
def autoheur_benchmark(problem):
    with open(os.path.join(FOLDER, "measured"), "a") as file:
        file.write(f"{problem['n']} {os.getpid()}\\n")
    if str(problem["n"]) in os.environ.get("TINY_DEADLY", "").split(","):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(float(os.environ.get("TINY_SECONDS", 0)))
    return {"sum": lambda: sum(range(100)), "loop": lambda: [number for number in range(100)]}

@hookimpl
def autoheur_problems(random):
    while True:
        yield {"n": random.randint(1, 10**9)}
'''


class ToldTimer:
    """Takes what the timed function returns as the time in milliseconds; anything else takes one millisecond."""

    @property
    def settings(self) -> dict[str, Any]:
        return {"timer": "told"}

    def stopwatch(self) -> Stopwatch:
        def time_ms(function: Function) -> float:
            told = function()
            return told if isinstance(told, float) else 1.0

        return time_ms


@pytest.fixture
def told() -> ToldTimer:
    return ToldTimer()


@attrs.frozen
class Tiny:
    """An installed operator that is measured in no time."""

    folder: Path

    @property
    def operator(self) -> OperatorPlugin:
        return registry.default_registry().operator("tiny")

    @property
    def measured(self) -> list[tuple[int, int]]:
        """(problem, process) of every measurement that was begun, in order."""
        file = self.folder / "measured"
        lines = file.read_text().splitlines() if file.exists() else []
        return list(dict.fromkeys((int(line.split()[0]), int(line.split()[1])) for line in lines))

    def forget(self) -> None:
        (self.folder / "measured").unlink()


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tiny]:
    folder = tmp_path / "site"
    info = folder / "tiny-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "tiny_operator.py").write_text(TINY)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[autoheur]\ntiny = tiny_operator\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    registry.default_registry.cache_clear()
    yield Tiny(folder)
    registry.default_registry.cache_clear()
    sys.modules.pop("tiny_operator", None)
