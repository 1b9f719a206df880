"""Swapping a heuristic reaches every cache: the graph caches, Inductor's padding cache and its memoizer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

import autoheur

torch = pytest.importorskip("torch")


def inputs() -> list[Any]:
    return [torch.ones(5, 7), torch.ones(7, 9)]


def hits() -> tuple[int, int]:
    """Hits and misses of the AOTAutograd cache since the last look; the FX graph cache lies behind it."""
    counters = torch._dynamo.utils.counters["aot_autograd"]
    found = counters["autograd_cache_hit"], counters["autograd_cache_miss"]
    counters.clear()
    return found


def compile_really(**options: Any) -> Any:
    """Compile with code generation and caches, as users do."""
    torch._dynamo.reset()
    compiled = torch.compile(lambda a, b: a @ b, **options)
    result = compiled(*inputs())
    torch.testing.assert_close(result, inputs()[0] @ inputs()[1])
    return hits()


def test_one_process_changing_its_mind(bench: Any, gates: Any) -> None:
    registry = bench.registry()
    hits()
    assert compile_really() == (0, 1)
    assert compile_really() == (1, 0)
    with autoheur.enabled(registry=registry):
        assert compile_really() == (1, 0), "no heuristic answers here: the user's own entries are found"
        bench.put("pad_mm", "orig")
        assert compile_really() == (0, 1)
        assert [record.taken for record in autoheur.last_decisions()] == ["orig"]
        assert compile_really() == (1, 0), "unchanged: the cache is hit"
        bench.put("pad_mm", "pad")
        assert compile_really() == (0, 1), "the new heuristic is asked"
        assert [record.taken for record in autoheur.last_decisions()] == ["orig", "pad"]
        bench.put("pad_mm", "orig")
        assert compile_really() == (1, 0), "what the first heuristic decided is still valid"
    assert compile_really() == (1, 0), "disabled: the user's own entries are still valid"
    with autoheur.enabled("collect", registry):
        assert compile_really() == (0, 1), "another mode is another identity"


SCRIPT = """
import json, sys, torch
import torch._inductor.compile_fx
from torch._inductor.fx_passes import pad_mm
from torch._dynamo.utils import counters
pad_mm.check_device = pad_mm.has_triton = lambda *_: True
pad_mm.is_mm_compute_bound = lambda *_: True
pad_mm.get_do_bench = lambda: lambda function: 1.0
import autoheur

def compile_():
    torch._dynamo.reset()
    counters["aot_autograd"].clear()
    torch.compile(lambda a, b: a @ b)(torch.ones(5, 7), torch.ones(7, 9))
    return counters["aot_autograd"]["autograd_cache_hit"], counters["aot_autograd"]["autograd_cache_miss"]

report = {"plain": compile_()}
with autoheur.enabled():
    report["enabled"] = compile_()
    report["decisions"] = [record.choice for record in autoheur.last_decisions()]
