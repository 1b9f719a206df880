"""Capturing the shapes that torch.compile meets."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import autoheur
from autoheur.errors import InputError
from autoheur.inductor.capture import Shapes, capture, trace
from autoheur.measure.shapes import read_shapes

torch = pytest.importorskip("torch")


def of(shapes: Shapes, operator: str) -> list[dict[str, Any]]:
    return [dict(shape.problem) for shape in shapes if shape.operator == operator]


@pytest.fixture(autouse=True)
def fresh(gates: Any) -> None:
    """A cache folder of its own, nothing compiled yet."""


def products(a: Any, b: Any, c: Any, x: Any) -> tuple[Any, ...]:
    return a @ b, torch.addmm(c, a, b, beta=0.5), torch.bmm(x, x.transpose(1, 2)), (a + 1) @ b


def operands() -> tuple[Any, ...]:
    return torch.ones(5, 7), torch.ones(9, 7).t(), torch.ones(9), torch.ones(3, 4, 6)


def test_products_are_recorded_as_the_operators_problems_and_counted(graphs: Any) -> None:
    with capture() as shapes:
        graphs.compile(products)(*operands())
        graphs.compile(lambda a, b: a @ b)(*operands()[:2])
    plain, sum_ = of(shapes, "pad_mm")
    assert [plain[name] for name in ("m", "k", "n", "mat2_stride_0", "mat2_stride_1")] == [5, 7, 9, 1, 7]
    assert plain["mat1_dtype"] == "torch.float32"
    assert (plain["prepadded_mat1"], sum_["prepadded_mat1"]) == ("False", "True"), "a result's padding can be planned"
    assert sorted(shapes.values()) == [1, 1, 1, 2]
    [addmm] = of(shapes, "addmm")
    assert (addmm["bias_form"], addmm["beta"]) == ("n", "other")
    [bmm] = of(shapes, "bmm")
    assert [bmm[name] for name in ("b", "m", "k", "n", "mat2_stride_1")] == [3, 4, 6, 4, 6]
    for operator in ("pad_mm", "addmm", "bmm"):
        names = [feature.name for feature in autoheur.default_registry().operator(operator).raw_features]
        assert all(list(problem) == names for problem in of(shapes, operator))


def test_the_backward_graph_is_recorded_too(graphs: Any) -> None:
    a, b, *_ = operands()
    with capture() as shapes:
        graphs.compile(lambda a, b: a @ b)(a.requires_grad_(), b.requires_grad_())
    assert {(p["m"], p["k"], p["n"]) for p in of(shapes, "pad_mm")} == {(5, 7, 9), (9, 5, 7), (5, 9, 7)}


def test_symbolic_sizes_are_recorded_as_not_padded(graphs: Any) -> None:
    a, b, *_ = operands()
    torch._dynamo.mark_dynamic(a, 0)
    with capture() as shapes:
        graphs.compile(lambda a, b: a @ b)(a, b)
    [problem] = of(shapes, "pad_mm")
    assert (problem["m"], problem["m_padded_length"], problem["k_padded_length"]) == (5, 0, 1)


@pytest.mark.parametrize("name", ["shapes.csv", "shapes.parquet"])
def test_the_file_can_be_measured_from(graphs: Any, tmp_path: Path, name: str) -> None:
    with capture(tmp_path / name) as shapes:
        graphs.compile(products)(*operands())
    for operator in ("pad_mm", "addmm", "bmm"):
        plugin = autoheur.default_registry().operator(operator)
        found = [{key: str(value) for key, value in p.items()} for p in read_shapes(tmp_path / name, plugin)]
        expected = [{key: str(value) for key, value in p.items()} for p in of(shapes, operator)]
        assert sorted(found, key=str) == sorted(expected, key=str)


def test_a_block_that_fails_keeps_what_was_recorded_and_restores_torch(graphs: Any, tmp_path: Path) -> None:
    from torch._inductor import compile_fx

    before = compile_fx.compile_fx

    def fail() -> None:
        with capture(tmp_path / "s.csv"):
            assert compile_fx.compile_fx is not before
            graphs.compile(products)(*operands())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert compile_fx.compile_fx is before
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 5
    with pytest.raises(InputError, match="cannot write"), capture(tmp_path / "nowhere" / "s.csv"):
        pass


@pytest.mark.parametrize("as_list", [False, True])
def test_the_users_own_pass_still_runs(graphs: Any, as_list: bool) -> None:
    seen: list[Any] = []
    own: Any = seen.append if not as_list else [seen.append]
    with capture() as shapes, torch._inductor.config.patch(joint_custom_pre_pass=own):
        graphs.compile(products)(*operands())
        assert torch._inductor.config.joint_custom_pre_pass is own or as_list
    assert (len(seen), shapes.total()) == (1, 4)


def test_graph_caches_hide_nothing_and_get_nothing(tmp_path: Path) -> None:
    def function(a: Any, b: Any) -> Any:
        return a @ b

    a, b, *_ = operands()
    counters = torch._dynamo.utils.counters
    for expected in (1, 1):
        torch._dynamo.reset()
        counters.clear()
        with capture() as shapes:
            torch.compile(function)(a, b)
        assert shapes.total() == expected
        assert not counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"]
    torch._dynamo.reset()
    counters.clear()
    torch.compile(function)(a, b)
    assert not counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"]
    torch._dynamo.reset()
    torch.compile(function)(a, b)
    assert counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"]
    torch._dynamo.reset()
    with capture() as shapes:
        torch.compile(function)(a, b)
    assert shapes.total() == 1, "a cached graph is compiled once more"


def test_other_threads_are_captured(graphs: Any) -> None:
    def work() -> None:
        graphs.compile(products)(*operands())

    with capture() as shapes:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert shapes.total() == 4


def test_captures_nest(graphs: Any) -> None:
    with capture() as outer:
        with capture() as inner:
            graphs.compile(products)(*operands())
        graphs.compile(lambda a, b: a @ b)(*operands()[:2])
    assert (outer.total(), inner.total()) == (5, 4)


def test_what_cannot_be_recorded_is_a_warning_and_the_compile_goes_on(
    graphs: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("no such size")

    monkeypatch.setattr("autoheur.inductor.asking.operand", broken)
    with capture() as shapes:
        result = graphs.compile(lambda a, b: a @ b)(*operands()[:2])
    torch.testing.assert_close(result, operands()[0] @ operands()[1])
    assert not shapes
    assert "is not captured: ValueError: no such size" in caplog.text


def test_a_large_model_is_traced_on_fake_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode(), capture() as shapes:
        model = torch.nn.Sequential(torch.nn.Linear(12_288, 49_152), torch.nn.GELU(), torch.nn.Linear(49_152, 12_288))
        result = trace(model, torch.empty(2047, 12_288))
    assert result.shape == (2047, 12_288)
    assert [(p["m"], p["k"], p["n"]) for p in of(shapes, "addmm")] == [(2047, 12_288, 49_152), (2047, 49_152, 12_288)]
    assert len(of(shapes, "pad_mm")) == 3, "the gradients of two weights and one input"


SCRIPT = """
import multiprocessing, os, sys
import torch

