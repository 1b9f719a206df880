"""The path of every question: from torch's call of a seam, by a site, to a decision, and to torch's value.

Nothing that a site or a plugin does can break or stop the compile: whatever goes wrong, torch answers as it would, and
one warning says why.
"""

from __future__ import annotations

import inspect
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from autoheur.errors import describe
from autoheur.inductor import observed, torch_seams
from autoheur.inductor.compile import Compile, current_compile, identify
from autoheur.inductor.observed import Record
from autoheur.inductor.session import Session
from autoheur.inductor.torch_seams import Wrapper, counters, trace_structured
from autoheur.registry import Registry
from autoheur.site import Operand, Seam, Site
from autoheur.types import Decision, Reason

logger = logging.getLogger("autoheur.inductor")

MOST_OVERRUNS = 3
"""After so many decisions beyond the time budget an operator is no longer asked in a session."""

_reported: set[str] = set()


def attach(registry: Registry) -> None:
    """Wrap what the sites of a registry name; a site that this torch has no place for is one warning and left out.

    With a torch that is not supported, log one warning and replace nothing.
    """
    if (reason := torch_seams.unsupported()) is not None:
        _report(f"autoheur stays off: {reason}")
        return
    # First: a decision without its identity in the cache keys would outlive us.
    torch_seams.replace(torch_seams.GRAPH_KEY, identify)
    for entry in registry.sites:
        fault = entry.fault or (entry.site and torch_seams.missing(entry.site))
        if fault or entry.site is None:
            _report(f"the site {entry.name} of {entry.provenance} is left out: {fault}")
            continue
        for seam, wrap in _wrappers(entry.site):
            if torch_seams.look(seam).found:
                torch_seams.replace(seam, wrap)


def _report(message: str) -> None:
    if message not in _reported:
        _reported.add(message)
        logger.warning("%s", message)


def _wrappers(site: Site) -> list[tuple[Seam, Wrapper]]:
    """What is to be replaced for a site. Which site is asked at a seam is up to each compile's own registry."""
    seam = site.seam.name
    wrappers = [(site.seam, lambda original: _asking(seam, original))]
    if site.gate is not None:
        wrappers.append((site.gate, lambda original: _opening(seam, original)))
    wrappers += [(each, _separating) for each in site.keys]
    wrappers += [(each, lambda original, name=each.name: _overhearing(name, original)) for each, _ in site.measured]  # type: ignore[misc]
    return wrappers


