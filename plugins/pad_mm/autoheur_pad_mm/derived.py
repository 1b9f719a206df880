"""Derived features of a padded matrix product other than the published ones, shared by mm, addmm and bmm.

Which of them earn their place, and what was tried besides, is what ``benchmarks/ablation.py`` shows. All are computed
from the raw features of :mod:`autoheur_pad_mm.features`. :data:`COST` weighs copying against computing with the rates
of an A100; another device's differ by a factor, to which a tree's thresholds adapt. Sizes are logarithms where they
span many powers of ten, because randomised trees draw their thresholds evenly between the extremes.
"""

from __future__ import annotations

from autoheur.plugin import Feature

_WIDE = "mat1_dtype == 'torch.float32'"
_ITEM_SIZE = f"(4 if {_WIDE} else 2)"
_MAT1_PADDED, _MAT2_PADDED = "m_padded_length + k_padded_length > 0", "k_padded_length + n_padded_length > 0"
_MAT1_COPIED = f"{_MAT1_PADDED} and prepadded_mat1 != 'True'"
_MAT2_COPIED = f"{_MAT2_PADDED} and prepadded_mat2 != 'True'"
_LEADING = {"mat1": "max(mat1_stride_0, mat1_stride_1)", "mat2": "max(mat2_stride_0, mat2_stride_1)"}
_DEVICE_FLOPS = f"((110 if using_tf32 == 'True' else 18) if {_WIDE} else 220)"
"""In 10^12 per second."""


def _number(name: str, formula: str, description: str) -> Feature:
    return Feature(name, description=description, formula=formula, protocol="calibrated")


def _truth(name: str, formula: str, description: str) -> Feature:
    return Feature(name, "categorical", description, formula, protocol="calibrated")


def _power_of_two(value: str, largest: int) -> str:
    """The logarithm of the largest power of two that divides ``value``, at most ``largest``."""
    return f"min(trailing_zeros({value}), {largest})"


def _least(*formulas: str) -> str:
    first, *others = formulas
    return f"min({_least(*others)}, {first})" if others else first


_ALIGNMENT = {name: _power_of_two(value, 6) for name, value in {**_LEADING, "m": "m", "k": "k", "out": "n"}.items()}
_BYTES = {name: f"min({_ALIGNMENT[name]} + {_ITEM_SIZE} / 2, 4)" for name in ("mat1", "mat2", "out")}
_PADDED = {dim: _power_of_two(f"{dim} + {dim}_padded_length", 7) for dim in "mkn"}

KIND = (
    _number(
        "precision",
        f"(2 if using_tf32 == 'True' else 3) if {_WIDE} else (0 if mat1_dtype == 'torch.bfloat16' else 1)",
        "0 for bfloat16, 1 for float16, 2 for float32 by TF32, 3 for float32",
    ),
    _number("mat1_column_major", "0 + (mat1_stride_1 != 1)", "1 where mat1 is column-major, else 0"),
    _number("mat2_column_major", "0 + (mat2_stride_1 != 1)", "1 where mat2 is column-major, else 0"),
)

ALIGNMENT = (
    *(
        _number(f"{name}_alignment", formula, f"log2 of the alignment of {name}'s {what}, in elements up to 64")
        for (name, formula), what in zip(
            _ALIGNMENT.items(), ("rows", "rows", "size", "size", "rows, which is n"), strict=True
        )
    ),
    _number("operands_alignment", _least(_ALIGNMENT["mat1"], _ALIGNMENT["mat2"]), "the lesser of mat1's and mat2's"),
    _number(
        "least_alignment",
        _least(_ALIGNMENT["mat1"], _ALIGNMENT["mat2"], _ALIGNMENT["out"]),
        "the least of mat1's, mat2's and the product's",
    ),
    *(
        _number(f"{name}_alignment_bytes", formula, f"log2 of the alignment of {name}'s rows, in bytes up to 16")
        for name, formula in _BYTES.items()
    ),
    _number("operands_alignment_bytes", _least(_BYTES["mat1"], _BYTES["mat2"]), "the lesser of mat1's and mat2's"),
    _number(
        "least_alignment_bytes",
        _least(_BYTES["mat1"], _BYTES["mat2"], _BYTES["out"]),
        "the least of mat1's, mat2's and the product's",
    ),
)

PADDED_ALIGNMENT = (
    *(
        _number(f"padded_{dim}_alignment", formula, f"log2 of the alignment of the padded {dim}, up to 128")
        for dim, formula in _PADDED.items()
    ),
    _number("padded_operands_alignment", _least(_PADDED["k"], _PADDED["n"]), "the lesser of the padded k's and n's"),
    _number("padded_least_alignment", _least(*_PADDED.values()), "the least of the padded m's, k's and n's"),
)

_COPIED_BYTES = (
    f"{_ITEM_SIZE} * ((2 * m * k + m_padded_length * k + k_padded_length * m if {_MAT1_COPIED} else 0)"
    f" + (2 * k * n + n_padded_length * k + k_padded_length * n if {_MAT2_COPIED} else 0))"
)
_PRODUCT_SECONDS = (
    f"max(2 * m * n * k / ({_DEVICE_FLOPS} * 1000000000000), {_ITEM_SIZE} * (m * k + k * n + m * n) / 1400000000000)"
)

COST = (
    _truth("mat1_copied", _MAT1_COPIED, "whether padding copies mat1"),
    _truth("mat2_copied", _MAT2_COPIED, "whether padding copies mat2"),
    _number("log_copied_bytes", f"log2(1 + {_COPIED_BYTES})", "log2 of the bytes that padding reads and writes"),
    _number(
        "copy_over_product",
        f"{_COPIED_BYTES} / 1300000000000 / {_PRODUCT_SECONDS}",
        "estimated time of the copies over that of the product, from flops and bytes",
    ),
    _number("mat1_copy_over_flops", f"1 / n if {_MAT1_COPIED} else 0", "elements of mat1 copied per multiplication"),
    _number("mat2_copy_over_flops", f"1 / m if {_MAT2_COPIED} else 0", "elements of mat2 copied per multiplication"),
    _number(
        "copy_over_flops",
        f"(1 / n if {_MAT1_COPIED} else 0) + (1 / m if {_MAT2_COPIED} else 0)",
        "elements copied per multiplication",
    ),
    _number("log_multiplications", "log2(m * n * k)", "log2 of the multiplications"),
    _number("flops_over_copied_bytes", f"m * n * k / (1 + {_COPIED_BYTES})", "multiplications per byte copied"),
    _number(
        "log_largest_bytes",
        f"log2({_ITEM_SIZE} * max(max(m * k, k * n), m * n))",
        "log2 of the bytes of the largest of mat1, mat2 and the product",
    ),
)

BEYOND_PUBLISHED = (*KIND, *ALIGNMENT, *PADDED_ALIGNMENT, *COST)
