"""For authors of operators: everything that an operator's plugin imports of autoheur.

A plugin is a module with hooks, functions marked with :data:`hookimpl`; :class:`~autoheur.hookspecs.Hooks` documents
each with an example. Authors of learners find what they need in :mod:`autoheur.learning`, authors of sites in
:mod:`autoheur.site`. All other modules of autoheur are internal and may change in any release.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from autoheur.errors import ArtifactError, InputError
from autoheur.fingerprint import KNOWN as KNOWN_DEVICES
from autoheur.fingerprint import Fingerprint
from autoheur.hookspecs import hookimpl
from autoheur.types import Choice, Feature, Operand, Operator, Problem, Value

if TYPE_CHECKING:
    from autoheur.heuristic.artifact import Artifact, Precondition
    from autoheur.heuristic.model import Forest, Input, Policy, Tree

__all__ = [
    "KNOWN_DEVICES",
    "Artifact",
    "ArtifactError",
    "Choice",
    "Feature",
    "Fingerprint",
    "Forest",
    "Input",
    "InputError",
    "Operand",
    "Operator",
    "Policy",
    "Precondition",
    "Problem",
    "Tree",
    "Value",
    "hookimpl",
]

_ARTIFACTS = {"Artifact": "artifact", "Precondition": "artifact"} | dict.fromkeys(
    ("Forest", "Input", "Policy", "Tree"), "model"
)
"""What makes up an artifact: imported at first use, since most plugins only hand over files."""


def __getattr__(name: str) -> Any:
    if name not in _ARTIFACTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"autoheur.heuristic.{_ARTIFACTS[name]}"), name)