def _asking(seam: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def asking(*arguments: Any, **keywords: Any) -> Any:
        compile_ = current_compile()
        site = None if compile_ is None else compile_.snapshot.sites.get(seam)
        if compile_ is None or site is None:
            return original(*arguments, **keywords)
        # Nothing that was memoized earlier may answer under deterministic compilation.
        torchs = inspect.unwrap(original) if compile_.deterministic else original
        return ask(compile_, site, Call(torchs, arguments, keywords))

    return asking


def _opening(seam: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def opening(*arguments: Any, **keywords: Any) -> Any:
        if answer := original(*arguments, **keywords):
            return answer
        compile_ = current_compile()
        if compile_ is None or not compile_.leaves_nothing_to_torch or seam not in compile_.snapshot.sites:
            return answer
        return torch_seams.without_determinism(original, *arguments, **keywords)

    return opening


@attrs.frozen
class Call:
    """A call of a seam: torch's own function, and the arguments that torch passed."""

    torchs: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]

    def hand_to(self, function: Callable[..., Any], *first: Any) -> Any:
        return function(*first, *self.arguments, **self.keywords)


def ask(compile_: Compile, site: Site, call: Call) -> Any:
    """Answer torch's call. Raises nothing but what torch's own function raises."""
    try:
        record = _pose(compile_, site, call)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _warn(compile_.session, site, "question", error)
        record = Record(site.operators[0], None, compile_.session.mode)
        return _default(compile_, site, record, call) if compile_.leaves_nothing_to_torch else call.hand_to(call.torchs)
    if record is None:
        return call.hand_to(call.torchs)
    if record.mode == "use":
        decide(compile_, record)
        value = _answer(compile_, site, record, call)
    elif record.mode == "shadow":
        decide(compile_, record)
        value = _measure(compile_, site, record, call)
    else:
        return _measure(compile_, site, record, call)
    _tell(compile_.session, record)
    return value


def _warn(session: Session, site: Site, topic: str, error: BaseException) -> None:
    session.warn_once(f"{site.name} {topic}", f"{site.name}: {describe(error)}; Inductor decides as without autoheur")


def _pose(compile_: Compile, site: Site, call: Call) -> Record | None:
    """The question, as a record that is still to be filled; ``None`` where there is none."""
    tensors = call.hand_to(site.tensors)
    if tensors is None:
        return None
    operands = tuple([operand(tensor) for tensor in tensors])
    question = call.hand_to(site.question, operands)
    if question is None:
        return None
    return Record(
        operator=question.operator,
        device=compile_.snapshot.device(tensors[0].device),
        mode=compile_.session.mode,
        compile_id=compile_.compile_id,
        operands=operands,
        flags=question.flags,
        offered=question.choices,
    )


def operand(tensor: Any) -> Operand:
    """A real, fake or symbolic tensor as far as a decision is concerned.

    Raises:
        Exception: a symbolic size of which nothing is known.
    """
    return Operand(
        shape=_numbers(tensor.shape),
        stride=_numbers(tensor.stride()),
        dtype=str(tensor.dtype),
        static=tuple([isinstance(size, int) for size in tensor.shape]),
    )


def _numbers(sizes: Sequence[Any]) -> tuple[int, ...]:
    return tuple([size if isinstance(size, int) else torch_seams.hint(size) for size in sizes])


def decide(compile_: Compile, record: Record) -> None:
    """Fill in the decision; whatever goes wrong, it is unsure, with one warning that says why. Never raises."""
    session, registry, operator, device = compile_.session, compile_.snapshot.registry, record.operator, record.device
    if session.overruns.get(operator, 0) >= MOST_OVERRUNS:
        record.decision = _unsure(record, Reason.PLUGIN_ERROR, "switched off: too slow")
        return
    if device is None or compile_.snapshot.heuristic(operator, device) is None:
        here = device.label() if device else "this kind of device"
        record.decision = _unsure(record, Reason.NO_HEURISTIC, f"no heuristic for {here}")
        return
    start = time.perf_counter()
    try:
        record.problem = registry.extract(operator, record.operands, record.flags)
        record.decision = registry.decide(operator, record.problem, device, record.offered)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        detail = describe(error)
        session.warn_once(f"{operator} error", f"{operator}: {detail}; Inductor decides as without autoheur")
        record.decision = _unsure(record, Reason.PLUGIN_ERROR, detail)
    seconds = time.perf_counter() - start
    record.microseconds = seconds * 1e6
    if seconds > session.time_budget:
        _judge_slow(compile_, record, seconds)


def _unsure(record: Record, reason: Reason, detail: str) -> Decision:
    return Decision(record.operator, _offered(record), reason, detail=detail)


def _offered(record: Record) -> tuple[str, ...]:
    """The names of the choices that the site offered; none where it left them to the operator."""
    return tuple(choice if isinstance(choice, str) else choice.name for choice in record.offered or ())


def _judge_slow(compile_: Compile, record: Record, seconds: float) -> None:
    """Count and report a decision that took too long; it is not used.

    Except under deterministic compilation and where several processes compile the same graph: there, how busy the
    machine is must not change it.
    """
    session, operator = compile_.session, record.operator
    detail = f"took {seconds * 1e3:.1f} ms, over the budget of {session.time_budget * 1e3:.1f} ms"
    session.warn_once(
        f"{operator} slow",
        f"{operator}: a decision {detail}; it is ignored, and after {MOST_OVERRUNS} of them none is asked for any more",
    )
    if compile_.deterministic or torch_seams.is_distributed():
        return
    with session.lock:
        session.overruns[operator] = session.overruns.get(operator, 0) + 1
    record.decision = _unsure(record, Reason.PLUGIN_ERROR, detail)


def _answer(compile_: Compile, site: Site, record: Record, call: Call) -> Any:
    """Torch's value for a decision: by the site, else by default under deterministic compilation, else by torch."""
    decision = record.decision
    try:
        if (choice := decision.choice) is not None:
            value = call.hand_to(site.answer, choice)
            record.taken, record.by = choice, "heuristic"
            return value
        if site.narrow is not None and not decision.unsure and not compile_.deterministic:
            value = call.hand_to(site.narrow, decision, call.torchs)
            record.taken = site.meaning(value)
            return value
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _warn(compile_.session, site, "answer", error)
    if compile_.deterministic:
        return _default(compile_, site, record, call)
    return _leave_to_torch(compile_, site, record, call)


def _default(compile_: Compile, site: Site, record: Record, call: Call) -> Any:
    """Torch's value for the operator's default choice; where that is not offered, for the first that is."""
    plugin = compile_.snapshot.registry.operators.get(record.operator)
    choice = plugin.operator.default_choice if plugin else None
    offered = _offered(record)
    if offered and choice not in offered:
        choice = offered[0]
    if choice is not None:
        try:
            value = call.hand_to(site.answer, choice)
            record.taken, record.by = choice, "default"
            return value
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            _warn(compile_.session, site, "answer", error)
    return _leave_to_torch(compile_, site, record, call)


def _leave_to_torch(compile_: Compile, site: Site, record: Record, call: Call) -> Any:
    value = call.hand_to(call.torchs)
    _understand(compile_, site, record, value)
    return value


def _understand(compile_: Compile, site: Site, record: Record, value: Any) -> None:
    """Note which choice torch took by itself."""
    try:
        record.taken = site.meaning(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _warn(compile_.session, site, "meaning", error)


@attrs.frozen
class _Measuring:
    """Torch decides, and what it measures is noted in ``record``; its caches are used under keys with ``prefix``."""

    site: Site
    record: Record
    prefix: str


class _Thread(threading.local):
    measuring: _Measuring | None = None


_thread = _Thread()


def _measure(compile_: Compile, site: Site, record: Record, call: Call) -> Any:
    """Let torch decide, and keep the times that it measures.

    Its memoizer is left out, and its cache of measurements is read and written under keys of our own: what was measured
    earlier without us is measured once more, and the user's own entries stay untouched.
    """
    prefix = f"autoheur {compile_.identity}: " if compile_.identity else ""
    outer, _thread.measuring = _thread.measuring, _Measuring(site, record, prefix)
    start = time.perf_counter()
    try:
        value = call.hand_to(inspect.unwrap(call.torchs))
    finally:
        record.seconds = time.perf_counter() - start
        _thread.measuring = outer
    _understand(compile_, site, record, value)
    _keep(compile_, record)
    return value


def _separating(original: Callable[..., str]) -> Callable[..., str]:
    """Wrap a function that computes keys of a cache of measurements."""

    def separating(*arguments: Any, **keywords: Any) -> str:
        measuring = _thread.measuring
        return (measuring.prefix if measuring else "") + original(*arguments, **keywords)

    return separating


def _overhearing(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that torch calls with measured times."""

    def overhearing(*arguments: Any, **keywords: Any) -> Any:
        if (measuring := _thread.measuring) is not None:
            for seam, times in measuring.site.measured:
                if seam.name == name:
                    try:
                        measuring.record.times = {**measuring.record.times, **times(*arguments, **keywords)}
                    except Exception as error:
                        logger.debug("%s: measured times are not understood: %s", name, describe(error))
        return original(*arguments, **keywords)

    return overhearing


def _keep(compile_: Compile, record: Record) -> None:
    """Write down what was measured, and in mode ``shadow`` what would have been decided."""
    operator, registry = record.operator, compile_.snapshot.registry
    try:
        if record.times:
            record.problem = record.problem or registry.extract(operator, record.operands, record.flags)
            observed.add_measurement(record, registry.operator(operator).raw_features)
        if record.mode == "shadow":
            observed.add_comparison(record)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        compile_.session.warn_once(f"{operator} journal", f"{operator}: cannot keep a row: {describe(error)}")


def _tell(session: Session, record: Record) -> None:
    """Remember a decision, count it, log it and put it into the compile trace."""
    decision = record.decision
    try:
        session.records.append(record)
        answer = decision.choice or ("unsure" if decision.unsure else "shortlist")
        counters["autoheur"][f"{record.operator}.{answer}"] += 1
        counters["autoheur"][f"reason.{decision.reason.value}"] += 1
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s", record.line())
        trace_structured(  # written only where a trace is being written; ``tlparse`` shows it
            "artifact",
            metadata_fn=lambda: {"name": f"autoheur_{record.operator}", "encoding": "json"},
            payload_fn=record.to_dict,
        )
    except Exception as error:
        session.warn_once("publish", f"cannot tell of a decision: {describe(error)}")
