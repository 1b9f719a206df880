"""Feature columns for training: raw ones as they are stored, derived ones by their formulas.

Formulas mean here what they mean in generated Python code, value for value. To that end every part is evaluated for
exactly the rows for which Python would evaluate it: ``x // y if y != 0 else 0`` divides by no zero.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from autoheur import formula as formulas
from autoheur.dataset.dataset import Dataset
from autoheur.errors import FormulaError, InputError
from autoheur.formula import Formula
from autoheur.types import Feature

Column = NDArray[Any]
"""float64 for numbers, bool for truth values, objects (``str``) for categories."""

Columns = dict[str, Column]


def evaluate(formula: Formula, columns: Mapping[str, Column]) -> Column:
    """Evaluate a formula over columns of equal length: float64 for numbers, bool for truth values.

    Equal to running :func:`autoheur.formula.to_python`'s source on each row with numbers as floats, where whole
    intermediate results stay below 2**53; the sign of a zero, which no formula can see, may differ.

    Raises:
        FormulaError: a column is missing or of the wrong kind, or Python would raise for a row (a division by zero,
            the logarithm of a number that is not positive, rounding what is not finite); the message shows the row.
    """
    length = len(next(iter(columns.values()))) if columns else 1
    prepared = {name: _prepare(columns[name]) for name in formula.names if name in columns}
    formula.kind({name: "categorical" if c.dtype == object else "numerical" for name, c in prepared.items()})
    result = _Evaluator(formula, prepared).visit(formula.tree, np.arange(length))
    return result if result.dtype == np.bool_ else result.astype(np.float64)


def _prepare(column: Column) -> Column:
    """Numbers as float64, categories as objects; a truth value among categories is compared by its ``str()``."""
    if column.dtype.kind in "fiu":
        return column.astype(np.float64, copy=False)
    if column.dtype.kind == "U":
        return column.astype(object)
    if column.dtype.kind == "b":
        return np.where(column, "True", "False").astype(object)
    return column


class _Evaluator:
    """Evaluates expressions for chosen rows; an array of results goes with an array of row numbers."""

    def __init__(self, formula: Formula, columns: Mapping[str, Column]) -> None:
        self.formula = formula
        self.columns = columns

    def visit(self, node: ast.expr, rows: NDArray[np.intp]) -> Column:
        match node:
            case ast.Constant(value=str() as text):
                return np.full(len(rows), text, object)
            case ast.Constant(value=value):
                return np.full(len(rows), value, np.bool_ if isinstance(value, bool) else np.float64)
            case ast.Name(id=name):
                return self.columns[name][rows]
            case ast.BinOp(left=left, op=op, right=right):
                return self._arithmetic(op, self._number(left, rows), self._number(right, rows), rows)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self.visit(operand, rows)
            case ast.UnaryOp(operand=operand):
                return -self._number(operand, rows)
            case ast.BoolOp(op=op, values=values):
                return self._connective(isinstance(op, ast.And), values, rows)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                compare = formulas.COMPARISON_FUNCTIONS[formulas.comparison_symbol(op)]
                return np.asarray(compare(self._comparable(left, rows), self._comparable(right, rows)), np.bool_)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._conditional(test, body, orelse, rows)
            case ast.Call(func=ast.Name(id=function), args=args):
                return self._call(function, [self._number(argument, rows) for argument in args], rows)
        raise AssertionError(f"unchecked node {node!r}")

    def _number(self, node: ast.expr, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        return self.visit(node, rows).astype(np.float64, copy=False)

    def _comparable(self, node: ast.expr, rows: NDArray[np.intp]) -> Column:
        value = self.visit(node, rows)
        return value if value.dtype == object else value.astype(np.float64, copy=False)

    def _arithmetic(
        self, op: ast.operator, left: NDArray[np.float64], right: NDArray[np.float64], rows: NDArray[np.intp]
    ) -> Column:
        if isinstance(op, ast.Div | ast.FloorDiv | ast.Mod):
            self._require(right != 0, rows, "divides by zero")
        with np.errstate(all="ignore"):  # infinities are results like others, as in Python
            result: Column = formulas.ARITHMETIC_FUNCTIONS[formulas.arithmetic_symbol(op)](left, right)
        return result

    def _connective(self, conjunction: bool, values: Sequence[ast.expr], rows: NDArray[np.intp]) -> Column:
        result = np.full(len(rows), conjunction)
        open_rows = np.arange(len(rows))
        for value in values:
            found = self.visit(value, rows[open_rows])
            result[open_rows] = found
            open_rows = open_rows[found == conjunction]
        return result

    def _conditional(self, test: ast.expr, body: ast.expr, orelse: ast.expr, rows: NDArray[np.intp]) -> Column:
        met = self.visit(test, rows).astype(np.bool_)
        first, second = self.visit(body, rows[met]), self.visit(orelse, rows[~met])
        result = np.empty(len(rows), first.dtype if first.dtype == second.dtype else np.float64)
        result[met] = first
        result[~met] = second
        return result

    def _call(self, function: str, arguments: list[NDArray[np.float64]], rows: NDArray[np.intp]) -> Column:
        first = arguments[0]
        match function:
            case "min":  # Python keeps the first unless the second is smaller, which matters for nan
                return np.where(arguments[1] < first, arguments[1], first)
            case "max":
                return np.where(arguments[1] > first, arguments[1], first)
            case "abs":
                return np.abs(first)
            case "log2":
                self._require(~(first <= 0), rows, "takes the logarithm of a number that is not positive")
                # numpy's log2 differs from Python's in the last bit
                return np.fromiter(map(math.log2, first.tolist()), np.float64, len(first))
            case "floor" | "ceil":
                self._require(np.isfinite(first), rows, "rounds a number that is not finite")
                return np.floor(first) if function == "floor" else np.ceil(first)
            case "trailing_zeros":
                self._require(np.isfinite(first), rows, "takes trailing zeros of a number that is not finite")
                return np.fromiter(map(formulas.trailing_zeros, first.tolist()), np.float64, len(first))
        raise AssertionError(f"unchecked function {function!r}")

    def _require(self, fine: NDArray[np.bool_], rows: NDArray[np.intp], what: str) -> None:
        if not fine.all():
            row = rows[int(np.argmin(fine))]
            values = ", ".join(f"{name}={column[row]!s}" for name, column in self.columns.items())
            raise FormulaError(f"formula {self.formula.text!r} {what} where {values}")


def feature_columns(dataset: Dataset, features: Sequence[Feature]) -> Columns:
    """The values of ``features`` for each problem of a dataset, in the order of its problems.

    Numerical features are float64 columns, categorical ones object columns of ``str``; a derived truth value is
    ``'True'`` or ``'False'``.

    Raises:
        InputError: a raw feature is not in the dataset, or of another kind there; or see :func:`evaluate`.
    """
    stored = {feature.name: feature for feature in dataset.features}
    for feature in features:
        if feature.derived:
            continue
        if feature.name not in stored:
            raise InputError(f"{dataset.name}: no feature {feature.name!r} (there are: {', '.join(stored)})")
        if stored[feature.name].kind != feature.kind:
            kinds = f"{stored[feature.name].kind} in the data, {feature.kind} for the operator"
            raise InputError(f"{dataset.name}: feature {feature.name!r} is {kinds}")
    raw = {name: _raw_column(dataset.problems.get_column(name)) for name in _needed(features, stored)}
    columns: Columns = {}
    for feature in features:
        if feature.formula is None:
            columns[feature.name] = raw[feature.name]
            continue
        values = evaluate(formulas.parse(feature.formula), raw or {"": np.empty(len(dataset.problems))})
        if feature.kind == "categorical":
            values = np.array(["False", "True"], object)[values.astype(np.intp)]
        columns[feature.name] = values.astype(np.float64) if feature.kind == "numerical" else values
    return columns


def _needed(features: Sequence[Feature], stored: Mapping[str, Feature]) -> list[str]:
    """The raw features that are asked for or read by a formula, each once."""
    names: dict[str, None] = {}
    for feature in features:
        read = (feature.name,) if feature.formula is None else formulas.parse(feature.formula).names
        for name in read:
            if name not in stored:
                known = ", ".join(stored)
                raise InputError(f"feature {feature.name!r} is computed from {name!r}, which the data lacks ({known})")
            names.setdefault(name)
    return list(names)


def _raw_column(column: pl.Series) -> Column:
    if column.dtype != pl.String:
        return column.cast(pl.Float64).to_numpy()
    # One str object per category, not per problem.
    categories = column.unique(maintain_order=True)
    codes = column.replace_strict(categories, pl.int_range(len(categories), eager=True)).to_numpy()
    return np.array(categories.to_list(), object).take(codes)
