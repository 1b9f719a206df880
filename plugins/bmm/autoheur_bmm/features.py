"""The features of a padded batched matrix product: those of mm, and the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autoheur.plugin import Feature, Operand, Value
from autoheur_pad_mm.features import (
    CATEGORIES,
    CHOICES,
    DERIVED,
    PADDING,
    SIZES,
    STRIDES,
    flag_features,
    operand_features,
)

__all__ = ["CHOICES", "FEATURES", "extract"]

BATCH = (
    Feature("b", description="matrices in the batch", integer=True),
    Feature("mat1_stride_b", description="stride of mat1 from matrix to matrix; 0 where expanded", integer=True),
    Feature("mat2_stride_b", description="stride of mat2 from matrix to matrix; 0 where expanded", integer=True),
)

BATCH_DERIVED = (
    Feature("b*m*k", description="elements of mat1, an expanded one's repeats counted", formula="b * m * k"),
    Feature("b*k*n", description="elements of mat2, an expanded one's repeats counted", formula="b * k * n"),
    Feature("b*m*n", description="elements of the product", formula="b * m * n"),
    Feature("b*m*k*n", description="multiplications", formula="b * m * k * n"),
    Feature("mat1_expanded", "categorical", "whether all of mat1 is one matrix", "mat1_stride_b == 0"),
    Feature("mat2_expanded", "categorical", "whether all of mat2 is one matrix", "mat2_stride_b == 0"),
)

FEATURES = (*BATCH, *SIZES, *STRIDES, *PADDING, *CATEGORIES, *DERIVED, *BATCH_DERIVED)


def extract(operands: Sequence[Operand], flags: Mapping[str, Value]) -> dict[str, Value]:
    """The raw features of ``bmm(mat1, mat2)``; ``operands`` are (mat1, mat2), of three dimensions each."""
    mat1, mat2 = operands
    return {
        "b": mat1.shape[0],
        "mat1_stride_b": mat1.stride[0],
        "mat2_stride_b": mat2.stride[0],
        **operand_features(mat1, mat2),
        **flag_features(flags, mat1.dtype),
    }
