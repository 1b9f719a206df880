"""Problems from a file of shapes, CSV or Parquet.

Columns are the operator's raw features. For an operator whose operands are matrices (its raw features include m, k and
n) a short form will do: ``m,k,n`` (and ``b``), ``dtype``, and where they matter ``mat1_transposed``,
``mat2_transposed``, ``mat1_expanded``, ``mat2_expanded``, ``bias_form``, flags such as ``prepadded_mat1``, and any
numerical raw feature that is not what these give. An empty cell is a value not given. With a column ``operator``, rows
of other operators are passed over; ``count`` (how often a model met the shape) is allowed and not used.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import attrs
import polars as pl
import torch

from autoheur.errors import InputError
from autoheur.measure.problems import as_problem, key_of
from autoheur.types import Feature, Operand, Problem, Value

Row = dict[str, Value]
"""The values given in one row; empty cells are left out."""

OPERATOR = "operator"
COUNT = "count"
SIZES = ("b", "m", "k", "n")
FLAGS = ("prepadded_mat1", "prepadded_mat2", "using_tf32")
LAYOUT = ("mat1_transposed", "mat2_transposed", "mat1_expanded", "mat2_expanded")


class Extracting(Protocol):
    """What reading shapes needs of an operator."""

    @property
    def name(self) -> str: ...

    @property
    def raw_features(self) -> Sequence[Feature]: ...

    def extract(self, operands: Sequence[Operand], flags: Mapping[str, Value]) -> Problem: ...


def read_shapes(path: Path, operator: Extracting) -> list[Problem]:
    """The problems in a file of shapes, in the file's order.

    Raises:
        InputError: the file cannot be read, holds no shape for the operator, or a row does not make a problem; the
            message names file and line (CSV) or row (Parquet).
    """
    rows = _parquet_rows(path) if path.suffix == ".parquet" else _csv_rows(path)
    problems = []
    for where, row in rows:
        if str(row.pop(OPERATOR, operator.name)) != operator.name:
            continue
        row.pop(COUNT, None)
        try:
            problems.append(_problem(row, operator))
        except ValueError as error:
            raise InputError(f"{where}: {error}") from None
    if not problems:
        raise InputError(f"{path}: no shape for operator {operator.name!r}")
    return problems


def _csv_rows(path: Path) -> Iterator[tuple[str, Row]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: neither CSV in UTF-8 nor named *.parquet") from None
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_header(f"{path}:1", names)
        for cells in reader:
            where = f"{path}:{reader.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(names):
                raise InputError(f"{where}: {len(cells)} values, but the header names {len(names)} columns")
            yield where, {name: cell.strip() for name, cell in zip(names, cells, strict=True) if cell.strip()}
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not CSV: {error}") from None


def _parquet_rows(path: Path) -> Iterator[tuple[str, Row]]:
    try:
        table = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or (str(error).splitlines() or ["not Parquet"])[0]
        raise InputError(f"{path}: cannot read: {reason}") from None
    _check_header(str(path), table.columns)
    for number, row in enumerate(table.iter_rows(named=True), start=1):
        yield f"{path}: row {number}", {name: value for name, value in row.items() if value is not None}


def _check_header(where: str, names: Sequence[str]) -> None:
    if not any(names):
        raise InputError(f"{where}: no column names")
    repeated = next((name for position, name in enumerate(names) if name in names[:position]), None)
    if repeated is not None:
        raise InputError(f"{where}: the column {repeated!r} is there twice")


def _problem(row: Row, operator: Extracting) -> Problem:
    """The problem that a row describes, completed where the operator's operands are matrices.

    Raises:
        ValueError: the row lacks something, has something unknown, or a value is of the wrong kind.
    """
    features = operator.raw_features
    names = {feature.name for feature in features}
    row = {name: _normalised(name, value) for name, value in row.items()}
    if not names <= row.keys() and {"m", "k", "n"} <= names:
        row = _complete(row, operator)
    problem = as_problem(key_of(row, features), features)
    for feature in features:
        value = problem[feature.name]
        least = 1 if feature.name in SIZES else 0
        if feature.integer and not isinstance(value, str) and value < least:
            raise ValueError(f"{feature.name} must be at least {least}, not {value}")
    return problem


def _normalised(name: str, value: Value) -> Value:
    """Truth values as Python writes them, dtypes as torch does."""
    text = str(value)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if name == "dtype" or name.endswith("_dtype"):
        short = text.removeprefix("torch.")
        if not isinstance(getattr(torch, short, None), torch.dtype):
            raise ValueError(f"{name} {text!r} is not a dtype of torch, such as float16")
        return f"torch.{short}"
    return value


def _complete(row: Row, operator: Extracting) -> Row:
    """Fill in the raw features that sizes, dtype and layout determine; numbers that the row gives stay as they are."""
    features = {feature.name: feature for feature in operator.raw_features}
    product = _Product(row, batched="b" in features)
    operands = product.operands()
    if "bias_form" in features:
        operands = (product.bias(), *operands)
    flags = {name: value for name, value in row.items() if name not in SIZES}
    flags.update({name: product.truth(name) for name in FLAGS if row.get(name, "not_float_32") != "not_float_32"})
    completed = dict(operator.extract(operands, flags))
    known = {"dtype", *LAYOUT, *(name for name, feature in features.items() if feature.kind == "categorical")}
    return {**completed, **{name: value for name, value in row.items() if name not in known}}


@attrs.frozen
class _Product:
    """The operands of a matrix product, as a row describes them."""

    row: Row
    batched: bool

    def operands(self) -> tuple[Operand, ...]:
        m, k, n = (self.size(dim) for dim in "mkn")
        return self.operand("mat1", m, k), self.operand("mat2", k, n)

    def operand(self, name: str, rows: int, columns: int) -> Operand:
        strides = (1, rows) if self.truth(f"{name}_transposed") else (columns, 1)
        stride = tuple(self.size(f"{name}_stride_{dim}", default, 0) for dim, default in enumerate(strides))
        if not self.batched:
            return Operand((rows, columns), stride, self.dtype(name))
        batch_stride = 0 if self.truth(f"{name}_expanded") else rows * columns
        batch_stride = self.size(f"{name}_stride_b", batch_stride, 0)
        return Operand((self.size("b"), rows, columns), (batch_stride, *stride), self.dtype(name))

    def dtype(self, name: str) -> str:
        dtype = self.row.get(f"{name}_dtype", self.row.get("dtype"))
        if dtype is None:
            raise ValueError("no dtype: give a column dtype")
        return str(dtype)

    def bias(self) -> Operand:
        m, n = self.size("m"), self.size("n")
        shapes: dict[str, tuple[int, ...]] = {"n": (n,), "1n": (1, n), "m1": (m, 1), "mn": (m, n), "1": (1,)}
        form = str(self.row.get("bias_form", "n"))
        if form not in shapes:
            raise ValueError(f"bias_form {form!r} is none of {', '.join(shapes)}")
        return Operand(shapes[form], (*shapes[form][1:], 1), self.dtype("mat1"))

    def size(self, name: str, default: int | None = None, least: int = 1) -> int:
        value = self.row.get(name, default)
        if value is None:
            raise ValueError(f"no {name}: give a column {name}")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not (number >= least and number.is_integer()):
            raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
        return int(number)

    def truth(self, name: str) -> bool:
        value = self.row.get(name, False)
        if str(value) not in ("True", "False", "1", "0"):
            raise ValueError(f"{name} must be true or false, not {value!r}")
        return str(value) in ("True", "1")
