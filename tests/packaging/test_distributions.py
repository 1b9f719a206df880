"""Wheels and sdists of all members, built here, hold what they should and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    ".": None,
    "core": "autoheur",
    "learners": "autoheur_learners",
    "plugins/pad_mm": "autoheur_pad_mm",
    "plugins/bmm": "autoheur_bmm",
    "plugins/addmm": "autoheur_addmm",
}
METADATA = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
SDIST_FILES = {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}


@pytest.fixture(scope="module", params=PACKAGES)
def member(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def built(member: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str]]:
    """The names of the files in one member's sdist (below its top folder) and in the wheel built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT / member],
        check=True,
        capture_output=True,
    )
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    with tarfile.open(sdist) as tar:
        in_sdist = {entry.name.partition("/")[2] for entry in tar if entry.isfile()}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    return in_sdist, in_wheel


def source_files(member: str) -> set[str]:
    """The files of the member's package, relative to the member's folder."""
    package = PACKAGES[member]
    if package is None:
        return set()
    folder = ROOT / member
    paths = (path for path in (folder / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in paths}


def test_the_wheel_holds_the_package_with_its_data_and_the_licence(
    member: str, built: tuple[set[str], set[str]]
) -> None:
    _, in_wheel = built
    metadata = {name for name in in_wheel if ".dist-info/" in name}
    assert in_wheel - metadata == source_files(member)
    names = {name.partition(".dist-info/")[2] for name in metadata}
    assert names <= METADATA
    assert "licenses/LICENSE" in names


def test_the_sdist_holds_the_package_and_the_files_about_it(member: str, built: tuple[set[str], set[str]]) -> None:
    in_sdist, _ = built
    assert in_sdist - source_files(member) <= SDIST_FILES
    assert source_files(member) | {"LICENSE", "README.md", "pyproject.toml"} <= in_sdist


def test_no_tests_are_shipped(built: tuple[set[str], set[str]]) -> None:
    for files in built:
        assert not [name for name in files if any(part.startswith("test") for part in name.split("/"))]


def test_every_package_ships_its_type_marker(member: str, built: tuple[set[str], set[str]]) -> None:
    package = PACKAGES[member]
    if package is None:
        assert not [name for name in built[1] if ".dist-info/" not in name]
    else:
        assert f"{package}/py.typed" in built[1]
