"""The ``inductor`` target: a module for torch/_inductor/autoheuristic/artifacts (its file name starts with ``_``).

PyTorch's LearnedHeuristicController instantiates every subclass of LearnedHeuristic that it finds there, and asks
the first whose precondition holds. The module reads raw features only, so it does not depend on torch's own
derived ones.
"""

from __future__ import annotations

from autoheur.codegen.names import Identifiers, literal
from autoheur.codegen.nodes import Program
from autoheur.codegen.python import RESERVED as PYTHON_RESERVED
from autoheur.codegen.python import Access, modules, write_constants, write_functions, write_header
from autoheur.codegen.writer import Writer
from autoheur.types import Reason

RESERVED = (*PYTHON_RESERVED, "AHContext", "AHMetadata", "Choice", "LearnedHeuristic", "metadata", "choices")

_PACKAGE = "torch._inductor.autoheuristic"
_OPEN = "{choice: CHOICES.get(choice, {}) for choice in choices}"
_CONTEXT = Access("context", "AHContext", "context.get_value(", ")")


def emit(program: Program) -> str:
    """Print a program as a module with one subclass of torch's LearnedHeuristic."""
    writer = Writer()
    write_header(writer, program)
    for module in modules(program):
        writer.line(f"import {module}")
    writer.line("from collections.abc import Mapping" if program.choice else "from collections.abc import Sequence")
    if program.choice:
        writer.line("from typing import Any")
    writer.line()
    writer.line(f"from {_PACKAGE}.autoheuristic_utils import AHContext, AHMetadata, Choice")
    writer.line(f"from {_PACKAGE}.learnedheuristic_interface import LearnedHeuristic")
    writer.line()
    write_constants(writer, program)
    write_functions(writer, program, _CONTEXT)
    _write_class(writer, program)
    return writer.text()


def _write_class(writer: Writer, program: Program) -> None:
    writer.line()
    writer.line()
    name = Identifiers(RESERVED).take_class(program.name)
    with writer.block(f"class {name}(LearnedHeuristic):"):
        writer.line('"""What PyTorch finds and asks."""')
        writer.line()
        _write_precondition(writer, program)
        with writer.block("def get_name(self) -> str:"):
            writer.line("return OPERATOR")
        writer.line()
        with writer.block("def get_confidence_threshold(self) -> float:"):
            writer.line("return THRESHOLD")
        writer.line()
        with writer.block("def get_decision(self, context: AHContext, choices: list[Choice]) -> Choice | None:"):
            writer.line(f"return decide(context, {_OPEN if program.choice else 'choices'})[0]")
        writer.line()
        with writer.block("def get_decisions_ranked(self, context: AHContext) -> list[str] | None:"):
            writer.line("_, reason, _ = shortlist(context)")
            checks = (Reason.PRECONDITION, Reason.OUT_OF_RANGE)
            writer.line(f"return None if reason in ({', '.join(map(literal, checks))}) else rank(context)")


def _write_precondition(writer: Writer, program: Program) -> None:
    """Write the check of operator and device: of a device, torch tells capability and shared memory."""
    conditions = ["metadata.name == OPERATOR"]
    if program.device.capability is not None:
        conditions.append(f"str(metadata.device_capa) == {literal(program.device.capability)}")
    if program.device.shared_memory is not None:
        conditions.append(f"metadata.shared_memory == {program.device.shared_memory}")
    with writer.block("def check_precondition(self, metadata: AHMetadata, context: AHContext) -> bool:"):
        writer.line(f"return {' and '.join(conditions)}")
    writer.line()