def work(size):
    result = torch.compile(lambda a, b: a @ b)(torch.ones(size, 7), torch.ones(7, 9))
    assert result.shape == (size, 9)

if __name__ == "__main__":
    work(5)
    child = multiprocessing.get_context("spawn").Process(target=work, args=(6,))
    child.start()
    child.join()
    if sys.argv[1:] == ["--fail"]:
        os._exit(3)
"""

Run = Callable[..., Any]


@pytest.fixture
def run_cli(capfd: pytest.CaptureFixture[str]) -> Run:
    from autoheur.cli.main import main

    def call(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call


def test_a_script_and_its_children_are_captured_from_outside(run_cli: Run, tmp_path: Path) -> None:
    import sys

    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    code, out, err = run_cli("capture", "--out", tmp_path / "s.csv", "--", sys.executable, script, "--fail")
    assert code == 3, err
    assert "wrote" in out
    plugin = autoheur.default_registry().operator("pad_mm")
    assert sorted(problem["m"] for problem in read_shapes(tmp_path / "s.csv", plugin)) == [5, 6]


def test_a_command_that_compiles_nothing_or_cannot_run_is_told(run_cli: Run, tmp_path: Path) -> None:
    import sys

    out = tmp_path / "s.csv"
    code, _, err = run_cli("capture", "--out", out, "--", sys.executable, "-c", "import sys; sys.exit(7)")
    assert (code, out.exists()) == (2, False)
    assert "compiled no mm, addmm or bmm with torch.compile (it ended with status 7); nothing written" in err
    code, _, err = run_cli("capture", "--out", out, "--", tmp_path / "no-such-program")
    assert code == 2
    assert "no-such-program: cannot run: No such file" in err
