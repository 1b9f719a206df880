"""Code generation: an artifact becomes source text that depends on nothing of autoheur.

Artifact -> :class:`~autoheur.codegen.nodes.Program` (:mod:`~autoheur.codegen.lowering`) -> text, by one emitter per
target. The code answers exactly as the model does, at split boundaries too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from autoheur.codegen import inductor, python
from autoheur.codegen.lowering import lower
from autoheur.errors import InputError
from autoheur.heuristic.artifact import Artifact
from autoheur.types import Problem

__all__ = ["TARGETS", "CompiledHeuristic", "compile_artifact", "generate"]

_EMITTERS = {"python": (python.emit, python.RESERVED), "inductor": (inductor.emit, inductor.RESERVED)}

TARGETS = tuple(_EMITTERS)
"""``python``: a standalone module. ``inductor``: a module for PyTorch's folder of learned heuristics."""


@attrs.frozen
class CompiledHeuristic:
    """The functions of a generated module.

    Each takes a problem: raw feature -> value. What is ``offered`` are names of choices, or, where the model scores
    choices by their features (``open``), names with their raw features; by default the choices that training saw.

    ``shortlist`` returns the offered choices that may be the best, the best-scored first, the value of a
    :class:`~autoheur.types.Reason`, and the statistic of the second-best score (0.0 where there is none). ``decide``
    returns the same with the one choice that is left, or ``None``, in place of the shortlist. ``scores`` returns one
    score per choice that training saw (of an open model per choice offered; NaN is no score), and ``rank`` the choices
    that training saw, best first; neither looks at precondition or guard, and both raise ``ArithmeticError`` or
    ``ValueError`` where a derived feature of the problem cannot be computed. All raise ``KeyError`` for a missing
    feature of the problem.
    """

    shortlist: Callable[..., tuple[tuple[str, ...], str, float]]
    decide: Callable[..., tuple[str | None, str, float]]
    scores: Callable[..., tuple[float, ...]]
    rank: Callable[[Problem], list[str]]
    open: bool


def generate(artifact: Artifact, target: str = "python") -> str:
    """Generate source code; the same artifact gives the same bytes.

    Raises:
        InputError: an unknown target, or a model whose trees or numbers are not usable.
    """
    if target not in _EMITTERS:
        raise InputError(f"unknown target {target!r}; choose one of {', '.join(TARGETS)}")
    emit, reserved = _EMITTERS[target]
    return emit(lower(artifact, reserved))


def compile_artifact(artifact: Artifact) -> CompiledHeuristic:
    """Make an artifact callable, by executing its ``python`` code in a namespace of its own.

    Raises:
        InputError: see :func:`generate`.
    """
    namespace: dict[str, Any] = {"__name__": "autoheur_generated"}
    # The name shows in tracebacks.
    exec(compile(generate(artifact), f"<heuristic {artifact.name!r}>", "exec"), namespace)
    return CompiledHeuristic(
        namespace["shortlist"],
        namespace["decide"],
        namespace["scores"],
        namespace["rank"],
        open=not artifact.model.needs_names,
    )
