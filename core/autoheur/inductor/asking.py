"""Asking one question, so that nothing a plugin does can break or stop the compile."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from autoheur.fingerprint import Fingerprint
from autoheur.inductor.records import warn_once
from autoheur.types import Decision, Operand, Problem, Reason, Value

if TYPE_CHECKING:
    from autoheur.inductor.cachekeys import Compile

CHOICES = ("orig", "pad")

MOST_OVERRUNS = 3
"""After so many decisions beyond the time budget an operator is no longer asked in a session."""


@attrs.frozen
class Question:
    """One padding decision to make, in plain values; ``operands`` are in the order of the operator's arguments."""

    operator: str
    operands: tuple[Operand, ...]
    flags: Mapping[str, Value]
    device: Fingerprint


@attrs.frozen
class Answer:
    """The decision, the raw features (empty where none were needed) and the time it took, in microseconds."""

    decision: Decision
    problem: Problem = attrs.field(factory=dict)
    microseconds: float = 0.0


def ask(compile_: Compile, question: Question) -> Answer:
    """Decide a question; whatever goes wrong, the answer is unsure, with one warning that says why. Never raises."""
    session, operator = compile_.session, question.operator
    if session.overruns.get(operator, 0) >= MOST_OVERRUNS:
        return Answer(_unsure(operator, Reason.PLUGIN_ERROR, "switched off: too slow"))
    if compile_.snapshot.heuristic(operator, question.device) is None:
        detail = f"no heuristic for {question.device.label()}"
        return Answer(_unsure(operator, Reason.NO_HEURISTIC, detail))
    start = time.perf_counter()
    problem: Problem = {}
    try:
        problem = extract(compile_, question)
        decision = compile_.snapshot.registry.decide(operator, problem, question.device)
        if not isinstance(decision, Decision) or decision.choice not in (*CHOICES, None):
            raise TypeError(f"{decision!r} is not a decision between {' and '.join(CHOICES)}")
    except (Exception, SystemExit) as error:
        detail = f"{type(error).__name__}: {error}"
        warn_once(session, f"{operator} error", f"{operator}: {detail}; Inductor decides as without autoheur")
        decision = _unsure(operator, Reason.PLUGIN_ERROR, detail)
    seconds = time.perf_counter() - start
    if seconds > session.time_budget:
        decision = _too_slow(compile_, decision, seconds)
    return Answer(decision, problem, seconds * 1e6)


def extract(compile_: Compile, question: Question) -> Problem:
    """The raw features of a question.

    Raises:
        Exception: whatever the plugin raises; ``PluginError`` if it returns something else than named values.
    """
    return compile_.snapshot.registry.operator(question.operator).extract(question.operands, question.flags)


def _too_slow(compile_: Compile, decision: Decision, seconds: float) -> Decision:
    """Count and report a decision that took too long; it is not used.

    Except under deterministic compilation, where how busy the machine is must not change the graph.
    """
    session, operator = compile_.session, decision.operator
    detail = f"took {seconds * 1e3:.1f} ms, over the budget of {session.time_budget * 1e3:.1f} ms"
    warn_once(
        session,
        f"{operator} slow",
        f"{operator}: a decision {detail}; it is ignored, and after {MOST_OVERRUNS} of them none is asked for any more",
    )
    if compile_.deterministic:
        return decision
    with session.lock:
        session.overruns[operator] = session.overruns.get(operator, 0) + 1
    return _unsure(operator, Reason.PLUGIN_ERROR, detail)


def _unsure(operator: str, reason: Reason, detail: str) -> Decision:
    return Decision(operator, (), reason, detail=detail)
