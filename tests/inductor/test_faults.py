"""Whatever goes wrong, the compile succeeds as without autoheur, and one warning says why."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import autoheur
from autoheur.hookspecs import hookimpl
from autoheur.inductor import asking
from autoheur.types import Reason

torch = pytest.importorskip("torch")


def inputs() -> list[Any]:
    return [torch.ones(5, 7), torch.ones(7, 9)]


def with_extract(extract: Callable[..., Any]) -> ModuleType:
    """The plugin pad_mm with another autoheur_extract."""
    import autoheur_pad_mm.plugin as plugin

    module = ModuleType("faulty")
    vars(module).update({name: value for name, value in vars(plugin).items() if name.startswith("autoheur_")})
    vars(module)["autoheur_extract"] = hookimpl(extract)
    return module


def raises(operands: Any, flags: Any) -> Any:
    raise LookupError("out of luck")


def exits(operands: Any, flags: Any) -> Any:
    raise SystemExit(3)


FAULTS: dict[str, tuple[Callable[..., Any], str]] = {
    "exception": (raises, "LookupError: out of luck"),
    "exit": (exits, "SystemExit: 3"),
    "nothing": (lambda operands, flags: None, "does not implement autoheur_extract"),
    "text": (lambda operands, flags: "m=5", "autoheur_extract returned 'm=5'"),
    "names": (lambda operands, flags: {"m": 5}, "pad_mm: missing k"),
}


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("autoheur") and record.levelno >= logging.WARNING
    ]


def model(a: Any, b: Any) -> Any:
    return (a @ b, b.t() @ a.t())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_plugin(bench: Any, graphs: Any, gates: Any, fault: str, caplog: pytest.LogCaptureFixture) -> None:
    bench.put("pad_mm", "orig")
    gates.times = (2.0, 1.0)  # Inductor pads
    extract, part = FAULTS[fault]
    registry = bench.registry(pad_mm=with_extract(extract))
    with autoheur.enabled(registry=registry):
        results = graphs.compile(model)(*inputs())
    for actual, expected in zip(results, model(*inputs()), strict=True):
        torch.testing.assert_close(actual, expected)
    assert graphs.pads > 0
    for record in autoheur.last_decisions():
        assert (record.reason, record.by, record.taken) == (Reason.PLUGIN_ERROR, "inductor", "pad")
    assert len(autoheur.last_decisions()) == 2
    (message,) = warnings(caplog)
    assert part in message


def test_a_heuristic_with_other_choices_than_padding(
    bench: Any, graphs: Any, gates: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = bench.put("pad_mm", "pad")
    path.write_text(path.read_text().replace('"pad"', '"explode"'))
    with autoheur.enabled(registry=bench.registry()):
        graphs.compile(lambda a, b: a @ b)(*inputs())
    (record,) = autoheur.last_decisions()
    assert (record.reason, record.taken, gates.calls) == (Reason.BELOW_THRESHOLD, "orig", 2)
    assert not warnings(caplog)  # what is not offered is not answered, and padding, which it cannot score, stays


def test_a_slow_plugin_is_ignored_and_then_no_longer_asked(
    bench: Any, graphs: Any, gates: Any, caplog: pytest.LogCaptureFixture
) -> None:
    from autoheur_pad_mm.features import extract

    asked: list[int] = []

    def slow(operands: Any, flags: Any) -> Any:
        asked.append(1)
        time.sleep(0.002)
        return extract(operands, flags)

    bench.put("pad_mm", "pad")
    with autoheur.enabled(registry=bench.registry(pad_mm=with_extract(slow)), time_budget=0.001):
        for size in range(5, 10):
            graphs.compile(lambda a, b: a @ b)(torch.ones(size, 7), torch.ones(7, 9))
            assert graphs.pads == 0
    assert len(asked) == asking.MOST_OVERRUNS
    reasons = [record.reason for record in autoheur.last_decisions()]
    assert reasons == [Reason.PLUGIN_ERROR] * 5
    (message,) = warnings(caplog)
    assert "over the budget of 1.0 ms" in message
    with autoheur.enabled(registry=bench.registry(pad_mm=with_extract(slow)), time_budget=60.0):
        graphs.compile(lambda a, b: a @ b)(*inputs())
    assert graphs.pads > 0, "another session asks again"


@pytest.mark.parametrize("damage", ["deleted", "corrupted", "emptied"])
def test_an_artifact_damaged_between_two_compiles(
    bench: Any, graphs: Any, gates: Any, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = bench.put("pad_mm", "pad")
    with autoheur.enabled(registry=bench.registry()):
        graphs.compile(lambda a, b: a @ b)(*inputs())
        assert graphs.pads > 0
        if damage == "deleted":
            path.unlink()
        else:
            path.write_text('{"format": "autoheur.artifact", "ver' if damage == "corrupted" else "")
        for _ in range(2):
            result = graphs.compile(lambda a, b: a @ b)(*inputs())
    torch.testing.assert_close(result, inputs()[0] @ inputs()[1])
    assert (graphs.pads, gates.calls) == (0, 2)
    assert [record.reason for record in autoheur.last_decisions()][1:] == [Reason.NO_HEURISTIC] * 2
    (message,) = warnings(caplog)
    assert str(path) in message


def test_an_artifact_without_a_plugin_for_its_operator_changes_nothing(bench: Any, graphs: Any, gates: Any) -> None:
    from autoheur.registry import Registry

    bench.put("pad_mm", "pad")
    with autoheur.enabled(registry=Registry([], bench.store)):
        graphs.compile(lambda a, b: a @ b)(*inputs())
    assert (graphs.pads, gates.calls) == (0, 2)


@pytest.mark.parametrize("place", ["operand", "device", "trace_structured", "current_snapshot"])
def test_a_fault_of_our_own(
    bench: Any, graphs: Any, gates: Any, place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from autoheur.inductor import compile as compiling

    def broken(*_: object, **__: object) -> Any:
        raise RuntimeError("broken")

    owner = {"device": compiling.Snapshot, "current_snapshot": compiling}.get(place, asking)
    monkeypatch.setattr(owner, place, broken)
    bench.put("pad_mm", "orig")
    with autoheur.enabled(registry=bench.registry()):
        result = graphs.compile(model)(*inputs())
    torch.testing.assert_close(result[0], inputs()[0] @ inputs()[1])
    (message,) = warnings(caplog)
    assert "RuntimeError: broken" in message


def test_a_warning_is_given_once_per_topic_and_session(caplog: pytest.LogCaptureFixture) -> None:
    from autoheur.inductor.session import Session

    first, second = Session("use", None, 1.0), Session("use", None, 1.0)
    for session, topic in ((first, "a"), (first, "a"), (first, "b"), (second, "a")):
        session.warn_once(topic, topic)
    assert warnings(caplog) == ["a", "b", "a"]
