"""The padding decision: from Inductor's pattern match to an answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from autoheur.inductor import journal, seams
from autoheur.inductor.asking import Answer, Question, ask, extract
from autoheur.inductor.cachekeys import Compile, current_compile
from autoheur.inductor.measuring import Measurement, measure
from autoheur.inductor.records import Record, publish, warn_once
from autoheur.inductor.snapshot import OPERATORS, device_of

if TYPE_CHECKING:
    import torch
    from torch._inductor.pattern_matcher import Match


def steer(original: Callable[..., bool]) -> Callable[..., bool]:
    """Wrap ``_should_pad``, which Inductor asks once it has found that padding is possible."""

    def _should_pad(
        match: Match, mat1: torch.Tensor, mat2: torch.Tensor, op: Any, input: torch.Tensor | None = None
    ) -> bool:
        arguments = (match, mat1, mat2, op, input)
        compile_ = current_compile()
        if compile_ is None or str(op) not in OPERATORS:
            return original(*arguments)
        # Nothing that was cached earlier may answer under deterministic compilation.
        inductor = inspect.unwrap(original) if compile_.deterministic else original
        if _is_settled(compile_, op, mat1, mat2):
            return inductor(*arguments)
        question = _pose(compile_, *arguments)
        if question is None:
            return False if _is_deterministic_use(compile_) else inductor(*arguments)
        if compile_.session.mode == "collect":
            return _collect(compile_, question, inductor, arguments)
        record = _decide(compile_, question, inductor, arguments)
        _publish(compile_, record)
        return record.taken == "pad"

    return _should_pad


def allow_deterministic(original: Callable[..., bool]) -> Callable[..., bool]:
    """Wrap ``can_pad``: where only determinism is against padding a heuristic may decide; it benchmarks nothing."""

    def can_pad(*args: Any, **kwargs: Any) -> bool:
        if original(*args, **kwargs):
            return True
        compile_ = current_compile()
        if compile_ is None or not _is_deterministic_use(compile_):
            return False
        return seams.is_paddable(original, *args, **kwargs)

    return can_pad


def _is_deterministic_use(compile_: Compile) -> bool:
    """Whether Inductor may not even be left to decide, since its padding cache would have a say."""
    return compile_.deterministic and compile_.session.mode == "use"


def _is_settled(compile_: Compile, op: Any, mat1: torch.Tensor, mat2: torch.Tensor) -> bool:
    try:
        return seams.decided_without_measuring(op, mat1, mat2)
    except Exception as error:
        _warn_of_question(compile_, op, error)
        return False


def _warn_of_question(compile_: Compile, op: Any, error: Exception) -> None:
    detail = f"{type(error).__name__}: {error}"
    warn_once(compile_.session, "question", f"{op}: {detail}; the product is compiled as without a heuristic")


def _pose(
    compile_: Compile, match: Match, mat1: torch.Tensor, mat2: torch.Tensor, op: Any, input: torch.Tensor | None
) -> Question | None:
    """The question in plain values, or ``None`` where that fails."""
    try:
        tensors = (mat1, mat2) if input is None else (input, mat1, mat2)
        operands = tuple(seams.operand(tensor) for tensor in tensors)
        return Question(OPERATORS[str(op)], operands, seams.flags(match), device_of(mat1.device))
    except Exception as error:
        _warn_of_question(compile_, op, error)
        return None


Inductor = Callable[..., bool]


def _decide(compile_: Compile, question: Question, inductor: Inductor, arguments: tuple[Any, ...]) -> Record:
    """Modes ``use`` and ``shadow``."""
    answer = ask(compile_, question)
    if compile_.session.mode == "shadow":
        measurement = measure(inductor, compile_.identity, *arguments)
        _keep(compile_, question, answer, measurement)
        return _record(compile_, question, answer, measurement.pads, "inductor")
    if answer.decision.choice is not None:
        return _record(compile_, question, answer, answer.decision.choice == "pad", "heuristic")
    if compile_.deterministic:
        return _record(compile_, question, answer, _pads_by_default(compile_, question), "default")
    return _record(compile_, question, answer, inductor(*arguments), "inductor")


def _pads_by_default(compile_: Compile, question: Question) -> bool:
    plugin = compile_.snapshot.registry.operators.get(question.operator)
    return plugin is not None and plugin.operator.default_choice == "pad"


def _record(compile_: Compile, question: Question, answer: Answer, pads: bool, by: Any) -> Record:
    from torch._guards import CompileContext

    compile_id = CompileContext.current_compile_id()
    return Record(
        decision=answer.decision,
        problem=answer.problem,
        device=question.device,
        mode=compile_.session.mode,
        taken="pad" if pads else "orig",
        by=by,
        microseconds=answer.microseconds,
        compile_id=None if compile_id is None else str(compile_id),
    )


def _publish(compile_: Compile, record: Record) -> None:
    try:
        publish(compile_.session, record)
    except Exception as error:
        warn_once(compile_.session, "publish", f"cannot tell of a decision: {type(error).__name__}: {error}")


def _collect(compile_: Compile, question: Question, inductor: Inductor, arguments: tuple[Any, ...]) -> bool:
    measurement = measure(inductor, compile_.identity, *arguments)
    _keep(compile_, question, None, measurement)
    return measurement.pads


def _keep(compile_: Compile, question: Question, answer: Answer | None, measurement: Measurement) -> None:
    """Write down what was measured, and in mode ``shadow`` what would have been decided."""
    try:
        if measurement.times:
            problem = (answer and answer.problem) or extract(compile_, question)
            features = compile_.snapshot.registry.operator(question.operator).raw_features
            journal.add_measurement(question, features, problem, measurement.times)
        if answer is not None:
            journal.add_comparison(question, answer, measurement)
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        warn_once(compile_.session, f"{question.operator} journal", f"{question.operator}: cannot keep a row: {detail}")
