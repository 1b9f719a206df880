"""Collects distinct problems from blocks of rows, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import polars as pl
from numpy.typing import NDArray

from autoheur.types import Feature

Indices = NDArray[np.uint32]

_MERGE_AT_LEAST = 500_000


class ProblemTable:
    """Numbers distinct problems in order of first appearance.

    Each block brings its own distinct problems. Merging them into the table costs time in proportion to the table, so
    blocks are gathered until they are as large as it: cost stays linear, and memory at most twice what is needed.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._table: pl.DataFrame | None = None
        self._waiting: list[pl.DataFrame] = []
        self._ids: list[Indices] = []
        self._merged_ids = 0

    def add(self, problems: pl.DataFrame, ids: Indices) -> None:
        """Add a block: ``problems`` (distinct or not, a column per feature) and each row's position in them."""
        known = 0 if self._table is None else len(self._table)
        before = known + sum(map(len, self._waiting))
        self._waiting.append(problems.rename(dict(zip(problems.columns, self._names, strict=True))))
        self._ids.append(ids + np.uint32(before))
        if before + len(problems) - known > max(known, _MERGE_AT_LEAST):
            self._merge()

    def finish(self) -> tuple[pl.DataFrame, list[Indices]]:
        """The distinct problems, and per block each row's number in them."""
        self._merge()
        assert self._table is not None, "no block was added"
        return self._table, self._ids

    def _merge(self) -> None:
        if not self._waiting:
            return
        frames = self._waiting if self._table is None else [self._table, *self._waiting]
        self._waiting = []
        # Relaxed: a block of whole numbers and one with fractions make a column of fractions.
        together = pl.concat(frames, how="vertical_relaxed")
        del frames
        self._table, positions = distinct_rows(together)
        for block in range(self._merged_ids, len(self._ids)):
            self._ids[block] = positions[self._ids[block]]
        self._merged_ids = len(self._ids)


def distinct_rows(frame: pl.DataFrame) -> tuple[pl.DataFrame, Indices]:
    """The distinct rows in order of first appearance, and each row's position in them."""
    # By position, since polars takes some names (``*``, ``^…$``) for patterns.
    columns = [f"c{position}" for position in range(frame.width)]
    named = frame.rename(dict(zip(frame.columns, columns, strict=True)))
    groups = named.with_row_index("row").group_by(columns, maintain_order=True).agg(pl.col("row"))
    members = groups.get_column("row")
    positions = np.empty(len(frame), np.uint32)
    numbers = np.arange(len(groups), dtype=np.uint32)
    positions[members.explode().to_numpy()] = np.repeat(numbers, members.list.len().to_numpy())
    return groups.drop("row").rename(dict(zip(columns, frame.columns, strict=True))), positions


def distinct_values(column: pl.Series) -> tuple[pl.Series, Indices]:
    """The distinct values of a column in order of first appearance, and each row's position in them."""
    runs = column.rle()  # logs come in runs of one problem: most of the work is done here
    values, positions = distinct_rows(pl.DataFrame({"value": runs.struct.field("value")}))
    return values.get_column("value"), np.repeat(positions, runs.struct.field("len").to_numpy())


def with_integers(features: Sequence[Feature], problems: pl.DataFrame) -> tuple[Feature, ...]:
    """The features with ``integer`` as the columns' types say."""
    pairs = zip(features, problems.dtypes, strict=True)
    return tuple(attrs.evolve(feature, integer=dtype == pl.Int64) for feature, dtype in pairs)
