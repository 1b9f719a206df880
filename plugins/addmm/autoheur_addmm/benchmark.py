"""The two choices of addmm, ready to be timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from autoheur.plugin import Problem
from autoheur_addmm.features import bias_shape
from autoheur_pad_mm.padding import Padding, padded_product, random_tensor, set_precision

if TYPE_CHECKING:
    import torch

BETA = {"0": 0.0, "1": 1.0, "other": 0.5}


def prepare(problem: Problem, device: str) -> Mapping[str, Callable[[], object]]:
    """Build the operands of a problem on ``device`` and return, per choice, a function that runs it once."""
    import torch

    m, k, n = (int(problem[dim]) for dim in "mkn")
    strides = [[int(problem[f"{operand}_stride_{dim}"]) for dim in (0, 1)] for operand in ("mat1", "mat2")]
    mat1 = random_tensor((m, k), strides[0], str(problem["mat1_dtype"]), device)
    mat2 = random_tensor((k, n), strides[1], str(problem["mat2_dtype"]), device)
    shape = bias_shape(str(problem["bias_form"]), m, n)
    bias = random_tensor(shape, (*shape[1:], 1), str(problem["mat1_dtype"]), device)
    beta, padding = BETA[str(problem["beta"])], Padding.of(problem)
    set_precision(problem)

    def multiply_padded(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch.addmm(pad_bias(bias, padding), left, right, beta=beta)

    return {
        "orig": lambda: torch.addmm(bias, mat1, mat2, beta=beta),
        "pad": padded_product(multiply_padded, mat1, mat2, problem),
    }


def pad_bias(bias: torch.Tensor, padding: Padding) -> torch.Tensor:
    """Append zeros to the dimensions of the bias that do not broadcast."""
    import torch

    columns = padding.n if bias.shape[-1] != 1 else 0
    rows = padding.m if bias.dim() == 2 and bias.shape[0] != 1 else 0
    if not rows and not columns:
        return bias
    return torch.constant_pad_nd(bias, (0, columns, 0, rows) if bias.dim() == 2 else (0, columns))
