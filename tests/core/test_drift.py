"""Noting that the software is not what measurements were made with."""

from __future__ import annotations

import importlib.metadata

import pytest

from autoheur.heuristic import drift


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name != "torch":
            raise importlib.metadata.PackageNotFoundError(name)
        return "2.13.1+cpu"

    monkeypatch.setattr(importlib.metadata, "version", version)


@pytest.mark.parametrize("measured", ["2.13.0", "2.13.0+cu130", "2.13"])
def test_another_patch_or_build_is_not_worth_a_word(measured: str) -> None:
    assert drift.describe({"measured_with": {"torch": [measured]}}) == ""


@pytest.mark.parametrize("measured", ["2.12.0", "3.13.0", "2.1"])
def test_another_minor_version_is_noted(measured: str) -> None:
    note = drift.describe({"measured_with": {"torch": [measured]}})
    assert note == f"measured with torch {measured}, but here is 2.13.1+cpu"


def test_one_of_several_measured_versions_is_enough() -> None:
    assert drift.describe({"measured_with": {"torch": ["2.11.0", "2.13.0"]}}) == ""


@pytest.mark.parametrize(
    "provenance", [{}, {"measured_with": None}, {"measured_with": {"triton": ["3.0"]}}, {"measured_with": {"torch": 3}}]
)
def test_what_is_not_known_is_not_compared(provenance: dict[str, object]) -> None:
    assert drift.describe(provenance) == ""
