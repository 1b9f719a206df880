"""The two choices of pad_mm, ready to be timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autoheur.plugin import Problem
from autoheur_pad_mm.padding import padded_product, random_tensor, set_precision


def prepare(problem: Problem, device: str) -> Mapping[str, Callable[[], object]]:
    """Build the operands of a problem on ``device`` and return, per choice, a function that multiplies them once."""
    import torch

    m, k, n = (int(problem[dim]) for dim in "mkn")
    strides = [[int(problem[f"{operand}_stride_{dim}"]) for dim in (0, 1)] for operand in ("mat1", "mat2")]
    mat1 = random_tensor((m, k), strides[0], str(problem["mat1_dtype"]), device)
    mat2 = random_tensor((k, n), strides[1], str(problem["mat2_dtype"]), device)
    set_precision(problem)
    return {"orig": lambda: torch.mm(mat1, mat2), "pad": padded_product(torch.mm, mat1, mat2, problem)}
