"""How far the software here is from what a heuristic's measurements were made with."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from typing import Any

SOFTWARE = ("torch", "triton")
"""Distributions whose version can change which choice is the quickest."""


def describe(provenance: Mapping[str, Any]) -> str:
    """Say which of :data:`SOFTWARE` is of another minor version here than where was measured; empty where none is.

    ``provenance`` is an artifact's; what it does not tell, or what is not installed here, is not compared.
    """
    measured = provenance.get("measured_with")
    if not isinstance(measured, Mapping):
        return ""
    notes = []
    for name in SOFTWARE:
        versions = measured.get(name)
        try:
            here = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if isinstance(versions, list) and versions and _minor(here) not in {_minor(str(v)) for v in versions}:
            notes.append(f"measured with {name} {', '.join(map(str, versions))}, but here is {here}")
    return "; ".join(notes)


def _minor(version: str) -> tuple[str, ...]:
    """``('2', '13')`` of ``2.13.0+cpu``."""
    return tuple(version.split("+")[0].split(".")[:2])
