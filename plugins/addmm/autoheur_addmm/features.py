"""The features of a padded matrix product with a bias: those of mm, the bias's form and its factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autoheur.plugin import Feature, Operand, Value
from autoheur_pad_mm.features import CHOICES, flag_features, operand_features
from autoheur_pad_mm.features import FEATURES as PRODUCT

__all__ = ["CHOICES", "FEATURES", "bias_form", "bias_shape", "extract"]

# Only beta decides which kernel runs: 1 lets a bias vector be fused, 0 drops the bias. Alpha scales in passing.
BIAS = (
    Feature(
        "bias_form",
        "categorical",
        "shape of the bias: n for (n), 1n for (1, n), m1 for (m, 1), mn for (m, n), 1 for (1) and (1, 1)",
    ),
    Feature("beta", "categorical", "the factor of the bias: 0, 1 or other"),
)

FEATURES = (
    *(feature for feature in PRODUCT if not feature.derived),
    *BIAS,
    *(feature for feature in PRODUCT if feature.derived),
)


def bias_form(shape: Sequence[int]) -> str:
    """The form of a bias of this shape; a size of 1 is read as one that broadcasts."""
    if all(size == 1 for size in shape):
        return "1"
    if len(shape) == 1:
        return "n"
    rows, columns = shape
    return "1n" if rows == 1 else "m1" if columns == 1 else "mn"


def bias_shape(form: str, m: int, n: int) -> tuple[int, ...]:
    """The shape of a bias of this form for an m x n product.

    Raises:
        ValueError: there is no such form.
    """
    shapes: dict[str, tuple[int, ...]] = {"n": (n,), "1n": (1, n), "m1": (m, 1), "mn": (m, n), "1": (1,)}
    if form not in shapes:
        raise ValueError(f"bias_form {form!r} is none of {', '.join(shapes)}")
    return shapes[form]


def extract(operands: Sequence[Operand], flags: Mapping[str, Value]) -> dict[str, Value]:
    """The raw features of ``addmm(input, mat1, mat2)``; ``flags`` may hold ``beta``, by default 1."""
    bias, mat1, mat2 = operands
    beta = float(flags.get("beta", 1))
    return {
        **operand_features(mat1, mat2),
        **flag_features(flags, mat1.dtype),
        "bias_form": bias_form(bias.shape),
        "beta": "1" if beta == 1 else "0" if beta == 0 else "other",
    }
