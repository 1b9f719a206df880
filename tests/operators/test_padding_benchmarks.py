"""What the padding operators time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from autoheur import default_registry
from autoheur.types import Operand, Problem, Value
from autoheur_addmm.benchmark import pad_bias
from autoheur_addmm.features import bias_shape
from autoheur_pad_mm import padding

DTYPES = ("torch.float16", "torch.bfloat16", "torch.float32")
TOLERANCE = {"torch.float16": 2e-3, "torch.bfloat16": 2e-2, "torch.float32": 1e-5}


def matrix(rows: int, columns: int, dtype: str, transposed: bool, batch: str = "") -> Operand:
    """One matrix, or three of them: dense, expanded or interleaved."""
    inner, outer = (rows, (1, rows)) if transposed else (columns, (columns, 1))
    if not batch:
        return Operand((rows, columns), outer, dtype)
    steps = {"dense": (rows * columns, 1), "expanded": (0, 1), "interleaved": (inner, 3)}
    step, factor = steps[batch]
    stride = (step, *(stride if stride == 1 else stride * factor for stride in outer))
    return Operand((3, rows, columns), stride, dtype)


def problem_of(
    operator: str, dtype: str, mat1: Operand, mat2: Operand, flags: Mapping[str, Value] | None = None, form: str = "n"
) -> Problem:
    operands: tuple[Operand, ...] = (mat1, mat2)
    if operator == "addmm":
        shape = bias_shape(form, mat1.shape[-2], mat2.shape[-1])
        operands = (Operand(shape, (*shape[1:], 1), dtype), *operands)
    return default_registry().operator(operator).extract(operands, flags or {})


def run_both(operator: str, problem: Problem) -> tuple[torch.Tensor, torch.Tensor]:
    functions = default_registry().operator(operator).benchmark(problem, "cpu")
    assert set(functions) == {"orig", "pad"}
    orig, pad = functions["orig"](), functions["pad"]()
    assert isinstance(orig, torch.Tensor)
    assert isinstance(pad, torch.Tensor)
    return orig, pad


def assert_same(operator: str, problem: Problem) -> None:
    orig, pad = run_both(operator, problem)
    assert orig.shape == pad.shape
    tolerance = TOLERANCE[str(problem["mat1_dtype"])]
    torch.testing.assert_close(pad, orig, rtol=tolerance, atol=tolerance * max(1.0, orig.abs().max().item()))


BATCHES = tuple(itertools.product(("dense", "expanded", "interleaved"), repeat=2))
SIZES = ((5, 6, 7), (13, 8, 16), (16, 9, 8), (8, 16, 3), (1, 11, 4), (1, 1, 5))
LAYOUTS = tuple(itertools.product((False, True), repeat=4))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES)
def test_padded_mm_computes_the_same(dtype: str, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    for transposed1, transposed2, prepadded1, prepadded2 in LAYOUTS:
        operands = matrix(m, k, dtype, transposed1), matrix(k, n, dtype, transposed2)
        flags = {"prepadded_mat1": prepadded1, "prepadded_mat2": prepadded2}
        assert_same("pad_mm", problem_of("pad_mm", dtype, *operands, flags))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", ["n", "1n", "m1", "mn", "1"])
def test_padded_addmm_computes_the_same(dtype: str, form: str) -> None:
    for (m, k, n), beta in itertools.product(SIZES, (1.0, 0.0, 0.5)):
        operands = matrix(m, k, dtype, False), matrix(k, n, dtype, True)
        flags: dict[str, Value] = {"beta": beta, "prepadded_mat1": True}
        assert_same("addmm", problem_of("addmm", dtype, *operands, flags, form))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batches", BATCHES, ids="-".join)
def test_padded_bmm_computes_the_same(dtype: str, batches: tuple[str, str]) -> None:
    for (m, k, n), (transposed1, transposed2, prepadded1, prepadded2) in itertools.product(SIZES, LAYOUTS[::3]):
        operands = matrix(m, k, dtype, transposed1, batches[0]), matrix(k, n, dtype, transposed2, batches[1])
        flags = {"prepadded_mat1": prepadded1, "prepadded_mat2": prepadded2}
        assert_same("bmm", problem_of("bmm", dtype, *operands, flags))


@pytest.mark.parametrize("operator", ["mm", "bmm"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_padding_does_what_inductor_does_bit_for_bit(operator: str, dtype: str) -> None:
    inductor = pytest.importorskip("torch._inductor.fx_passes.pad_mm")
    batch = "dense" if operator == "bmm" else ""
    for m, k, n in SIZES:
        operands = matrix(m, k, dtype, False, batch), matrix(k, n, dtype, True, batch)
        problem = problem_of("bmm" if operator == "bmm" else "pad_mm", dtype, *operands)
        mat1, mat2 = (padding.random_tensor(each.shape, each.stride, dtype, "cpu") for each in operands)
        ours = padding.padded_product(getattr(torch, operator), mat1, mat2, problem)()
        lengths = padding.Padding.of(problem)
        theirs = getattr(inductor, f"pad_{operator}")(mat1, mat2, lengths.m, lengths.k, lengths.n)
        assert torch.equal(ours, theirs)
        assert ours.stride() == theirs.stride()


@pytest.mark.parametrize("form", ["n", "1n", "m1", "mn", "1"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_padding_of_a_bias_does_what_inductor_does_bit_for_bit(form: str, dtype: str) -> None:
    inductor = pytest.importorskip("torch._inductor.fx_passes.pad_mm")
    for m, k, n in SIZES:
        operands = matrix(m, k, dtype, False), matrix(k, n, dtype, True)
        problem = problem_of("addmm", dtype, *operands, form=form)
        lengths = padding.Padding.of(problem)
        mat1, mat2 = (padding.random_tensor(each.shape, each.stride, dtype, "cpu") for each in operands)
        shape = bias_shape(form, m, n)
        bias = padding.random_tensor(shape, (*shape[1:], 1), dtype, "cpu")
        padded_bias = pad_bias(bias, lengths)

        def multiply(left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor = padded_bias) -> torch.Tensor:
            return torch.addmm(bias, left, right)

        ours = padding.padded_product(multiply, mat1, mat2, problem)()
        theirs = inductor.pad_addmm(bias, mat1, mat2, lengths.m, lengths.k, lengths.n)
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("operator", ["pad_mm", "bmm", "addmm"])
def test_operands_have_exactly_the_strides_of_the_problem(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "mm" if operator == "pad_mm" else operator
    given: list[tuple[torch.Tensor, ...]] = []
    real: Callable[..., torch.Tensor] = getattr(torch, name)

    def spy(*operands: torch.Tensor, **options: Any) -> torch.Tensor:
        given.append(operands)
        return real(*operands, **options)

    batches = ("expanded", "interleaved") if operator == "bmm" else ("", "")
    for transposed1, transposed2 in itertools.product((False, True), repeat=2):
        operands = [
            matrix(5, 6, "torch.bfloat16", transposed1, batches[0]),
            matrix(6, 7, "torch.bfloat16", transposed2, batches[1]),
        ]
        problem = problem_of(operator, "torch.bfloat16", operands[0], operands[1])
        functions = default_registry().operator(operator).benchmark(problem, "cpu")
        with monkeypatch.context() as patches:
            patches.setattr(torch, name, spy)
            functions["orig"]()
        tensors = given.pop()[-2:]
        assert [tuple(tensor.shape) for tensor in tensors] == [each.shape for each in operands]
        assert [tensor.stride() for tensor in tensors] == [each.stride for each in operands]
        assert {tensor.dtype for tensor in tensors} == {torch.bfloat16}


@pytest.mark.parametrize("prepadded", list(itertools.product((False, True), repeat=2)))
def test_a_prepadded_operand_is_padded_before_and_only_its_padding_written_while_timing(
    prepadded: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    operands = matrix(5, 6, "torch.float32", False), matrix(6, 7, "torch.float32", False)
    flags = {"prepadded_mat1": prepadded[0], "prepadded_mat2": prepadded[1]}
    problem = problem_of("pad_mm", "torch.float32", *operands, flags)
    functions = default_registry().operator("pad_mm").benchmark(problem, "cpu")
    copied: list[tuple[int, ...]] = []
    real = torch.constant_pad_nd

    def spy(tensor: torch.Tensor, *arguments: Any) -> torch.Tensor:
        copied.append(tuple(tensor.shape))
        return real(tensor, *arguments)

    monkeypatch.setattr(torch, "constant_pad_nd", spy)
    functions["pad"]()
    assert copied == [each.shape for each, before in zip(operands, prepadded, strict=True) if not before]


def test_problems_read_from_files_spell_truth_as_text() -> None:
    operands = matrix(5, 6, "torch.float32", False), matrix(6, 7, "torch.float32", False)
    problem = problem_of("pad_mm", "torch.float32", *operands, {"prepadded_mat1": True})
    assert padding.is_true(problem["prepadded_mat1"])
    assert padding.is_true(str(problem["prepadded_mat1"]))
    assert not padding.is_true(problem["prepadded_mat2"])
    assert not padding.is_true("not_float_32")
    assert_same("pad_mm", {name: str(value) for name, value in problem.items()})


@pytest.mark.parametrize(("allowed", "precision"), [(True, "high"), (False, "highest")])
def test_float32_products_run_with_the_precision_of_the_problem(allowed: bool, precision: str) -> None:
    operands = matrix(5, 6, "torch.float32", False), matrix(6, 7, "torch.float32", False)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        problem = problem_of("pad_mm", "torch.float32", *operands, {"using_tf32": allowed})
        default_registry().operator("pad_mm").benchmark(problem, "cpu")
        assert torch.get_float32_matmul_precision() == precision
    finally:
        torch.set_float32_matmul_precision(before)


def test_dtypes_that_torch_lacks_are_told() -> None:
    with pytest.raises(ValueError, match=r"'torch\.float7' is not a dtype"):
        padding.torch_dtype("torch.float7")
