"""Decisions reach the compiled graph, and what it computes is what eager computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import autoheur
from autoheur.fingerprint import Fingerprint
from autoheur.types import Reason

torch = pytest.importorskip("torch")

Function = Callable[..., Any]


def tensors(*shapes: tuple[int, ...], dtype: Any = None, grad: bool = False) -> list[Any]:
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(shape, generator=generator).to(dtype or torch.float32) for shape in shapes]
    return [tensor.requires_grad_(grad) for tensor in made]


def assert_same(actual: Any, expected: Any) -> None:
    torch.testing.assert_close(actual, expected, rtol=2e-2 if expected.dtype.itemsize == 2 else 1e-4, atol=1e-2)


MM, BMM, ADDMM = torch.mm, torch.bmm, torch.addmm
CASES: dict[str, tuple[Function, list[tuple[int, ...]], str]] = {
    "pad_mm": (MM, [(5, 7), (7, 9)], "pad_mm"),
    "bmm": (BMM, [(2, 5, 7), (2, 7, 9)], "bmm"),
    "addmm": (ADDMM, [(9,), (5, 7), (7, 9)], "addmm"),
}


@pytest.mark.parametrize("operator", CASES)
@pytest.mark.parametrize("choice", ["pad", "orig"])
def test_a_decision_reaches_the_graph_without_a_benchmark(
    bench: Any, graphs: Any, gates: Any, operator: str, choice: str
) -> None:
    function, shapes, _ = CASES[operator]
    inputs = tensors(*shapes)
    bench.put(operator, choice)
    with autoheur.enabled(registry=bench.registry()):
        result = graphs.compile(lambda *values: function(*values))(*inputs)
    assert (graphs.pads > 0) == (choice == "pad")
    assert gates.calls == 0
    assert_same(result, function(*inputs))
    (record,) = autoheur.last_decisions()
    assert (record.operator, record.choice, record.taken, record.by) == (operator, choice, choice, "heuristic")
    assert record.reason is Reason.DECIDED
    assert record.problem["m"] == 5
    assert record.problem["k_padded_length"] == 1
    assert torch._dynamo.utils.counters["autoheur"] == {f"{operator}.{choice}": 1, "reason.decided": 1}


@pytest.mark.parametrize("operator", CASES)
def test_unsure_leaves_the_decision_to_inductor(bench: Any, graphs: Any, gates: Any, operator: str) -> None:
    function, shapes, _ = CASES[operator]
    bench.put(operator, None)
    gates.times = (2.0, 1.0)  # padding is faster
    with autoheur.enabled(registry=bench.registry()):
        graphs.compile(lambda *values: function(*values))(*tensors(*shapes))
    assert gates.calls == 2
    assert graphs.pads > 0
    (record,) = autoheur.last_decisions()
    assert (record.choice, record.reason, record.taken, record.by) == (None, Reason.BELOW_THRESHOLD, "pad", "inductor")


def test_forward_and_backward_of_all_three_operators(bench: Any, graphs: Any, gates: Any) -> None:
    def model(x: Any, w: Any, bias: Any, batch: Any) -> Any:
        hidden = torch.addmm(bias, x, w).relu()
        return (torch.bmm(hidden.unsqueeze(0).expand(2, 5, 9), batch).tanh() @ w.t()).sum()

    inputs = tensors((5, 7), (7, 9), (9,), (2, 9, 9), grad=True)
    model(*inputs).backward()
    expected = [tensor.grad.clone() for tensor in inputs]
    for tensor in inputs:
        tensor.grad = None
    for operator in CASES:
        bench.put(operator, "pad")
    with autoheur.enabled(registry=bench.registry()):
        result = graphs.compile(model)(*inputs)
        result.backward()
    assert_same(result, model(*inputs))
    for tensor, gradient in zip(inputs, expected, strict=True):
        assert_same(tensor.grad, gradient)
    decided = [record.operator for record in autoheur.last_decisions()]
    assert set(decided) == set(CASES)
    assert len(decided) > 4, "the products of the backward graph are asked for too"
    assert len(graphs.modules) == 2
    assert gates.calls == 0


@pytest.mark.parametrize("form", ["n", "1n", "m1", "mn", "1", "transposed"])
@pytest.mark.parametrize(("beta", "alpha"), [(1.0, 1.0), (0.5, 2.0), (0.0, 1.0)])
def test_every_form_of_bias_with_factors(bench: Any, graphs: Any, form: str, beta: float, alpha: float) -> None:
    shape = {"n": (9,), "1n": (1, 9), "m1": (5, 1), "mn": (5, 9), "1": (1,), "transposed": (9, 5)}[form]
    bias, mat1, mat2 = tensors(shape, (5, 7), (7, 9))
    bias = bias.t() if form == "transposed" else bias
    bench.put("addmm", "pad")

    def function(bias: Any, mat1: Any, mat2: Any) -> Any:
        return torch.addmm(bias, mat1, mat2, beta=beta, alpha=alpha)

    with autoheur.enabled(registry=bench.registry()):
        result = graphs.compile(function)(bias, mat1, mat2)
    assert_same(result, function(bias, mat1, mat2))
    assert graphs.pads > 0
    (record,) = autoheur.last_decisions()
    assert record.problem["bias_form"] == {"transposed": "mn"}.get(form, form)
    assert record.problem["beta"] == {1.0: "1", 0.5: "other", 0.0: "0"}[beta]


LAYOUTS: dict[str, Function] = {
    "transposed": lambda x: x.t().contiguous().t(),
    "strided": lambda x: torch.stack([x, x], dim=-1)[..., 0],
    "expanded": lambda x: x[:1].expand(x.shape),
    "offset": lambda x: torch.nn.functional.pad(x, (3, 0, 2, 0))[2:, 3:],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_that_are_not_contiguous(bench: Any, graphs: Any, layout: str) -> None:
    mat1, mat2 = (LAYOUTS[layout](tensor) for tensor in tensors((5, 7), (7, 9)))
    bench.put("pad_mm", "pad")
    with autoheur.enabled(registry=bench.registry()):
        result = graphs.compile(lambda a, b: a @ b)(mat1, mat2)
    assert_same(result, mat1 @ mat2)
    assert graphs.pads > 0
    (record,) = autoheur.last_decisions()
    assert (record.problem["mat1_stride_0"], record.problem["mat1_stride_1"]) == mat1.stride()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "int64"])
def test_every_dtype(bench: Any, graphs: Any, dtype: str) -> None:
    mat1, mat2 = tensors((5, 7), (7, 9), dtype=getattr(torch, dtype))
    bench.put("pad_mm", "pad")
    with autoheur.enabled(registry=bench.registry()):
        result = graphs.compile(lambda a, b: a @ b)(mat1, mat2)
    assert_same(result, mat1 @ mat2)
    padded = dtype in ("float16", "bfloat16", "float32")  # Inductor knows no alignment for the others
    assert (graphs.pads > 0) == padded
    assert len(autoheur.last_decisions()) == padded


@pytest.mark.parametrize(("m", "k", "n"), [(0, 7, 9), (5, 0, 9), (5, 7, 0), (1, 7, 9), (5, 1, 9), (5, 7, 1), (1, 1, 1)])
def test_sizes_of_zero_and_one(bench: Any, graphs: Any, m: int, k: int, n: int) -> None:
    mat1, mat2 = tensors((m, k), (k, n))
    bench.put("pad_mm", "pad")
    with autoheur.enabled(registry=bench.registry()):
        result = graphs.compile(lambda a, b: a @ b)(mat1, mat2)
    assert_same(result, mat1 @ mat2)
    if 0 in (m, k, n) or (m, k, n) == (1, 1, 1):
        assert autoheur.last_decisions() == []
    for record in autoheur.last_decisions():
        ones = [dim for dim, size in {"m": m, "k": k, "n": n}.items() if size == 1]
        assert all(record.problem[f"{dim}_padded_length"] == 0 for dim in ones)


def test_symbolic_sizes_are_asked_by_hint_and_only_static_ones_are_padded(bench: Any, graphs: Any) -> None:
    mat1, mat2 = tensors((5, 7), (7, 9))
    torch._dynamo.mark_dynamic(mat1, 0)
    bench.put("pad_mm", "pad")
    with autoheur.enabled(registry=bench.registry()):
        function = graphs.compile(lambda a, b: a @ b)
        assert_same(function(mat1, mat2), mat1 @ mat2)
        (larger,) = tensors((11, 7))
        assert_same(function(larger, mat2), larger @ mat2)
    (record,) = autoheur.last_decisions()  # the second size needs no second compile
    assert record.problem["m"] == 5
    assert (record.problem["m_padded_length"], record.problem["k_padded_length"]) == (0, 1)


def test_products_of_symbolic_sizes_alone_are_never_asked_for(bench: Any, graphs: Any) -> None:
    mat1, mat2 = tensors((5, 7), (7, 9))
    bench.put("pad_mm", "pad")
    with autoheur.enabled(registry=bench.registry()):
        result = graphs.compile(lambda a, b: a @ b, dynamic=True)(mat1, mat2)
    assert_same(result, mat1 @ mat2)
    assert (graphs.pads, autoheur.last_decisions()) == (0, [])


def test_what_can_be_padded_for_free_and_tf32_are_part_of_the_problem(
    bench: Any, graphs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autoheur_pad_mm import site

    mat1, mat2 = tensors((5, 7), (7, 9))
    monkeypatch.setattr(site, "uses_tf32", lambda: True)
    bench.put("pad_mm", "orig")
    with autoheur.enabled(registry=bench.registry()):
        graphs.compile(lambda a, b: (a + 1) @ b)(mat1, mat2)
    (record,) = autoheur.last_decisions()
    flags = [record.problem[name] for name in ("prepadded_mat1", "prepadded_mat2", "using_tf32")]
    assert flags == [True, False, True]


def test_padding_that_the_user_forces_or_forbids_stands(bench: Any, graphs: Any) -> None:
    mat1, mat2 = tensors((5, 7), (7, 9))
    cases = (("orig", {"force_shape_pad": True}, True), ("pad", {"shape_padding": False}, False))
    for choice, setting, padded in cases:
        bench.put("pad_mm", choice)
        with autoheur.enabled(registry=bench.registry()), torch._inductor.config.patch(setting):
            graphs.compile(lambda a, b: a @ b)(mat1, mat2)
        assert (graphs.pads > 0) == padded
        assert autoheur.last_decisions() == []


def test_a_product_that_is_not_compute_bound_is_left_alone(
    bench: Any, graphs: Any, gates: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.fx_passes import pad_mm

    monkeypatch.setattr(pad_mm, "is_mm_compute_bound", lambda M, K, N, dtype: (M, K, N) != (5, 7, 9))
    bench.put("pad_mm", "pad")
    with autoheur.enabled(registry=bench.registry()):
        graphs.compile(lambda a, b: a @ b)(*tensors((5, 7), (7, 9)))
    assert (graphs.pads, gates.calls, autoheur.last_decisions()) == (0, 0, [])


def test_a_heuristic_for_another_device_does_not_answer(bench: Any, graphs: Any, gates: Any) -> None:
    bench.put("pad_mm", "pad", Fingerprint("cuda", "NVIDIA A100", "8.0"))
    with autoheur.enabled(registry=bench.registry()):
        graphs.compile(lambda a, b: a @ b)(*tensors((5, 7), (7, 9)))
    (record,) = autoheur.last_decisions()
    assert (record.reason, record.by, record.taken, gates.calls) == (Reason.NO_HEURISTIC, "inductor", "orig", 2)


def test_a_heuristic_that_declares_no_device_answers_everywhere(bench: Any, graphs: Any) -> None:
    bench.put("pad_mm", "pad", Fingerprint())
    with autoheur.enabled(registry=bench.registry()):
        graphs.compile(lambda a, b: a @ b)(*tensors((5, 7), (7, 9)))
    assert graphs.pads > 0
