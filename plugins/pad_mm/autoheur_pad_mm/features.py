"""The features of a padded matrix product, shared by mm, addmm and bmm.

Raw features and their order are those of PyTorch's AutoHeuristic logs for pad_mm
(torch/_inductor/fx_passes/pad_mm.py, ``get_context``), so that its logs and ours are one format; the derived ones are
those of ``pad_mm_operations`` (torch/_inductor/autoheuristic/autoheuristic_utils.py), and the ones that
:mod:`autoheur_pad_mm.derived` adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from autoheur.plugin import Feature, Operand, Problem, Value
from autoheur_pad_mm.derived import BEYOND_PUBLISHED

if TYPE_CHECKING:
    from autoheur.plugin import Fingerprint

CHOICES = ("orig", "pad")


def choices(problem: Problem | None = None) -> Sequence[str]:
    """The choices for a problem, or all that there can be; where nothing would be padded there is no choice."""
    if problem is None or any(problem[f"{dim}_padded_length"] for dim in "mkn"):
        return CHOICES
    return CHOICES[:1]


ALIGNMENT = {"torch.float16": 8, "torch.bfloat16": 8, "torch.float32": 4}
"""Inductor's alignment in elements, by dtype; 0 (never padded) for every other."""


def alignment(dtype: str) -> int:
    """The alignment in elements to which Inductor pads a dimension of this dtype; 0 for none."""
    return ALIGNMENT.get(dtype, 0)


def padded_length(size: int, align: int, static: bool = True) -> int:
    """How many elements are added to a dimension of ``size``. Symbolic sizes and sizes of 1 are never padded."""
    if not static or align == 0 or size == 1:
        return 0
    return -size % align


def operand_features(mat1: Operand, mat2: Operand) -> dict[str, Value]:
    """Sizes, strides and padded lengths of the last two dimensions of ``mat1 @ mat2``, in the order of the logs."""
    m, k = mat1.shape[-2:]
    n = mat2.shape[-1]
    align1, align2 = alignment(mat1.dtype), alignment(mat2.dtype)
    return {
        "m": m,
        "k": k,
        "n": n,
        "mat1_stride_0": mat1.stride[-2],
        "mat1_stride_1": mat1.stride[-1],
        "mat2_stride_0": mat2.stride[-2],
        "mat2_stride_1": mat2.stride[-1],
        "m_padded_length": padded_length(m, align1, mat1.is_static(-2)),
        "k_padded_length": padded_length(k, align1, mat1.is_static(-1)),
        "n_padded_length": padded_length(n, align2, mat2.is_static(-1)),
        "mat1_align_size": align1,
        "mat2_align_size": align2,
        "mat1_dtype": mat1.dtype,
        "mat2_dtype": mat2.dtype,
    }


def flag_features(flags: Mapping[str, Value], dtype: str) -> dict[str, Value]:
    """The flags that tensors do not tell; ``using_tf32`` is ``not_float_32`` for every other dtype."""
    return {
        "prepadded_mat1": bool(flags.get("prepadded_mat1", False)),
        "prepadded_mat2": bool(flags.get("prepadded_mat2", False)),
        "using_tf32": bool(flags.get("using_tf32", False)) if dtype == "torch.float32" else "not_float_32",
    }


SIZES = (
    Feature("m", description="rows of mat1", integer=True),
    Feature("k", description="columns of mat1, rows of mat2", integer=True),
    Feature("n", description="columns of mat2", integer=True),
)

STRIDES = tuple(
    Feature(f"{operand}_stride_{dim}", description=f"stride of {operand}'s dimension {dim} in elements", integer=True)
    for operand in ("mat1", "mat2")
    for dim in (0, 1)
)

PADDING = (
    *(Feature(f"{dim}_padded_length", description=f"elements padding adds to {dim}", integer=True) for dim in "mkn"),
    *(
        Feature(f"{operand}_align_size", description=f"alignment for {operand}, in elements", integer=True)
        for operand in ("mat1", "mat2")
    ),
)

CATEGORIES = (
    Feature("mat1_dtype", "categorical", "dtype of mat1"),
    Feature("mat2_dtype", "categorical", "dtype of mat2"),
    Feature("prepadded_mat1", "categorical", "whether the padding of mat1 can be planned away"),
    Feature("prepadded_mat2", "categorical", "whether the padding of mat2 can be planned away"),
    Feature("using_tf32", "categorical", "whether float32 products may use TF32; not_float_32 for other dtypes"),
)


def _innermost_needs_padding(operand: str, outer: str, inner: str) -> Feature:
    return Feature(
        f"{operand}_innermost_needs_padding",
        "categorical",
        f"whether the contiguous dimension of {operand} is unaligned",
        formula=(
            f"({operand}_stride_0 == 1 and {outer}_padded_length != 0) "
            f"or ({operand}_stride_1 == 1 and {inner}_padded_length != 0)"
        ),
    )


_PUBLISHED = (
    Feature("m*k", description="elements of mat1", formula="m * k"),
    Feature("m*n", description="elements of the product", formula="m * n"),
    Feature("k*n", description="elements of mat2", formula="k * n"),
    Feature("k/(m*n)", description="depth over output size", formula="k / (m * n)"),
    Feature(
        "bfloat_perf_hit",
        "categorical",
        "bfloat16 with a very deep reduction",
        formula="k > m * 1024 and k > n * 1024 and mat1_dtype == 'torch.bfloat16'",
    ),
    Feature(
        "arith_intensity",
        description="multiplications per element moved",
        formula="m * k * n / (m * k + k * n + m * n)",
    ),
    _innermost_needs_padding("mat1", "m", "k"),
    _innermost_needs_padding("mat2", "k", "n"),
    Feature(
        "num_dims_needs_padding",
        description="how many of m, k, n are padded",
        formula="(m_padded_length != 0) + (k_padded_length != 0) + (n_padded_length != 0)",
    ),
    *(
        Feature(f"{dim}_multiple_{factor}", "categorical", f"whether {factor} divides {dim}", f"{dim} % {factor} == 0")
        for dim in "mkn"
        for factor in (2, 4, 8, 16, 32)
    ),
    Feature("mat1_iscontig", "categorical", "whether mat1 is row-major", "mat1_stride_0 == k and mat1_stride_1 == 1"),
    Feature("mat2_iscontig", "categorical", "whether mat2 is row-major", "mat2_stride_0 == n and mat2_stride_1 == 1"),
)

DERIVED = (*(attrs.evolve(feature, protocol="autoheuristic") for feature in _PUBLISHED), *BEYOND_PUBLISHED)

FEATURES = (*SIZES, *STRIDES, *PADDING, *CATEGORIES, *DERIVED)


def extract(operands: Sequence[Operand], flags: Mapping[str, Value]) -> dict[str, Value]:
    """The raw features of ``mat1 @ mat2``; ``operands`` are (mat1, mat2)."""
    mat1, mat2 = operands
    return {**operand_features(mat1, mat2), **flag_features(flags, mat1.dtype)}


def smallest_size(device: Fingerprint) -> int:
    """The size below which, in any of m, k and n, PyTorch neither measures nor asks (``pad_mm_precondition``)."""
    return {"8.0": 512, "9.0": 768}.get(device.capability or "", 1)


def precondition(device: Fingerprint) -> str | None:
    """Sizes below which PyTorch neither measured nor asks its heuristics."""
    smallest = smallest_size(device)
    return None if smallest == 1 else " and ".join(f"{dim} >= {smallest}" for dim in "mkn")
