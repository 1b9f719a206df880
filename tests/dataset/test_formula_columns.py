"""Formulas over columns mean what they mean in generated Python code."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoheur import formula as formulas
from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.dataset.columns import evaluate, feature_columns
from autoheur.errors import FormulaError, InputError
from autoheur.types import Feature

SCOPE = {
    "log2": math.log2,
    "floor": math.floor,
    "ceil": math.ceil,
    "trailing_zeros": formulas.trailing_zeros,
    "__builtins__": {"min": min, "max": max, "abs": abs},
}


def in_python(text: str, columns: dict[str, np.ndarray[Any, Any]]) -> list[float] | None:
    """Run the generated source row by row; ``None`` where a row raises."""
    code = compile(formulas.to_python(formulas.parse(text)), "formula", "eval")
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*(c.tolist() for c in columns.values()), strict=True)
    ]
    try:
        return [eval(code, SCOPE, row) for row in rows]
    except (ZeroDivisionError, ValueError, OverflowError):
        return None


def assert_agrees(text: str, columns: dict[str, np.ndarray[Any, Any]]) -> None:
    expected = in_python(text, columns)
    if expected is None:
        with pytest.raises(FormulaError):
            evaluate(formulas.parse(text), columns)
        return
    found = evaluate(formulas.parse(text), columns)
    truth = formulas.parse(text).kind(
        {n: "categorical" if c.dtype == object else "numerical" for n, c in columns.items()}
    )
    assert found.dtype == (np.bool_ if truth == "truth" else np.float64)
    np.testing.assert_array_equal(found.astype(np.float64), np.array(expected, np.float64))


@st.composite
def numbers(draw: st.DrawFn, depth: int) -> str:
    """The text of an expression that is a number (or a truth value, which counts 0 or 1)."""
    kind = draw(st.sampled_from(["leaf", "binary", "function", "extreme", "conditional", "truth"])) if depth else "leaf"
    parts = [f"({draw(numbers(depth - 1))})" for _ in range(2)] if kind in ("binary", "extreme", "conditional") else []
    match kind:
        case "leaf":
            return draw(st.sampled_from(["x", "y", "0", "1", "2", "7", "0.5", "3.7"]))
        case "binary":
            return draw(st.sampled_from([" + ", " - ", " * ", " / ", " // ", " % "])).join(parts)
        case "extreme":
            return f"{draw(st.sampled_from(['min', 'max']))}({', '.join(parts)})"
        case "conditional":
            return f"{parts[0]} if ({draw(truths(depth - 1))}) else {parts[1]}"
        case "function":
            return f"{draw(st.sampled_from(['abs', 'log2', 'floor', 'ceil', '-']))}({draw(numbers(depth - 1))})"
    return draw(truths(depth - 1))


@st.composite
def truths(draw: st.DrawFn, depth: int) -> str:
    """The text of an expression that is a truth value."""
    kind = draw(st.sampled_from(["numbers", "categories", "connective", "not", "conditional"])) if depth else "leaf"
    symbols = ["==", "!="] + (["<", "<=", ">", ">="] if kind == "numbers" else [])
    match kind:
        case "leaf":
            return draw(st.sampled_from(["x > y", "x == 1", "c == 'a'", "True", "False"]))
        case "numbers":
            return f"({draw(numbers(depth - 1))}) {draw(st.sampled_from(symbols))} ({draw(numbers(depth - 1))})"
        case "categories":
            sides = st.sampled_from(["c", "'a'", "'b'"])
            return f"{draw(sides)} {draw(st.sampled_from(symbols))} {draw(sides)}"
        case "not":
            return f"not ({draw(truths(depth - 1))})"
        case "conditional":
            texts = [f"({draw(truths(depth - 1))})" for _ in range(3)]
            return f"{texts[0]} if {texts[1]} else {texts[2]}"
    texts = [f"({draw(truths(depth - 1))})" for _ in range(draw(st.integers(2, 3)))]
    return draw(st.sampled_from([" and ", " or "])).join(texts)


# So small and shallow that whole numbers stay below 2**53, whatever is made of them.
VALUES = st.one_of(st.integers(-30, 30).map(float), st.floats(-30, 30))


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(numbers(3), truths(3)),
    st.lists(st.tuples(VALUES, VALUES, st.sampled_from(["a", "b", ""])), min_size=1, max_size=6),
)
def test_random_formulas_agree_with_python(text: str, rows: list[tuple[float, float, str]]) -> None:
    columns = {
        "x": np.array([row[0] for row in rows]),
        "y": np.array([row[1] for row in rows]),
        "c": np.array([row[2] for row in rows], object),
    }
    assert_agrees(text, columns)


ANY_NUMBER = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["x + y", "x * y", "x / y", "x // y", "x % y", "min(x, y)", "max(x, y)", "log2(abs(x))"]),
    st.lists(st.tuples(ANY_NUMBER, ANY_NUMBER), min_size=1, max_size=6),
)
def test_any_numbers_agree_with_python(text: str, rows: list[tuple[float, float]]) -> None:
    assert_agrees(text, {"x": np.array([row[0] for row in rows]), "y": np.array([row[1] for row in rows])})


@pytest.mark.parametrize(
    "text",
    [
        *("x * y - x * y * 2", "min(x * y, x - x * y)", "max(x * y / (x * y), 1)", "(x * y) // 3", "(x * y) % 3"),
        *(
            "-(x * y) // 7",
            "3 % -(x * y)",
            "(x * y - x * y) == 0",
            "True + True",
            "2 // 3",
            "min(x < y, 2)",
            "-(x < y)",
        ),
    ],
)
def test_infinities_that_arise_agree_with_python(text: str) -> None:
    assert_agrees(text, {"x": np.array([1e300, -1e300, 2.0]), "y": np.array([1e300, 1e300, 0.5])})


def test_trailing_zeros_are_those_of_the_binary_digits() -> None:
    values = np.array([1.0, 2.0, 3.0, 40.0, -8.0, 0.0, 65536.0, 2.0**70])
    found = evaluate(formulas.parse("trailing_zeros(x)"), {"x": values})
    assert found.tolist() == [0.0, 1.0, 0.0, 3.0, 3.0, 64.0, 16.0, 70.0]


def test_log2_is_pythons_to_the_last_bit() -> None:
    values = np.random.default_rng(0).uniform(0, 1e6, 20_000)
    assert evaluate(formulas.parse("log2(x)"), {"x": values}).tolist() == [math.log2(x) for x in values.tolist()]


def test_parts_that_python_would_skip_are_not_evaluated() -> None:
    columns = {"x": np.array([0.0, 2.0, -1.0])}
    assert evaluate(formulas.parse("1 / x if x != 0 else 0"), columns).tolist() == [0.0, 0.5, -1.0]
    assert evaluate(formulas.parse("x > 0 and log2(x) == 1"), columns).tolist() == [False, True, False]
    assert evaluate(formulas.parse("x <= 0 or 4 // x == 2"), columns).tolist() == [True, True, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / x", "formula '1 / x' divides by zero where x=0.0"),
        ("1 % x", "formula '1 % x' divides by zero where x=0.0"),
        ("log2(x)", "formula 'log2(x)' takes the logarithm of a number that is not positive where x=0.0"),
        ("floor(x * 1e308 * 1e308)", "rounds a number that is not finite where x=3.0"),
        ("x + z", "formula 'x + z' names 'z', which is not a raw feature (known: x)"),
        ("x == 'a'", "compares a category with a number"),
    ],
)
def test_what_cannot_be_computed_is_an_error_that_shows_the_row(text: str, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        evaluate(formulas.parse(text), {"x": np.array([3.0, 0.0])})
    assert message in str(caught.value)


def test_constants_fill_the_column_and_integers_count_as_floats() -> None:
    columns = {"x": np.array([1, 2, 3]), "c": np.array(["True", "b", "c"])}
    assert evaluate(formulas.parse("1 + 1"), columns).tolist() == [2.0, 2.0, 2.0]
    assert evaluate(formulas.parse("True"), columns).tolist() == [True, True, True]
    assert evaluate(formulas.parse("x / 2"), columns).tolist() == [0.5, 1.0, 1.5]
    assert evaluate(formulas.parse("c == 'True'"), columns).tolist() == [True, False, False]
    assert evaluate(formulas.parse("t == 'True'"), {"t": np.array([True, False])}).tolist() == [True, False]


def test_feature_columns_are_raw_and_derived(make_log: Callable[..., Path]) -> None:
    dataset = read_log(make_log(["8,a,2,orig,1", "9,b,4,orig,1", "8,b,2.5,orig,1"]))
    columns = feature_columns(
        dataset,
        [
            Feature("n"),
            Feature("dtype", "categorical"),
            Feature("m*n", formula="m * n"),
            Feature("even", "categorical", formula="m % 2 == 0 and dtype == 'b'"),
        ],
    )
    assert list(columns) == ["n", "dtype", "m*n", "even"]
    assert columns["n"].tolist() == [2.0, 4.0, 2.5]
    assert columns["dtype"].tolist() == ["a", "b", "b"]
    assert columns["m*n"].tolist() == [16.0, 36.0, 20.0]
    assert columns["even"].tolist() == ["False", "False", "True"]
    assert columns["n"].dtype == columns["m*n"].dtype == np.float64
    assert columns["dtype"].dtype == columns["even"].dtype == object


def test_a_truth_value_asked_for_as_a_number_counts_zero_or_one(make_log: Callable[..., Path]) -> None:
    dataset = read_log(make_log(["8,a,2,orig,1", "9,a,2,orig,1"]))
    column = feature_columns(dataset, [Feature("odd", formula="m % 2 == 1")])["odd"]
    assert column.dtype == np.float64
    assert column.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        (Feature("k"), r"no feature 'k' \(there are: m, dtype, n\)"),
        (Feature("m", "categorical"), "feature 'm' is numerical in the data, categorical for the operator"),
        (Feature("dtype"), "feature 'dtype' is categorical in the data, numerical for the operator"),
        (Feature("d", formula="m * k"), "feature 'd' is computed from 'k', which the data lacks"),
    ],
)
def test_features_that_the_data_lacks_are_named(make_log: Callable[..., Path], feature: Feature, message: str) -> None:
    with pytest.raises(InputError, match=message):
        feature_columns(read_log(make_log()), [feature])
