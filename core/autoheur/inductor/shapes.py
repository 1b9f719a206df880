"""Shapes that torch.compile met, and files of them that ``autoheur collect --from`` takes."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from autoheur.errors import InputError
from autoheur.files import replacing, write_text
from autoheur.types import Problem, Value

OPERATOR, COUNT = "operator", "count"


@attrs.frozen
class Shape:
    """One problem of an operator, as (raw feature, value) pairs in the operator's order."""

    operator: str
    problem: tuple[tuple[str, Value], ...]

    @classmethod
    def of(cls, operator: str, problem: Problem) -> Shape:
        # Categories as text, since one feature may take truth values and words.
        values = ((name, str(value) if isinstance(value, bool) else value) for name, value in problem.items())
        return cls(operator, tuple(values))


Shapes = Counter[Shape]
"""How often each shape was met."""


def to_line(shape: Shape) -> str:
    """A shape as a line of a part file, which one process appends to while it compiles."""
    return json.dumps([shape.operator, dict(shape.problem)]) + "\n"


def read_parts(folder: Path) -> Shapes:
    """Count the shapes in all part files of a folder; a line that was cut off by a kill is left out."""
    shapes: Shapes = Counter()
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                operator, problem = json.loads(line)
            except ValueError:
                continue
            shapes[Shape(operator, tuple(problem.items()))] += 1
    return shapes


def write_shapes(shapes: Shapes, path: str | os.PathLike[str]) -> None:
    """Write shapes with their counts, the most frequent first: CSV, or Parquet where the name ends in ``.parquet``.

    Columns are ``operator``, ``count`` and every raw feature; one that an operator does not have is empty.

    Raises:
        InputError: the file cannot be written.
    """
    columns = list(dict.fromkeys(name for shape in shapes for name, _ in shape.problem))
    rows = list(_rows(shapes))
    if Path(path).suffix == ".parquet":
        _write_parquet(rows, columns, path)
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, [OPERATOR, COUNT, *columns], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def _rows(shapes: Shapes) -> Iterator[dict[str, Any]]:
    for shape, count in shapes.most_common():
        yield {OPERATOR: shape.operator, COUNT: count, **dict(shape.problem)}


def _write_parquet(rows: Sequence[dict[str, Any]], columns: Iterable[str], path: str | os.PathLike[str]) -> None:
    try:
        import polars as pl
    except ImportError:
        raise InputError(f"{path}: writing Parquet needs polars; install autoheur-core[train], or write CSV") from None
    table = pl.DataFrame([{name: row.get(name) for name in (OPERATOR, COUNT, *columns)} for row in rows])
    with replacing(path) as temporary:
        try:
            table.write_parquet(temporary)
        except pl.exceptions.PolarsError as error:  # what polars makes of a full disk
            raise InputError(f"{path}: cannot write: {error}") from None
