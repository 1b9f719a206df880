"""Writes a dataset as an AutoHeuristic text log."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from autoheur.dataset.autoheuristic_log.header import CHOICE, FEEDBACK
from autoheur.dataset.dataset import Dataset
from autoheur.errors import InputError
from autoheur.files import replacing

_ROWS = 200_000
_UNWRITABLE = r"[,\x00-\x08\x0a-\x1f]"
"""A log quotes nothing: a comma would be two fields. Control characters are refused on reading."""


def write_log(dataset: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset as a log, whole or not at all; packed where the name ends in ``.gz``.

    A log that was read and is written again has the same bytes, but for lines that reading skipped (and for ``nan``,
    written as ``inf``), as long as it was written by Python: ``json.dumps`` and ``str`` of numbers. A dataset that
    autoheur measured gets metadata as AutoHeuristic writes them.

    Raises:
        InputError: a name or category holds a comma or a control character, or the file cannot be written.
    """
    if Path(path).suffix == ".zip":
        raise InputError(f"{path}: a log is written as text or, with .gz, packed with gzip; not as zip")
    texts = _problem_texts(dataset)
    names = [feature.name for feature in dataset.features]
    _check(dataset, "feature", pl.Series(names))
    _check(dataset, "choice", pl.Series(dataset.choices, dtype=pl.String))
    header = ",".join((*names, CHOICE, FEEDBACK))
    with replacing(path) as temporary, temporary.open("wb") as raw:
        # No name, no date: the same dataset gives the same bytes.
        packed = gzip.GzipFile("", "wb", 6, raw, mtime=0) if Path(path).suffix == ".gz" else None
        file = packed or raw
        file.write(f"{json.dumps(log_metadata(dataset))}\n{header}\n".encode())
        for block in _row_blocks(dataset, texts):
            file.write(block)
        if packed is not None:
            packed.close()


def log_metadata(dataset: Dataset) -> dict[str, Any]:
    """The metadata line: the log's own where the dataset came from one, brought up to date if needed."""
    kinds = {
        f"{kind}_features": [feature.name for feature in dataset.features if feature.kind == kind]
        for kind in ("numerical", "categorical")
    }
    own = dataset.metadata
    if own.get("name") == dataset.operator and all(_same(own.get(key), names) for key, names in kinds.items()):
        if "choices" in own and not _same(own["choices"], dataset.choices):  # combined with other logs
            return own | {"choices": list(dataset.choices)}
        return own
    device = dataset.device
    capability = [int(part) for part in device.capability.split(".")] if device.capability else None
    return {
        "shared_memory": device.shared_memory,
        # What torch writes where there is no CUDA device.
        "device_capa": [0, 0] if device.kind == "cpu" else capability,
        "name": dataset.operator,
        **kinds,
        "choices": list(dataset.choices),
    }


def _same(listed: Any, names: Sequence[str]) -> bool:
    return isinstance(listed, list) and sorted(map(str, listed)) == sorted(names)


def _problem_texts(dataset: Dataset) -> pl.Series:
    """Per problem its features as a row has them."""
    columns = []
    for position, feature in enumerate(dataset.features):
        column = dataset.problems.get_column(feature.name)
        if column.dtype == pl.String:
            _check(dataset, f"category of {feature.name!r}", column)
        columns.append(_texts(column).alias(str(position)))
    return pl.DataFrame(columns).select(pl.concat_str(pl.all(), separator=",")).to_series()


def _row_blocks(dataset: Dataset, texts: pl.Series) -> Iterator[bytes]:
    choices = pl.Series(dataset.choices, dtype=pl.String)
    for rows in dataset.rows.iter_slices(_ROWS):
        columns = (
            texts.gather(rows.get_column("problem")).alias("problem"),
            choices.gather(rows.get_column("choice")).alias("choice"),
            _texts(rows.get_column("time_ms")),
        )
        lines = pl.DataFrame(columns).select(pl.concat_str(pl.all(), separator=",")).to_series()
        yield f"{lines.str.join(chr(10)).item()}\n".encode()


def _texts(column: pl.Series) -> pl.Series:
    """Numbers as Python writes them, which polars does differently."""
    if column.dtype == pl.Float64:
        return pl.Series(column.name, list(map(repr, column.to_list())), pl.String)
    return column.cast(pl.String)


def _check(dataset: Dataset, what: str, texts: pl.Series) -> None:
    unwritable = texts.filter(texts.str.contains(_UNWRITABLE))
    if len(unwritable):
        raise InputError(
            f"{dataset.name}: {what} {unwritable[0]!r} cannot be written to a log, which has no quoting; use Parquet"
        )
