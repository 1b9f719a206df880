"""Counts what is worth knowing about the rows of a dataset."""

from __future__ import annotations

import numpy as np
import polars as pl

from autoheur.dataset.dataset import Summary

_PART_ROWS = 2_000_000


def summarise(
    rows: pl.DataFrame,
    problems: int,
    choices: int,
    blank_lines: int = 0,
    malformed_lines: int = 0,
    skipped: tuple[str, ...] = (),
) -> Summary:
    """Count repeated rows, failures and problems with one choice only; ``rows`` as in :class:`Dataset`."""
    per_problem = rows.group_by("problem").agg(pl.col("choice").min().alias("low"), pl.col("choice").max().alias("high"))
    return Summary(
        rows=len(rows),
        problems=problems,
        choices=choices,
        blank_lines=blank_lines,
        repeated_rows=_repeated(rows),
        failed_measurements=int(rows.get_column("time_ms").is_infinite().sum()),
        single_choice_problems=int((per_problem.get_column("low") == per_problem.get_column("high")).sum()),
        malformed_lines=malformed_lines,
        skipped=skipped,
    )


def _repeated(rows: pl.DataFrame) -> int:
    """Rows equal to an earlier one. Equal rows fall into the same part, so parts can be counted one at a time."""
    parts = len(rows) // _PART_ROWS + 1
    distinct = 0
    # Problems come first in the mix, times second: both spread evenly, whichever of them varies.
    bits = pl.col("time_ms").reinterpret(signed=False)
    mixed = (pl.col("problem").cast(pl.UInt64) * 2654435761).xor(bits * 40503).xor(bits // 2**20)
    for part in range(parts):
        chosen = rows if parts == 1 else rows.filter(mixed % parts == part)
        distinct += len(chosen.unique()) if len(chosen) else 0
    return len(rows) - distinct
