"""autoheur: compile-time heuristics learned from autotuning measurements.

This is the small public surface; everything else is imported from the module that has it.
"""

from __future__ import annotations

from autoheur.errors import AutoheurError, InputError
from autoheur.fingerprint import Fingerprint
from autoheur.registry import Registry, default_registry
from autoheur.types import Decision, Feature, Operand, Operator, Problem, Reason

__version__ = "0.1.0"

__all__ = [
    "AutoheurError",
    "Decision",
    "Feature",
    "Fingerprint",
    "InputError",
    "Operand",
    "Operator",
    "Problem",
    "Reason",
    "Registry",
    "__version__",
    "decide",
    "default_registry",
]


def decide(operator: str, problem: Problem, device: Fingerprint | None = None) -> Decision:
    """Decide one problem with the installed plugins; see :meth:`Registry.decide`."""
    return default_registry().decide(operator, problem, device)
