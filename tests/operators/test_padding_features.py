"""What the padding operators see of a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch

from autoheur import default_registry, formula
from autoheur.operators import OperatorPlugin
from autoheur.types import FeatureKind, Operand, Problem
from autoheur_addmm.features import bias_form, bias_shape

OPERATORS = ("pad_mm", "bmm", "addmm")


def operand(tensor: torch.Tensor) -> Operand:
    return Operand(tuple(tensor.shape), tensor.stride(), str(tensor.dtype))


@pytest.fixture
def extract() -> Callable[..., Problem]:
    def from_tensors(operator: str, *tensors: torch.Tensor, **flags: Any) -> Problem:
        return default_registry().operator(operator).extract([operand(tensor) for tensor in tensors], flags)

    return from_tensors


def torchs_context(mat1: torch.Tensor, mat2: torch.Tensor, prepadded1: bool, prepadded2: bool) -> Mapping[str, Any]:
    """What Inductor logs for these operands."""
    pad_mm = pytest.importorskip("torch._inductor.fx_passes.pad_mm")
    align = pad_mm.get_alignment_size
    lengths = [
        pad_mm.get_padded_length(size, align(matrix))
        for size, matrix in ((mat1.shape[0], mat1), (mat1.shape[1], mat1), (mat2.shape[1], mat2))
    ]
    context: Mapping[str, Any] = pad_mm.get_context(mat1, mat2, prepadded1, prepadded2, *lengths).context_dict
    return context


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(("m", "k", "n"), [(5, 8, 7), (1, 3, 1), (16, 16, 16), (4, 12, 9), (17, 1, 2)])
@pytest.mark.parametrize("transposed", [False, True])
def test_pad_mm_sees_what_inductor_logs(
    extract: Callable[..., Problem], dtype: torch.dtype, m: int, k: int, n: int, transposed: bool
) -> None:
    mat1 = torch.zeros(k, m, dtype=dtype).t() if transposed else torch.zeros(m, k, dtype=dtype)
    mat2 = torch.zeros(k, n, dtype=dtype)
    problem = extract("pad_mm", mat1, mat2, prepadded_mat1=True, using_tf32=False)
    context = torchs_context(mat1, mat2, True, False)
    assert list(problem) == list(context)
    assert {name: str(value) for name, value in problem.items()} == {
        name: str(value) for name, value in context.items()
    }


@pytest.mark.parametrize("operator", OPERATORS)
def test_declared_features_are_those_extracted_and_their_formulas_hold(operator: str) -> None:
    plugin = default_registry().operator(operator)
    assert list(example(plugin)) == [feature.name for feature in plugin.raw_features]
    kinds: dict[str, FeatureKind] = {feature.name: feature.kind for feature in plugin.raw_features}
    integers = frozenset(feature.name for feature in plugin.raw_features if feature.integer)
    for feature in plugin.features:
        if feature.formula is not None:
            found = formula.parse(feature.formula).kind(kinds, integers)
            assert (found == "truth") == (feature.kind == "categorical"), feature.name


def example(plugin: OperatorPlugin) -> Problem:
    batch = (2,) if plugin.name == "bmm" else ()
    matrices = torch.zeros(*batch, 5, 6), torch.zeros(*batch, 6, 7)
    operands = (torch.zeros(7), *matrices) if plugin.name == "addmm" else matrices
    return plugin.extract([operand(tensor) for tensor in operands], {})


def test_bmm_sees_batches_that_are_expanded_or_interleaved(extract: Callable[..., Problem]) -> None:
    heads = torch.zeros(6, 3, 5).transpose(0, 1)
    one = torch.zeros(5, 7).expand(3, 5, 7)
    problem = extract("bmm", heads, one)
    assert [problem[name] for name in ("b", "m", "k", "n")] == [3, 6, 5, 7]
    assert [problem[f"mat1_stride_{dim}"] for dim in "b01"] == [5, 15, 1]
    assert [problem[f"mat2_stride_{dim}"] for dim in "b01"] == [0, 7, 1]


@pytest.mark.parametrize(
    ("shape", "form"),
    [((7,), "n"), ((1, 7), "1n"), ((5, 1), "m1"), ((5, 7), "mn"), ((1,), "1"), ((1, 1), "1"), ((), "1")],
)
def test_addmm_sees_how_the_bias_broadcasts(extract: Callable[..., Problem], shape: Sequence[int], form: str) -> None:
    assert extract("addmm", torch.zeros(shape), torch.zeros(5, 6), torch.zeros(6, 7))["bias_form"] == form
    assert bias_form(bias_shape(form, 5, 7)) == form


@pytest.mark.parametrize(
    ("flags", "beta"), [({}, "1"), ({"beta": 1.0}, "1"), ({"beta": 0}, "0"), ({"beta": 0.5}, "other")]
)
def test_addmm_tells_the_factors_apart_that_choose_the_kernel(
    extract: Callable[..., Problem], flags: dict[str, float], beta: str
) -> None:
    problem = extract("addmm", torch.zeros(7), torch.zeros(5, 6), torch.zeros(6, 7), **flags)
    assert problem["beta"] == beta


def test_symbolic_dimensions_are_not_padded() -> None:
    mat1 = Operand((5, 6), (6, 1), "torch.float16", static=(False, True))
    mat2 = Operand((6, 7), (7, 1), "torch.float16")
    problem = default_registry().operator("pad_mm").extract([mat1, mat2], {})
    assert [problem[f"{dim}_padded_length"] for dim in "mkn"] == [0, 2, 1]
