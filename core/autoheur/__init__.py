"""autoheur: compile-time heuristics learned from autotuning measurements.

This is the small public surface; everything else is imported from the module that has it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autoheur.dataset.files import read
    from autoheur.errors import AutoheurError, InputError
    from autoheur.fingerprint import Fingerprint
    from autoheur.hookspecs import hookimpl
    from autoheur.inductor.capture import Shape, capture
    from autoheur.inductor.observed import Record
    from autoheur.inductor.switch import disable, enable, enabled, last_decisions
    from autoheur.measure.collection import collect
    from autoheur.registry import Registry, default_registry
    from autoheur.types import Choice, Decision, Feature, Operand, Operator, Problem, Reason

__version__ = "0.1.0"

__all__ = [
    "AutoheurError",
    "Choice",
    "Decision",
    "Feature",
    "Fingerprint",
    "InputError",
    "Operand",
    "Operator",
    "Problem",
    "Reason",
    "Record",
    "Registry",
    "Shape",
    "__version__",
    "capture",
    "collect",
    "decide",
    "default_registry",
    "disable",
    "enable",
    "enabled",
    "hookimpl",
    "last_decisions",
    "read",
]


_HOMES = {
    "AutoheurError": "errors",
    "Choice": "types",
    "Decision": "types",
    "Feature": "types",
    "Fingerprint": "fingerprint",
    "InputError": "errors",
    "Operand": "types",
    "Operator": "types",
    "Problem": "types",
    "Reason": "types",
    "Record": "inductor.observed",
    "Registry": "registry",
    "Shape": "inductor.capture",
    "capture": "inductor.capture",
    "collect": "measure.collection",
    "default_registry": "registry",
    "disable": "inductor.switch",
    "enable": "inductor.switch",
    "enabled": "inductor.switch",
    "hookimpl": "hookspecs",
    "last_decisions": "inductor.switch",
    "read": "dataset.files",
}
"""Public name -> the module that has it, imported at first use: every ``import torch`` imports this package."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"autoheur.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def decide(
    operator: str,
    problem: Problem,
    device: Fingerprint | None = None,
    choices: Sequence[str | Choice] | None = None,
) -> Decision:
    """Decide one problem with the installed plugins; see :meth:`Registry.decide`."""
    from autoheur.registry import default_registry

    return default_registry().decide(operator, problem, device, choices)
