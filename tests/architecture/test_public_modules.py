"""Plugins get by with the three modules that are public for them, and those hold what they promise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autoheur import learning, plugin, site

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("plugins/*/autoheur_*/**", "learners/autoheur_*/**", "examples/*")
SOURCES = [path for folder in FOLDERS for path in ROOT.glob(f"{folder}/*.py")]
PUBLIC = {module.__name__ for module in (plugin, learning, site)}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_plugins_import_only_public_modules(path: Path) -> None:
    imported = re.findall(r"^\s*(?:from|import) (autoheur(?:\.[\w.]+)?) ", path.read_text(), re.M)
    assert set(imported) <= PUBLIC, path


def test_the_sources_are_found() -> None:
    assert {path.name for path in SOURCES} >= {"torch_heuristics.py", "decision_tree.py", "autoheur_top_k.py"}


def test_everything_that_plugin_names_is_there() -> None:
    for name in plugin.__all__:
        assert getattr(plugin, name) is not None
