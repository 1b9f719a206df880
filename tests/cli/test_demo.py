"""The demo runs the whole pipeline, and leaves what is installed for the user alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")


def test_the_demo_measures_learns_generates_code_and_decides(tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "demo"
    result = subprocess.run(
        [sys.executable, "-m", "autoheur.cli.main", "demo", "--seconds", "5", "--out", str(out)],
        env={**os.environ, "AUTOHEUR_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("\n$ autoheur decide pad_mm ") == result.stdout.count("  measured just now: orig ") == 6
    artifact = json.loads((out / "heuristic.json").read_text())
    assert (artifact["operator"], artifact["choices"]) == ("pad_mm", ["orig", "pad"])
    compile((out / "heuristic.py").read_text(), "heuristic.py", "exec")
    assert list((out / "home" / "artifacts").glob("*.json"))
    assert not list(home.glob("artifacts/*"))
