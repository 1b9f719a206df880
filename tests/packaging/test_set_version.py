"""One command moves the version in every place that holds it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MEMBERS = (".", "core", "learners", "plugins/pad_mm", "plugins/bmm", "plugins/addmm")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the files that the command reads and writes."""
    projects = [f"{member}/pyproject.toml" for member in MEMBERS]
    for name in (*projects, "core/autoheur/__init__.py", "tools/set_version.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def set_version(checkout: Path, version: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, checkout / "tools" / "set_version.py", version]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def texts(checkout: Path) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(checkout.rglob("*")) if path.is_file()}


def test_the_version_moves_everywhere(checkout: Path) -> None:
    old = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

    assert set_version(checkout, "7.8.9rc1").returncode == 0

    for member in MEMBERS:
        project = tomllib.loads((checkout / member / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert project["version"] == "7.8.9rc1"
        groups = [project["dependencies"], *project.get("optional-dependencies", {}).values()]
        ours = [requirement for group in groups for requirement in group if requirement.startswith("autoheur")]
        assert all(requirement.endswith(("==7.8.9rc1", "~=7.8.9rc1")) for requirement in ours)
    assert '__version__ = "7.8.9rc1"' in (checkout / "core/autoheur/__init__.py").read_text(encoding="utf-8")

    assert set_version(checkout, old).returncode == 0
    for path, text in texts(checkout).items():
        assert text == (ROOT / path.relative_to(checkout)).read_text(encoding="utf-8"), "no other text may change"


@pytest.mark.parametrize("version", ["", "1", "0.2", "v0.2.0", '0.2.0"', "0.2.0.dev1"])
def test_what_is_no_version_changes_nothing(checkout: Path, version: str) -> None:
    before = texts(checkout)
    result = set_version(checkout, version)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert texts(checkout) == before


def test_nothing_is_written_when_one_file_has_lost_its_version(checkout: Path) -> None:
    (checkout / "core/autoheur/__init__.py").write_text("", encoding="utf-8")
    before = texts(checkout)
    result = set_version(checkout, "0.2.0")
    assert result.returncode == 2
    assert "__init__.py" in result.stderr
    assert texts(checkout) == before
