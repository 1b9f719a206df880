"""Datasets in Parquet.

One row per batch: a run of consecutive measurements of one choice on one problem. Columns: the raw features, ``choice``
(string) and ``times_ms`` (list of float64, ``inf`` for failed). Everything else is JSON in the file's key-value
metadata. Rows keep the recorded order, so that nothing is lost on the way from a log and back.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.io.plugins import register_io_source

from autoheur import fingerprint
from autoheur.dataset import choice_table
from autoheur.dataset.dataset import PROBLEM_DTYPES, ROW_DTYPES, Dataset
from autoheur.dataset.parts import check_parts
from autoheur.dataset.problem_table import ProblemTable, distinct_rows
from autoheur.dataset.summary import summarise
from autoheur.errors import InputError
from autoheur.files import replacing
from autoheur.types import Feature, Value

PARQUET_MAGIC = b"PAR1"
SCHEMA = "autoheur.dataset"
VERSION = 2
"""Version 1 had no table of choices."""

CHOICE = "choice"
TIMES = "times_ms"

_KEY = "autoheur"
_BATCHES = 200_000
"""Batches written or read at a time: some ten megabytes."""


def write_parquet(dataset: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset, whole or not at all, in bounded memory.

    Raises:
        InputError: a feature has the name of one of the other columns, or the file cannot be written.
    """
    reserved = [feature.name for feature in dataset.features if feature.name in (CHOICE, TIMES)]
    if reserved:
        raise InputError(f"{dataset.name}: a feature must not be called {reserved[0]!r}; the dataset format uses it")
    schema: dict[str, Any] = dict(dataset.problems.schema) | {CHOICE: pl.String, TIMES: pl.List(pl.Float64)}
    source = register_io_source(lambda *_: _batches(dataset), schema=schema)
    with replacing(path) as temporary:
        try:
            source.sink_parquet(temporary, metadata={_KEY: json.dumps(_describe(dataset))})
        except pl.exceptions.PolarsError as error:  # what polars makes of a full disk
            raise InputError(f"{path}: cannot write: {_first_line(error)}") from None


def _describe(dataset: Dataset) -> dict[str, Any]:
    sources = zip(dataset.sources, dataset.sha256, strict=True) if dataset.sha256 else ()
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "operator": dataset.operator,
        "features": [
            {"name": feature.name, "kind": feature.kind, "integer": feature.integer} for feature in dataset.features
        ],
        "choices": list(dataset.choices),
        "choice_features": [
            {"name": feature.name, "kind": feature.kind, "integer": feature.integer}
            for feature in dataset.choice_features
        ],
        "choice_table": {
            feature.name: dataset.choice_table.get_column(feature.name).to_list() for feature in dataset.choice_features
        },
        "device": dataset.device.to_dict(),
        "environment": dataset.environment,
        "metadata": dataset.metadata,
        # Not the folders: they mean nothing on another machine.
        "sources": [{"name": Path(name).name, "sha256": digest} for name, digest in sources],
    }


def _batches(dataset: Dataset) -> Iterator[pl.DataFrame]:
    """The rows of the file, some at a time."""
    problem = dataset.rows.get_column("problem").to_numpy()
    choice = dataset.rows.get_column("choice").to_numpy()
    times = dataset.rows.get_column("time_ms")
    changes = (problem[1:] != problem[:-1]) | (choice[1:] != choice[:-1])
    starts = np.concatenate((np.zeros(min(len(problem), 1), np.intp), np.flatnonzero(changes) + 1))
    choices = pl.Series(CHOICE, dataset.choices, pl.String)
    for low in range(0, len(starts), _BATCHES):
        first = starts[low : low + _BATCHES]
        end = int(starts[low + _BATCHES]) if low + _BATCHES < len(starts) else len(problem)
        lengths = np.diff(first, append=end)
        grouped = pl.DataFrame({"batch": np.repeat(np.arange(len(first)), lengths), TIMES: times[int(first[0]) : end]})
        lists = grouped.group_by("batch", maintain_order=True).agg(pl.col(TIMES)).get_column(TIMES)
        yield dataset.problems[problem[first]].with_columns(choices[choice[first]].alias(CHOICE), lists)


def read_parquet(path: str | os.PathLike[str]) -> Dataset:
    """Read a dataset in bounded memory.

    Raises:
        InputError: the file cannot be read, is not a dataset, was written by a newer autoheur, or its columns are
            not what its metadata says.
    """
    source = os.fspath(path)
    try:
        with Path(path).open("rb") as file:
            text = pl.read_parquet_metadata(file).get(_KEY)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        schema = pl.scan_parquet(source, glob=False).collect_schema()
    except OSError as error:
        raise InputError(f"{source}: cannot read: {error.strerror or error}") from None
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{source}: a damaged Parquet file ({_first_line(error)})") from None
    empty = _parse_description(source, text)
    _check_columns(source, empty, schema)
    try:
        problems, rows = _read_rows(source, empty)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{source}: a damaged Parquet file ({_first_line(error)})") from None
    dataset = attrs.evolve(
        empty,
        problems=problems,
        rows=rows,
        summary=summarise(rows, len(problems), len(empty.choices)),
        sources=empty.sources or (source,),
        sha256=empty.sha256 or (digest,),
    )
    try:
        check_parts(dataset)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _damaged(source, error) from None
    return dataset


