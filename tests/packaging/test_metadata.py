"""What the pyproject files of the workspace say, and that the environment agrees."""

from __future__ import annotations

import importlib.metadata
import tomllib
from pathlib import Path
from typing import Any

import pytest

import autoheur

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "core": "autoheur",
    "learners": "autoheur_learners",
    "plugins/pad_mm": "autoheur_pad_mm",
    "plugins/bmm": "autoheur_bmm",
    "plugins/addmm": "autoheur_addmm",
}
MEMBERS = [".", *PACKAGES]


def project(member: str) -> dict[str, Any]:
    with (ROOT / member / "pyproject.toml").open("rb") as file:
        table: dict[str, Any] = tomllib.load(file)["project"]
    return table


def requirements_of_ours(member: str) -> list[str]:
    table = project(member)
    groups = [table["dependencies"], *table.get("optional-dependencies", {}).values()]
    return [requirement for group in groups for requirement in group if requirement.startswith("autoheur")]


def test_every_member_is_tested() -> None:
    found = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("plugins/*/pyproject.toml")}
    found |= {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("*/pyproject.toml")}
    assert found == set(PACKAGES)


@pytest.mark.parametrize("member", MEMBERS)
def test_members_carry_one_version(member: str) -> None:
    assert project(member)["version"] == autoheur.__version__
    assert importlib.metadata.version(project(member)["name"]) == autoheur.__version__


def test_the_meta_distribution_pins_every_member_exactly() -> None:
    version = autoheur.__version__
    names = {project(member)["name"] for member in PACKAGES}
    pins = dict(requirement.split("==") for requirement in requirements_of_ours("."))
    assert {name.split("[")[0] for name in pins} == names
    assert set(pins.values()) == {version}
    assert "autoheur-core[train]" in pins


@pytest.mark.parametrize("member", [member for member in PACKAGES if member != "core"])
def test_members_require_the_core_they_were_tested_with(member: str) -> None:
    requirements = requirements_of_ours(member)
    assert any(requirement.startswith("autoheur-core") for requirement in requirements)
    assert all(requirement.endswith(f"~={autoheur.__version__}") for requirement in requirements)


def test_core_requires_no_member() -> None:
    assert requirements_of_ours("core") == []


@pytest.mark.parametrize("member", MEMBERS)
def test_declared_entry_points_are_the_installed_ones(member: str) -> None:
    table = project(member)
    declared = {("console_scripts", *item) for item in table.get("scripts", {}).items()}
    for group, entries in table.get("entry-points", {}).items():
        declared |= {(group, *item) for item in entries.items()}

    installed = importlib.metadata.distribution(table["name"]).entry_points

    assert {(entry.group, entry.name, entry.value) for entry in installed} == declared


@pytest.mark.parametrize("member", [member for member in PACKAGES if member != "core"])
def test_plugins_are_entry_points_that_load(member: str) -> None:
    entries = importlib.metadata.distribution(project(member)["name"]).entry_points.select(group="autoheur")
    assert member.rpartition("/")[2] in {entry.name for entry in entries}
    for entry in entries:
        entry.load()


@pytest.mark.parametrize(("member", "package"), PACKAGES.items())
def test_packages_are_typed(member: str, package: str) -> None:
    assert (ROOT / member / package / "py.typed").is_file()


@pytest.mark.parametrize("member", PACKAGES)
def test_members_carry_the_licence_of_the_whole(member: str) -> None:
    assert (ROOT / member / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_constraints_pin_every_installed_requirement() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    required = {
        requirement.split("[")[0].split(";")[0].split(">")[0].split("~")[0].split("=")[0].strip().lower()
        for member in MEMBERS
        for requirement in [
            *project(member)["dependencies"],
            *project(member).get("optional-dependencies", {}).get("train", []),
        ]
    }
    assert {name for name in required if not name.startswith("autoheur")} <= pinned
