"""Derived features: generated code computes exactly what training computes over whole columns."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from autoheur.codegen import compile_artifact, generate
from autoheur.dataset.columns import evaluate
from autoheur.formula import parse
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.types import Feature, Value
from autoheur_pad_mm.features import FEATURES as PAD_MM_FEATURES

RAW = [Feature("m", integer=True), Feature("k", integer=True), Feature("x"), Feature("dtype", "categorical")]
FORMULAS = [
    *("m * k", "k / (m * x)", "m % 7 + x // 0.3", "-x * m - k", "log2(m) * log2(x)", "abs(x - m)"),
    *("floor(m / k) * floor(x)", "ceil(x) * 9007199254740991 * 9007199254740991", "floor(-0.5 * x)"),
    *(
        "trailing_zeros(m)",
        "min(trailing_zeros(m + k), 4) * x",
        "trailing_zeros(m - m)",
        "trailing_zeros(floor(x) * 8)",
    ),
    *("min(m, x)", "max(k, 3)", "min(m, 3) // 2", "(m > k) + (x > 1) + True", "1e+16 * x", "0.1 + 0.2"),
    *("m if dtype == 'torch.float16' else x", "k if m > 100 and not x > 2 else -k", "m if x < 0 or m == k else 2"),
]


def random_rows(count: int) -> list[dict[str, Value]]:
    source = random.Random(3)
    return [
        {
            "m": source.randint(1, 5000),
            "k": source.randint(1, 5000),
            "x": source.lognormvariate(0, 3),
            "dtype": source.choice(["torch.float16", "torch.float32"]),
        }
        for _ in range(count)
    ]


def equals_exactly(column: int, value: float) -> list[Tree]:
    """Two trees that score 3 for this very input only: at most ``value``, and more than the number below it."""
    above = Tree([column, -1, -1], [value, 0, 0], [1, 0, 0], [2, 0, 0], [[], [1.0], [0.0]])
    below = Tree([column, -1, -1], [math.nextafter(value, -math.inf), 0, 0], [1, 0, 0], [2, 0, 0], [[], [0.0], [2.0]])
    return [above, below]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_number_is_the_same_in_training_and_in_code(text: str) -> None:
    rows = random_rows(25)
    columns = {
        f.name: np.array([row[f.name] for row in rows], object if f.kind == "categorical" else None) for f in RAW
    }
    expected = np.broadcast_to(evaluate(parse(text), columns), len(rows))
    for row, value in zip(rows, expected.tolist(), strict=True):
        model = Forest([Input("derived")], [0.0], equals_exactly(0, value), "row", "float64")
        features = [*RAW, Feature("derived", formula=text)]
        artifact = Artifact("op", "test", features, ["a", "b"], model, Policy(0.0, guard=False))
        assert compile_artifact(artifact).scores(row) == (3.0, 3.0)


def test_every_derived_feature_of_pad_mm_is_readable_code() -> None:
    derived = [feature for feature in PAD_MM_FEATURES if feature.derived]
    inputs = [Input(f.name, "True" if f.kind == "categorical" else None) for f in derived]
    trees = [Tree([i, -1, -1], [0.5, 0, 0], [1, 0, 0], [2, 0, 0], [[], [1.0], [2.0]]) for i in range(len(inputs))]
    model = Forest(inputs, [0.0], trees)
    artifact = Artifact("pad_mm", "t", list(PAD_MM_FEATURES), ["orig", "pad"], model, Policy(1.0, guard=False))
    text = generate(artifact)
    assert "v_k_m_n = k / (m * n)" in text
    assert "bfloat_perf_hit = k > m * 1024 and k > n * 1024 and " in text
    assert 'mat1_dtype == "torch.bfloat16"' in text
    assert "if v_m_k <= 0:" in text
    assert "if not m_multiple_8:" in text