def _parse_description(source: str, text: str | None) -> Dataset:
    """The dataset that the metadata describes, without its rows."""
    if text is None:
        raise InputError(f"{source}: a Parquet file, but not an autoheur dataset; write one with import or collect")
    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema {data['schema']!r}")
        if data["version"] not in (1, VERSION):
            raise InputError(
                f"{source}: dataset version {data['version']!r}, but this autoheur reads versions up to {VERSION}; "
                "use the autoheur that wrote it"
            )
        features = tuple(Feature(item["name"], item["kind"], integer=item["integer"]) for item in data["features"])
        _check_texts("operator", [data["operator"]])
        _check_texts("features", [feature.name for feature in features])
        _check_texts("choices", data["choices"])
        _check_texts("sources", [text for item in data["sources"] for text in (item["name"], item["sha256"])])
        choice_features, table = _choices(data) if data["version"] > 1 else ((), pl.DataFrame())
        dtypes = {feature.name: PROBLEM_DTYPES[feature.kind, feature.integer] for feature in features}
        return Dataset(
            operator=data["operator"],
            features=features,
            choices=tuple(data["choices"]),
            device=fingerprint.from_dict(data["device"]),
            metadata=dict(data["metadata"]),
            problems=pl.DataFrame(schema=dtypes),
            rows=pl.DataFrame(schema=ROW_DTYPES),
            sources=tuple(item["name"] for item in data["sources"]),
            sha256=tuple(item["sha256"] for item in data["sources"]),
            environment=dict(data["environment"]),
            choice_features=choice_features,
            choice_table=table,
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _damaged(source, error) from None


def _choices(data: dict[str, Any]) -> tuple[tuple[Feature, ...], pl.DataFrame]:
    """The features of choices and the table of their values.

    Raises:
        ValueError, TypeError, KeyError: they are not what was written.
    """
    features = tuple(
        Feature(item["name"], item["kind"], integer=item["integer"], of="choice") for item in data["choice_features"]
    )
    if not features:
        return (), pl.DataFrame()
    _check_texts("features of choices", [feature.name for feature in features])
    rows: dict[str, dict[str, Value]] = {choice: {} for choice in data["choices"]}
    for feature in features:
        for row, value in zip(rows.values(), data["choice_table"][feature.name], strict=True):
            if isinstance(value, str) != (feature.kind == "categorical"):
                raise ValueError(f"the choices' feature {feature.name} has the value {value!r}")
            row[feature.name] = value
    try:
        return features, choice_table.table(rows, features)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"choice_table: {_first_line(error)}") from None


def _damaged(source: str, error: Exception) -> InputError:
    return InputError(f"{source}: the dataset's metadata is damaged ({type(error).__name__}: {error})")


def _check_texts(what: str, texts: Any) -> None:
    """Hold names to what everybody relies on: a list, not empty except of sources, of distinct Unicode texts.

    Raises:
        ValueError: they are not.
    """
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{what} must be text")
    "".join(texts).encode()  # JSON can spell half of a surrogate pair
    if what != "sources" and (not texts or len(set(texts)) != len(texts)):
        raise ValueError(f"{what} must be there, each once")


def _check_columns(source: str, described: Dataset, schema: pl.Schema) -> None:
    expected: dict[str, Any] = dict(described.problems.schema) | {CHOICE: pl.String, TIMES: pl.List(pl.Float64)}
    for name, dtype in expected.items():
        if name not in schema:
            raise InputError(f"{source}: the column {name!r} is missing")
        if schema[name] != dtype:
            raise InputError(f"{source}: the column {name!r} has type {schema[name]}, not {dtype}")


def _read_rows(source: str, described: Dataset) -> tuple[pl.DataFrame, pl.DataFrame]:
    names = [feature.name for feature in described.features]
    numbers = {choice: number for number, choice in enumerate(described.choices)}
    table = ProblemTable(names)
    chosen: list[NDArray[np.uint32]] = []
    times: list[pl.Series] = []
    for frame in pl.scan_parquet(source, glob=False).collect_batches(chunk_size=_BATCHES, maintain_order=True):
        problems, positions = distinct_rows(pl.DataFrame([frame.get_column(name) for name in names]))
        lists, choice = frame.get_column(TIMES), frame.get_column(CHOICE)
        _check_values(source, problems, choice, lists, numbers)
        lengths = lists.list.len().to_numpy()
        codes = choice.replace_strict(numbers, return_dtype=pl.UInt32).to_numpy()
        table.add(problems, np.repeat(positions, lengths))
        chosen.append(np.repeat(codes, lengths))
        times.append(lists.explode())
    if not times:
        raise InputError(f"{source}: the dataset has no rows")
    problems, ids = table.finish()
    rows = pl.DataFrame({"problem": np.concatenate(ids), "choice": np.concatenate(chosen), "time_ms": pl.concat(times)})
    return problems, rows


def _check_values(
    source: str, problems: pl.DataFrame, choice: pl.Series, lists: pl.Series, numbers: dict[str, int]
) -> None:
    for column in (*problems.get_columns(), choice, lists):
        if column.null_count():
            raise InputError(f"{source}: the column {column.name!r} has empty values")
    unknown = choice.filter(~choice.is_in(list(numbers)))
    if len(unknown):
        raise InputError(f"{source}: choice {unknown[0]!r} is not among those that the dataset lists")
    times = lists.explode()
    if times.null_count() or times.is_nan().any() or not (times > 0).all():
        raise InputError(f"{source}: {TIMES} holds something that is not a time above zero")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
