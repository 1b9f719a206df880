"""Enabling and disabling: twice, nested, in another order, in threads; and what stays of it in torch."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest

import autoheur
from autoheur.errors import InputError
from autoheur.inductor import session, torch_seams
from autoheur.site import Seam

torch = pytest.importorskip("torch")


def attributes() -> dict[str, int]:
    """Everything that can be replaced in the modules that have a seam, by identity."""
    from torch._inductor import codecache
    from torch._inductor.fx_passes import pad_mm

    owners = {"pad_mm": pad_mm, "codecache": codecache, "FxGraphHashDetails": codecache.FxGraphHashDetails}
    return {f"{label}.{name}": id(value) for label, owner in owners.items() for name, value in vars(owner).items()}


@pytest.fixture
def untouched(gates: Any) -> dict[str, int]:
    return attributes()


def mode() -> str | None:
    active = session.active()
    return active.mode if active else None


def test_nothing_of_torch_stays_patched(untouched: dict[str, int]) -> None:
    autoheur.enable()
    replaced = {name for name, value in attributes().items() if untouched[name] != value}
    assert replaced == {
        "pad_mm._should_pad",
        "pad_mm.can_pad",
        "pad_mm.should_pad_bench_key",
        "pad_mm.is_padded_faster",
        "FxGraphHashDetails.__init__",
    }
    autoheur.disable()
    assert attributes() == untouched


def test_enabling_twice_replaces_the_settings_and_one_disable_undoes_it(untouched: dict[str, int]) -> None:
    autoheur.enable()
    autoheur.enable("shadow")
    assert mode() == "shadow"
    autoheur.disable()
    assert mode() is None
    assert attributes() == untouched
    autoheur.disable()  # nothing to undo
    assert attributes() == untouched


def test_blocks_nest_and_restore_what_was_around_them(untouched: dict[str, int]) -> None:
    autoheur.enable("collect")
    with autoheur.enabled("shadow"):
        assert mode() == "shadow"
        with autoheur.enabled("use"):
            assert mode() == "use"
        assert mode() == "shadow"
    assert mode() == "collect"
    autoheur.disable()
    assert attributes() == untouched


def test_blocks_left_in_another_order(untouched: dict[str, int]) -> None:
    first, second = autoheur.enabled("collect"), autoheur.enabled("shadow")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert mode() == "shadow"
    second.__exit__(None, None, None)
    assert mode() is None
    assert attributes() == untouched


def test_a_block_left_by_an_exception_is_undone(untouched: dict[str, int]) -> None:
    with contextlib.suppress(ZeroDivisionError), autoheur.enabled():
        raise ZeroDivisionError
    assert mode() is None
    assert attributes() == untouched


def test_disable_ends_blocks_too_and_leaving_them_later_changes_nothing(untouched: dict[str, int]) -> None:
    with autoheur.enabled():
        autoheur.disable()
        assert mode() is None
        assert attributes() == untouched
        autoheur.enable("shadow")
    assert mode() == "shadow"
    autoheur.disable()
    assert attributes() == untouched


def test_a_block_holds_for_its_thread_and_enable_for_all(untouched: dict[str, int]) -> None:
    seen: list[str | None] = []

    def look() -> None:
        thread = threading.Thread(target=lambda: seen.append(mode()))
        thread.start()
        thread.join()

    with autoheur.enabled("shadow"):
        look()
        autoheur.enable("collect")
        look()
    autoheur.disable()
    look()
    assert seen == [None, "collect", None]


def test_threads_come_and_go_without_leaving_anything(untouched: dict[str, int]) -> None:
    start = threading.Barrier(8)
    modes: list[tuple[str, str | None]] = []

    def work(wanted: str) -> None:
        start.wait()
        for _ in range(50):
            with autoheur.enabled(wanted):
                modes.append((wanted, mode()))

    threads = [threading.Thread(target=work, args=(wanted,)) for wanted in ("use", "shadow") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(modes) == 400
    assert all(wanted == seen for wanted, seen in modes)
    assert attributes() == untouched


def test_two_threads_compile_at_once_each_with_its_own_heuristics(bench: Any, graphs: Any, tmp_path: Any) -> None:
    import attrs

    results: dict[str, list[str]] = {}
    benches = {choice: attrs.evolve(bench, folder=tmp_path / choice) for choice in ("pad", "orig")}
    for choice, own in benches.items():
        own.folder.mkdir()
        own.put("pad_mm", choice)
    torch._dynamo.reset()

    def work(choice: str) -> None:
        inputs = [torch.ones(5, 7), torch.ones(7, 9)]
        with autoheur.enabled(registry=benches[choice].registry(), time_budget=60.0):  # on a busy machine too
            torch.compile(lambda a, b: a @ b, backend=graphs._backend)(*inputs)
            results[choice] = [record.taken for record in autoheur.last_decisions()]

    threads = [threading.Thread(target=work, args=(choice,)) for choice in benches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"pad": ["pad"], "orig": ["orig"]}


def test_what_somebody_else_wrapped_around_ours_stays_theirs(bench: Any, graphs: Any) -> None:
    from torch._inductor.fx_passes import pad_mm

    original: Any = pad_mm._should_pad
    bench.put("pad_mm", "pad")
    try:
        autoheur.enable(registry=bench.registry())
        ours: Any = pad_mm._should_pad
        theirs = pad_mm._should_pad = lambda *arguments: ours(*arguments)
        autoheur.disable()
        assert pad_mm._should_pad is theirs
        graphs.compile(lambda a, b: a @ b)(torch.ones(5, 7), torch.ones(7, 9))
        assert graphs.pads == 0, "ours passes the question on"
        autoheur.enable(registry=bench.registry())
        graphs.compile(lambda a, b: a @ b)(torch.ones(5, 7), torch.ones(7, 9))
        assert graphs.pads > 0
        assert len(autoheur.last_decisions()) == 1, "asked once, not twice"
    finally:
        pad_mm._should_pad = ours
        autoheur.disable()
    assert pad_mm._should_pad is original


@pytest.mark.parametrize(
    ("arguments", "part"), [({"mode": "on"}, "use, collect, shadow"), ({"time_budget": 0}, "positive")]
)
def test_wrong_settings_are_refused_and_change_nothing(
    untouched: dict[str, int], arguments: dict[str, Any], part: str
) -> None:
    with pytest.raises(InputError, match=part):
        autoheur.enable(**arguments)
    with pytest.raises(InputError, match=part), autoheur.enabled(**arguments):
        pass
    assert mode() is None
    assert attributes() == untouched


@pytest.mark.parametrize("version", ["2.10.1", "2.15.0a0+git1", "3.0", "unknown"])
def test_a_torch_that_is_not_supported_is_one_warning_and_off(
    untouched: dict[str, int], version: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(torch_seams, "torch_version", lambda: version)
    with caplog.at_level("WARNING", logger="autoheur"):
        autoheur.enable()
        autoheur.enable()
    assert attributes() == untouched
    (message,) = caplog.messages
    assert message == f"autoheur stays off: torch {version} is not supported (supported: 2.11 to 2.14)"


@pytest.mark.parametrize("version", ["2.11.0", "2.12.1+cu128", "2.13.0+cpu", "2.14.1"])
def test_supported_versions(gates: Any, version: str) -> None:
    assert torch_seams.unsupported(version) is None


def test_a_torch_without_a_sites_seam_is_one_warning_and_the_site_is_left_out(
    gates: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from torch._inductor.fx_passes import pad_mm

    monkeypatch.setattr(pad_mm, "_should_pad", lambda match, left, right: False)
    with caplog.at_level("WARNING", logger="autoheur"):
        autoheur.enable()
        autoheur.enable()
    assert torch_seams.replaced() == [torch_seams.GRAPH_KEY.name]
    (message,) = caplog.messages
    assert message.startswith("the site padding of ")
    assert "lacks torch._inductor.fx_passes.pad_mm._should_pad (takes (match, left, right), not (match" in message


def test_a_torch_without_a_seam_of_core_is_one_warning_and_off(
    untouched: dict[str, int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seam = Seam("torch._inductor.codecache", "NoSuchKey.__init__", ("self",))
    monkeypatch.setattr(torch_seams, "SEAMS", (seam,))
    with caplog.at_level("WARNING", logger="autoheur"):
        autoheur.enable()
    assert attributes() == untouched
    (message,) = caplog.messages
    assert "lacks torch._inductor.codecache.NoSuchKey.__init__ (AttributeError: " in message


def test_functions_of_torch_that_a_test_replaced_are_accepted(gates: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.fx_passes import pad_mm

    from autoheur_pad_mm.site import PADDING

    monkeypatch.setattr(pad_mm, "is_mm_compute_bound", lambda *_, **__: True)
    assert torch_seams.unsupported() is None
    assert torch_seams.missing(PADDING) is None


def test_without_measurements_to_overhear_decisions_still_work(
    bench: Any, graphs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.fx_passes import pad_mm

    monkeypatch.delattr(pad_mm, "is_padded_faster")
    bench.put("pad_mm", "pad")
    with autoheur.enabled(registry=bench.registry()):
        graphs.compile(lambda a, b: a @ b)(torch.ones(5, 7), torch.ones(7, 9))
    assert graphs.pads > 0
