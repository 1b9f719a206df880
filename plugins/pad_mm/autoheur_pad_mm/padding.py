"""The padded matrix product: what the choice ``pad`` of mm, addmm and bmm runs, and the tensors it runs on.

The arithmetic is that of Inductor's padding pass (torch/_inductor/fx_passes/pad_mm.py), and what is inside and outside
the timed function is that of its benchmark (``_should_pad``): an operand that is not prepadded is copied into a padded
one every time; of a prepadded one only the padding is written again, because the copy is planned away in the compiled
graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from autoheur.plugin import Problem, Value

if TYPE_CHECKING:
    import torch


DISTINCT_VALUES = 262_147
"""Values of an operand before they repeat; prime, so that rows differ."""


@attrs.frozen
class Padding:
    """How many elements are added at the end of each dimension of an m x k by k x n product."""

    m: int
    k: int
    n: int

    @classmethod
    def of(cls, problem: Problem) -> Padding:
        return cls(*(int(problem[f"{dim}_padded_length"]) for dim in "mkn"))


def is_true(value: Value) -> bool:
    """A category's truth value: problems carry ``True`` when sampled, ``"True"`` when read from a file."""
    return str(value) == "True"


def torch_dtype(name: str) -> torch.dtype:
    """The dtype that torch spells ``name``, for example ``torch.float16``.

    Raises:
        ValueError: torch has no such dtype.
    """
    import torch

    dtype = getattr(torch, name.removeprefix("torch."), None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"{name!r} is not a dtype of torch")
    return dtype


def random_tensor(shape: Sequence[int], stride: Sequence[int], dtype: str, device: str) -> torch.Tensor:
    """A tensor of normally distributed values with exactly this shape and stride (elements); 0 expands a dimension.

    A large one repeats its values: drawing each anew would often take longer than the measurement.
    """
    import torch

    storage = sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) + 1
    values = torch.randn(min(storage, DISTINCT_VALUES), dtype=torch_dtype(dtype), device=device)
    if storage > DISTINCT_VALUES:
        values = values.repeat(-(-storage // DISTINCT_VALUES))
    return values.as_strided(tuple(shape), tuple(stride))


def set_precision(problem: Problem) -> None:
    """Let float32 products use TF32, or forbid it. The setting is global; autoheur.measure restores it."""
    import torch

    if problem["mat1_dtype"] == "torch.float32":
        torch.set_float32_matmul_precision("high" if is_true(problem["using_tf32"]) else "highest")


def pad_matrix(matrix: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Append zero rows and columns to a matrix or to each of a batch; the same tensor where there is nothing to add."""
    import torch

    if rows == 0 and columns == 0:
        return matrix
    return torch.constant_pad_nd(matrix, (0, columns, 0, rows))


def cut(product: torch.Tensor, padding: Padding) -> torch.Tensor:
    """The product without its padded rows and columns: a view."""
    if padding.m:
        product = product[..., : -padding.m, :]
    if padding.n:
        product = product[..., : -padding.n]
    return product


def padded_product(
    multiply: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    mat1: torch.Tensor,
    mat2: torch.Tensor,
    problem: Problem,
) -> Callable[[], torch.Tensor]:
    """Prepare the choice ``pad`` of a problem: a function that pads, multiplies with ``multiply`` and cuts."""
    padding = Padding.of(problem)
    pad1, rewrite1 = _operand(mat1, padding.m, padding.k, is_true(problem["prepadded_mat1"]))
    pad2, rewrite2 = _operand(mat2, padding.k, padding.n, is_true(problem["prepadded_mat2"]))
    rewrites = [rewrite for rewrite in (rewrite1, rewrite2) if rewrite is not None]

    def run() -> torch.Tensor:
        for rewrite in rewrites:
            rewrite()
        return cut(multiply(pad1(), pad2()), padding)

    return run


def _operand(
    matrix: torch.Tensor, rows: int, columns: int, prepadded: bool
) -> tuple[Callable[[], torch.Tensor], Callable[[], object] | None]:
    """What yields the padded operand in the timed function, and what writes the padding of a prepadded one there."""
    if not prepadded:
        return lambda: pad_matrix(matrix, rows, columns), None
    ready = pad_matrix(matrix, rows, columns)
    if ready is matrix:
        return lambda: ready, None
    # As Inductor does: where both dimensions are padded, only the corner is written; -0 means the whole dimension.
    region = ready[..., -rows:, -columns:]
    return lambda: ready, lambda: region.fill_(0)
