"""Dependencies point one way; the contracts stand in pyproject.toml, [tool.importlinter]."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "core/autoheur",
    "learners/autoheur_learners",
    "plugins/pad_mm/autoheur_pad_mm",
    "plugins/bmm/autoheur_bmm",
    "plugins/addmm/autoheur_addmm",
)


def lint_imports(*path: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts, with ``path`` in front of the installed packages."""
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo", ROOT / "pyproject.toml"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_contract_is_kept() -> None:
    result = lint_imports()
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "statement", "arrow"),
    [
        (
            "core/autoheur/heuristic",
            "import autoheur.registry",
            "autoheur.heuristic is not allowed to import autoheur.reg",
        ),
        ("core/autoheur/train", "import autoheur.measure", "autoheur.train is not allowed to import autoheur.measure"),
        ("core/autoheur", "import autoheur_pad_mm", "autoheur is not allowed to import autoheur_pad_mm"),
        (
            "learners/autoheur_learners",
            "import autoheur_pad_mm",
            "autoheur_learners is not allowed to import autoheur_pad_mm",
        ),
        (
            "plugins/bmm/autoheur_bmm",
            "def late():\n    import autoheur_addmm",
            "autoheur_bmm is not allowed to import autoheur_addmm",
        ),
        (
            "core/autoheur/inductor/compile.py",
            "def late():\n    import autoheur.inductor.switch",
            "autoheur.inductor.compile is not allowed to import autoheur.inductor.switch",
        ),
        (
            "core/autoheur/inductor/observed.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import autoheur.inductor.session",
            "autoheur.inductor.observed is not allowed to import autoheur.inductor.session",
        ),
    ],
)
def test_an_arrow_that_points_the_wrong_way_is_found(tmp_path: Path, module: str, statement: str, arrow: str) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / module
    with (path / "__init__.py" if path.is_dir() else path).open("a", encoding="utf-8") as file:
        file.write(f"\n{statement}\n")

    result = lint_imports(*((tmp_path / package).parent for package in PACKAGES))

    assert result.returncode != 0
    assert arrow in result.stdout


def test_a_module_of_core_without_a_place_is_found(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "core/autoheur", tmp_path / "autoheur", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "autoheur" / "misplaced.py").touch()

    result = lint_imports(tmp_path)

    assert result.returncode != 0
    assert "misplaced" in result.stdout