print(json.dumps(report))
"""


def run(folder: Path, **environment: str) -> dict[str, Any]:
    settings = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), "AUTOHEUR_HOME": str(folder), **environment}
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return answer


def test_a_new_process_in_the_same_cache_folder(bench: Any) -> None:
    bench.put("pad_mm", "orig")
    assert run(bench.folder) == {"plain": [0, 1], "enabled": [0, 1], "decisions": ["orig"]}
    assert run(bench.folder) == {"plain": [1, 0], "enabled": [1, 0], "decisions": []}
    bench.put("pad_mm", None)  # its answer needs no C++ compiler, as padding would
    assert run(bench.folder) == {"plain": [1, 0], "enabled": [0, 1], "decisions": [None]}


def key(**settings: Any) -> str:
    """A graph cache key as torch computes it."""
    from torch._inductor import codecache

    details = codecache.FxGraphHashDetails(None, [], {}, [])
    return codecache.FxGraphCachePickler(torch.fx.GraphModule({}, torch.fx.Graph())).get_hash(details)


def test_what_can_change_a_decision_changes_the_key_and_nothing_else_does(bench: Any, gates: Any) -> None:
    plain = key()
    registry = bench.registry()
    with autoheur.enabled(registry=registry):
        assert key() == plain, "nobody answers"
        path = bench.put("pad_mm", "pad")
        first = key()
        os.utime(path)
        assert key() == first, "touched, but the same"
        bench.put("addmm", "pad")
        assert key() not in (plain, first), "another operator's heuristic"
        bench.store.uninstall("always-addmm")
        assert key() == first
        bench.put("bmm", "pad", autoheur.Fingerprint("cuda", "NVIDIA A100"))
        assert key() == first, "a heuristic that cannot answer here"
        text = path.read_text()
        path.write_text(text.replace('"threshold": 0.1', '"threshold": 0.2'))
        assert key() not in (plain, first), "another policy"
        path.write_text(text)
        assert key() == first
        seen = {first}
        for mode in ("shadow", "collect"):
            with autoheur.enabled(mode, registry):
                assert key() not in (plain, *seen), mode
                seen.add(key())
    newer = [attrs.evolve(source.provenance, version="2") for source in bench.sources]
    sources = [attrs.evolve(source, provenance=new) for source, new in zip(bench.sources, newer, strict=True)]
    with autoheur.enabled(registry=attrs.evolve(bench, sources=sources).registry()):
        assert key() not in (plain, first), "another version of a plugin"
    assert key() == plain


def test_the_users_own_tag_counts_and_is_left_alone(bench: Any, gates: Any) -> None:
    bench.put("pad_mm", "pad")
    config = torch.compiler.config
    with autoheur.enabled(registry=bench.registry()):
        untagged = key()
        with config.patch(cache_key_tag="mine"):
            assert key() != untagged
            assert config.cache_key_tag == "mine"
        assert key() == untagged
    assert config.cache_key_tag == ""


def test_keys_of_another_thread_are_unaffected_by_a_block(bench: Any, gates: Any) -> None:
    import threading

    bench.put("pad_mm", "pad")
    plain = key()
    keys: list[str] = []
    with autoheur.enabled(registry=bench.registry()):
        assert key() != plain
        thread = threading.Thread(target=lambda: keys.append(key()))
        thread.start()
        thread.join()
    assert keys == [plain]


def test_a_compile_decides_with_what_its_key_was_made_from(bench: Any, gates: Any) -> None:
    """An artifact that changes between the cache key and the decision must not be cached under the old key."""
    from torch._guards import TracingContext, tracing

    from autoheur.inductor.compile import current_compile

    bench.put("pad_mm", "pad")
    with autoheur.enabled(registry=bench.registry()):
        context, other = TracingContext(None), TracingContext(None)
        with tracing(context):
            first, begun = key(), current_compile()
        bench.put("pad_mm", "orig")
        with tracing(other):
            assert key() != first
        with tracing(context):
            assert key() == first
            assert current_compile() is begun


def test_inductors_padding_cache_has_no_say(bench: Any, graphs: Any, gates: Any) -> None:
    from torch._inductor.fx_passes import pad_mm

    gates.times = (2.0, 1.0)
    graphs.compile(lambda a, b: a @ b)(*inputs())
    assert graphs.pads > 0, "Inductor has measured and cached that padding is faster"
    cached = pad_mm.get_pad_cache().get_local_cache()
    assert cached
    bench.put("pad_mm", "orig")
    with autoheur.enabled(registry=bench.registry()):
        graphs.compile(lambda a, b: a @ b)(*inputs())
    assert graphs.pads == 0
    assert pad_mm.get_pad_cache().get_local_cache() == cached, "the user's entries are as they were"
    graphs.compile(lambda a, b: a @ b)(*inputs())
    assert (graphs.pads > 0, gates.calls) == (True, 2), "and are used again"


def test_inductors_memoizer_has_no_say(bench: Any, graphs: Any, gates: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.fx_passes import pad_mm

    plain: Any = pad_mm._should_pad
    answers: list[bool] = []

    def memoized(match: Any, mat1: Any, mat2: Any, op: Any, input: Any = None) -> bool:
        if not answers:
            answers.append(plain(match, mat1, mat2, op, input))
        return answers[0]

    memoized.__wrapped__ = plain  # type: ignore[attr-defined]
    monkeypatch.setattr(pad_mm, "_should_pad", memoized)
    gates.times = (2.0, 1.0)
    graphs.compile(lambda a, b: a @ b)(*inputs())
    assert (answers, graphs.pads > 0) == ([True], True)
    bench.put("pad_mm", "orig")
    with autoheur.enabled(registry=bench.registry()):
        graphs.compile(lambda a, b: a @ b)(*inputs())
    assert graphs.pads == 0
    bench.put("pad_mm", None)
    with autoheur.enabled(registry=bench.registry()), torch._inductor.config.patch(deterministic=True):
        graphs.compile(lambda a, b: a @ b)(*inputs())
    assert graphs.pads == 0, "deterministic: what was memoized earlier does not count"
    with (
        monkeypatch.context() as bound,
        autoheur.enabled(registry=bench.registry()),
        torch._inductor.config.patch(deterministic=True),
    ):
        bound.setattr(pad_mm, "is_mm_compute_bound", lambda M, K, N, dtype: False)
        graphs.compile(lambda a, b: a @ b)(*inputs())
    assert graphs.pads == 0, "nor for products that are never padded"
    with autoheur.enabled("shadow", bench.registry()):
        graphs.compile(lambda a, b: a @ b)(*inputs())
    assert gates.calls == 4, "shadow: measured, although memoized"
