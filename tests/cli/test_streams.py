"""What the command line writes where, whatever its streams are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = """\
print("on import")
from autoheur.hookspecs import hookimpl

@hookimpl
def autoheur_learners():
    print("in a hook")
    return []
"""


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command line in which ``$AH`` is autoheur."""
    return subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "AH": f"{sys.executable} -m autoheur.cli.main", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["list", "list --json", "--help", "codegen pad_mm_a100"])
def test_a_full_disk_under_stdout_is_one_line(command: str) -> None:
    result = shell(f"$AH {command} > /dev/full")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert result.stderr.startswith("autoheur: error: ")
    assert "No space left" in result.stderr


@pytest.mark.parametrize("command", ["list", "list --json"])
def test_a_closed_stdout_is_no_error(command: str) -> None:
    result = shell(f"$AH {command} >&-")
    assert (result.returncode, result.stderr) == (0, "")


def test_what_the_encoding_lacks_is_escaped(tmp_path: Path) -> None:
    name = "\u00e9"
    metadata = {"name": name, "numerical_features": ["x"], "categorical_features": [], "device_capa": [8, 0]}
    (tmp_path / f"{name}.txt").write_text(
        f"{json.dumps(metadata)}\nx,choice,feedback\n1,a,1.0\n1,b,2.0\n", encoding="utf-8"
    )
    result = shell(
        f"$AH import {tmp_path}/*.txt --out {tmp_path}/{name}.parquet", PYTHONIOENCODING="ascii", PYTHONUTF8="1"
    )
    assert (result.returncode, result.stdout[:6]) == (0, "wrote ")
    assert "\\xe9.parquet" in result.stdout


def test_what_a_plugin_prints_is_not_in_the_json(tmp_path: Path) -> None:
    info = tmp_path / "chatty-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: chatty\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[autoheur]\nchatty = chatty_plugin\n")
    (tmp_path / "chatty_plugin.py").write_text(PLUGIN)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    result = shell("$AH list --json", PYTHONPATH=path)
    assert "chatty" in {row["distribution"] for row in json.loads(result.stdout)["plugins"]}
    assert result.stderr.splitlines() == ["on import", "in a hook"]
