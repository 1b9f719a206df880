"""autoheur collect on several workers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autoheur.measure import cores
from autoheur.measure.collection import CollectResult

Run = Callable[..., Any]


def test_ray_has_to_be_installed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    result = run("collect", "pad_mm", "--engine", "ray", "--problems", 1, "--out", tmp_path / "d.parquet")
    assert result.error() == "the engine ray needs the package ray: pip install 'autoheur[ray]'"


def test_every_worker_needs_a_core(run: Run, tmp_path: Path) -> None:
    present = len(cores.physical_cores(cores.usable_cores()))
    result = run("collect", "pad_mm", "--workers", present + 1, "--problems", 1, "--out", tmp_path / "d.parquet")
    assert f"this process has {present}; use fewer workers" in result.error()


@pytest.mark.parametrize(
    ("arguments", "engine"),
    [([], None), (["--workers", 1], None), (["--workers", 2], "pool 2"), (["--engine", "ray"], "ray None")],
)
def test_the_engine_is_the_one_asked_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[Any], engine: str | None
) -> None:
    seen: list[Any] = []

    def collect(*_: Any, **options: Any) -> CollectResult:
        seen.append(options["engine"])
        return CollectResult(tmp_path, 7, 7, 42, 0, {"orig": 7}, 2, 0, 3, 1.0, False)

    monkeypatch.setattr("autoheur.measure.pool.Pool", lambda workers: f"pool {workers}")
    monkeypatch.setattr("autoheur.measure.cluster.RayCluster", lambda workers: f"ray {workers}")
    monkeypatch.setattr("autoheur.measure.collection.collect", collect)
    result = run("collect", "pad_mm", "--problems", 7, "--out", tmp_path / "d.parquet", *arguments)
    assert seen == [engine]
    assert "3 workers were lost; what they measured was measured again" in result.out
