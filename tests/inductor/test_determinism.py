"""Deterministic compilation: nothing is benchmarked, and no cache has a say."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import attrs
import pytest

import autoheur
from autoheur.hookspecs import hookimpl
from autoheur.types import Reason

torch = pytest.importorskip("torch")


def inputs() -> list[Any]:
    return [torch.ones(5, 7), torch.ones(7, 9)]


def padded(bench: Any, graphs: Any, registry: Any = None) -> bool:
    with autoheur.enabled(registry=registry or bench.registry()), torch._inductor.config.patch(deterministic=True):
        result = graphs.compile(lambda a, b: a @ b)(*inputs())
    torch.testing.assert_close(result, inputs()[0] @ inputs()[1])
    (record,) = autoheur.last_decisions()
    assert (record.taken == "pad") == (graphs.pads > 0)
    return bool(graphs.pads)


@pytest.mark.parametrize("refusal", [None, False])
@pytest.mark.parametrize("choice", ["pad", "orig"])
def test_a_decision_is_taken_without_a_benchmark(
    bench: Any, graphs: Any, gates: Any, choice: str, refusal: bool | None
) -> None:
    """``refusal``: can_pad says no under deterministic compilation, as that of torch 2.12 always does."""
    bench.put("pad_mm", choice)
    with torch._inductor.config.patch({"autoheuristic_use.pad_mm": refusal}):
        assert padded(bench, graphs) == (choice == "pad")
    assert gates.calls == 0


@pytest.mark.parametrize("choice", [None, "pad", "orig"])
def test_cold_warm_and_foreign_caches_give_the_same_decision(bench: Any, graphs: Any, gates: Any, choice: str) -> None:
    bench.put("pad_mm", choice)
    decisions = [padded(bench, graphs), padded(bench, graphs)]
    assert gates.calls == 0
    gates.times = (2.0, 1.0)  # what an ordinary run measures and caches: padding is faster
    graphs.compile(lambda a, b: a @ b)(*inputs())
    assert (graphs.pads > 0, gates.calls) == (True, 2)
    decisions.append(padded(bench, graphs))
    assert decisions == [choice == "pad"] * 3
    assert gates.calls == 2


@pytest.mark.parametrize("default", ["orig", "pad"])
def test_unsure_takes_the_operators_default(bench: Any, graphs: Any, gates: Any, default: str) -> None:
    import autoheur_pad_mm.plugin as plugin

    other = ModuleType("other")
    vars(other).update({name: value for name, value in vars(plugin).items() if name.startswith("autoheur_")})
    operator = attrs.evolve(plugin.autoheur_operator(), default_choice=default)
    vars(other)["autoheur_operator"] = hookimpl(lambda: operator)
    bench.put("pad_mm", None)
    assert padded(bench, graphs, bench.registry(pad_mm=other)) == (default == "pad")
    (record,) = autoheur.last_decisions()
    assert (record.by, record.reason, gates.calls) == ("default", Reason.BELOW_THRESHOLD, 0)


def test_where_no_heuristic_answers_the_default_is_taken_too(bench: Any, graphs: Any, gates: Any) -> None:
    assert not padded(bench, graphs)
    (record,) = autoheur.last_decisions()
    assert (record.by, record.reason, gates.calls) == ("default", Reason.NO_HEURISTIC, 0)


def test_torchs_own_switch_holds_for_many_compiles(bench: Any, graphs: Any, gates: Any) -> None:
    gates.times = (2.0, 1.0)
    graphs.compile(lambda a, b: a @ b)(*inputs())
    bench.put("pad_mm", None)
    torch.use_deterministic_algorithms(True)
    try:
        with autoheur.enabled(registry=bench.registry()):
            for _ in range(3):
                graphs.compile(lambda a, b: a @ b)(*inputs())
                assert graphs.pads == 0
    finally:
        torch.use_deterministic_algorithms(False)
    assert gates.calls == 2
    assert [record.by for record in autoheur.last_decisions()] == ["default"] * 3


def test_a_slow_decision_is_reported_but_taken(bench: Any, graphs: Any, caplog: pytest.LogCaptureFixture) -> None:
    """How busy the machine is must not change the graph."""
    bench.put("pad_mm", "pad")
    with (
        caplog.at_level("WARNING", logger="autoheur"),
        autoheur.enabled(registry=bench.registry(), time_budget=1e-9),
        torch._inductor.config.patch(deterministic=True),
    ):
        graphs.compile(lambda a, b: a @ b)(*inputs())
    assert graphs.pads > 0
    assert len(caplog.messages) == 1


def test_a_fault_of_our_own_leaves_nothing_to_the_cache(
    bench: Any, graphs: Any, gates: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autoheur.inductor.compile import Snapshot

    def broken(self: Snapshot, device: object) -> Any:
        raise RuntimeError("broken")

    gates.times = (2.0, 1.0)
    graphs.compile(lambda a, b: a @ b)(*inputs())
    assert graphs.pads > 0, "measured and cached"
    monkeypatch.setattr(Snapshot, "device", broken)
    with autoheur.enabled(registry=bench.registry()), torch._inductor.config.patch(deterministic=True):
        graphs.compile(lambda a, b: a @ b)(*inputs())
    assert (graphs.pads, gates.calls) == (0, 2)


def test_the_setting_itself_is_not_changed(bench: Any, graphs: Any) -> None:
    bench.put("pad_mm", "pad")
    assert padded(bench, graphs)
    assert torch._inductor.config.deterministic is False
