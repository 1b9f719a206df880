"""autoheur: compile-time heuristics learned from autotuning measurements.

This is the small public surface; everything else is imported from the module that has it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import contextlib
    import os
    from collections import Counter

    from autoheur.errors import AutoheurError, InputError
    from autoheur.fingerprint import Fingerprint
    from autoheur.inductor.records import Record
    from autoheur.inductor.shapes import Shape
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
    "capture",
    "decide",
    "default_registry",
    "disable",
    "enable",
    "enabled",
    "last_decisions",
]


_HOMES = {
    "AutoheurError": "errors",
    "Decision": "types",
    "Feature": "types",
    "Fingerprint": "fingerprint",
    "InputError": "errors",
    "Operand": "types",
    "Operator": "types",
    "Problem": "types",
    "Reason": "types",
    "Registry": "registry",
    "default_registry": "registry",
}
"""Public name -> the module that has it, imported at first use: every ``import torch`` imports this package."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"autoheur.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def decide(operator: str, problem: Problem, device: Fingerprint | None = None) -> Decision:
    """Decide one problem with the installed plugins; see :meth:`Registry.decide`."""
    from autoheur.registry import default_registry

    return default_registry().decide(operator, problem, device)


def enable(mode: str = "use", registry: Registry | None = None, time_budget: float = 0.5) -> None:
    """Let TorchInductor ask autoheur in this process until :func:`disable`; enabling again replaces the settings.

    ``mode`` is ``use`` (decide), ``collect`` (keep what Inductor measures) or ``shadow`` (decide, let Inductor measure
    and decide, keep both). ``registry`` defaults to the installed plugins. ``time_budget`` is in seconds per decision.
    Torch is not imported.

    Raises:
        InputError: an unknown mode, or a time budget that is not positive.
    """
    from autoheur.inductor import activation as session

    session.enable(mode, registry, time_budget)


def disable() -> None:
    """Switch autoheur off in the whole process; nothing of torch stays patched."""
    from autoheur.inductor import activation as session

    session.disable()


def enabled(
    mode: str = "use", registry: Registry | None = None, time_budget: float = 0.5
) -> contextlib.AbstractContextManager[None]:
    """Let TorchInductor ask autoheur for what this thread compiles inside a ``with`` block; see :func:`enable`."""
    from autoheur.inductor import activation as session

    return session.enabled(mode, registry, time_budget)


def capture(path: str | os.PathLike[str] | None = None) -> contextlib.AbstractContextManager[Counter[Shape]]:
    """Record the matrix products that torch.compile meets inside a ``with`` block, in a file that can be measured from.

    See :func:`autoheur.inductor.capturing.capture`.
    """
    from autoheur.inductor import capturing

    return capturing.capture(path)


def last_decisions() -> list[Record]:
    """The decisions made since autoheur was enabled last, oldest first; see docs/inductor.md for what each tells."""
    from autoheur.inductor import activation as session

    return session.last_decisions()
