"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """Find a published log by name in the folder beside the checkout; the test is skipped where it is absent."""

    def find(name: str) -> Path:
        path = ROOT.parent / "shared" / "data" / name
        if not path.exists():
            pytest.skip(f"no published log {name} beside the checkout")
        return path

    return find


@pytest.fixture(autouse=True)
def _clean_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing that the developer has set or installed reaches a test, and no test writes into the home folder."""
    for name in list(os.environ):
        if name.startswith("AUTOHEUR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AUTOHEUR_HOME", str(tmp_path_factory.mktemp("autoheur-home")))
