"""Recording every question that torch.compile meets, and files of them that ``autoheur collect --from`` takes.

Graphs are read before Inductor decides anything, so also what it would never ask about is recorded.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from autoheur.errors import InputError, describe
from autoheur.files import check_writable, replacing, write_text
from autoheur.inductor import switch
from autoheur.inductor.observed import process_name
from autoheur.registry import Registry, default_registry
from autoheur.site import Question
from autoheur.types import Problem, Value

if TYPE_CHECKING:
    from torch.fx import Graph, Node

logger = logging.getLogger("autoheur.inductor")

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


Reader = Callable[[Any], tuple[Sequence[Any], Question] | None]
"""How a site reads a node of a graph."""

Sink = Callable[[list[Shape]], None]

_lock = threading.RLock()
_sinks: list[Sink] = []
"""Who wants to know, in the whole process."""


@contextlib.contextmanager
def capture(path: str | os.PathLike[str] | None = None) -> Iterator[Shapes]:
    """Record every mm, addmm and bmm that torch.compile meets inside the block, in any thread; yield their counts.

    At the end they are written to ``path`` (CSV or Parquet), for ``autoheur collect --from``, also where the block
    ends with an exception. What was compiled before the block is not compiled again, so not recorded.

    Raises:
        InputError: the file cannot be written; found out at the beginning.
    """
    from autoheur.inductor import torch_seams

    if path is not None:
        check_writable(path)
    shapes: Shapes = Counter()
    with _lock:
        _sinks.append(shapes.update)
    try:
        _install()
        yield shapes
    finally:
        with _lock:
            _sinks.remove(shapes.update)
            if not _sinks:
                torch_seams.stop_reading()
        if path is not None:
            write_shapes(shapes, path)


def trace(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Have torch.compile meet ``function``, a model for example, without generating a kernel; return its result.

    Made for fake tensors: under ``torch._subclasses.FakeTensorMode`` a model of any size is built, called and recorded
    in seconds, without its memory and without a GPU. With parameters that need gradients the backward graph is
    recorded as well, whether or not it is run.
    """
    from autoheur.inductor import torch_seams

    return torch_seams.compile_for_inspection(function, *args, **kwargs)


def capture_into(folder: str | os.PathLike[str]) -> None:
    """Append what this process and those that it forks compile to part files in ``folder``, from now on for good.

    One file per process, each graph written at once: neither a kill nor ``os._exit`` loses what was recorded.
    """

    def append(shapes: list[Shape]) -> None:
        with (Path(folder) / f"{process_name(os.getpid())}.jsonl").open("a", encoding="utf-8") as file:
            file.write("".join(map(to_line, shapes)))

    with _lock:
        _sinks.append(append)
    switch.when_imported(_install)


def _install() -> None:
    """Have Inductor show its graphs."""
    from autoheur.inductor import torch_seams

    torch_seams.read_graphs(_record, lambda: bool(_sinks))


def _record(graph: Graph) -> None:
    """Tell all sinks of the questions in a graph; never raises."""
    shapes = []
    try:
        registry = default_registry()
        readers = [entry.site.capture for entry in registry.sites if entry.site and entry.site.capture]
    except Exception as error:
        logger.warning("nothing is captured: %s", describe(error))
        return
    for node in graph.nodes:
        for reader in readers if node.op == "call_function" else ():
            try:
                shapes += _read(registry, reader, node)
            except Exception as error:  # a size of which nothing is known, or a broken plugin
                logger.warning("%s is not captured: %s", node, describe(error))
    for sink in list(_sinks):
        try:
            sink(shapes)
        except Exception as error:
            logger.warning("captured shapes are not kept: %s: %s", type(error).__name__, error)


def _read(registry: Registry, reader: Reader, node: Node) -> list[Shape]:
    from autoheur.inductor.asking import operand

    found = reader(node)
    if found is None:
        return []
    tensors, question = found
    operands = [operand(tensor) for tensor in tensors]
    return [Shape.of(question.operator, registry.extract(question.operator, operands, question.flags))]
