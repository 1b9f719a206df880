"""Counts what is worth knowing about the rows of a dataset."""

from __future__ import annotations

import numpy as np
import polars as pl

from autoheur.dataset.dataset import Summary

_PART_ROWS = 2_000_000
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: multiplicative hashing


def summarise(
    rows: pl.DataFrame,
    problems: int,
    choices: int,
    blank_lines: int = 0,
    malformed_lines: int = 0,
    skipped: tuple[str, ...] = (),
) -> Summary:
    """Count repeated rows, failures and problems with one choice only; ``rows`` as in :class:`Dataset`."""
    choice = pl.col("choice")
    per_problem = rows.group_by("problem").agg(choice.min().alias("low"), choice.max().alias("high"))
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
    if parts == 1:
        return len(rows) - len(rows.unique())
    # Problem and time are mixed, so that parts are even whichever of them varies.
    mixed = rows.get_column("time_ms").to_numpy().view(np.uint64) ^ rows.get_column("problem").to_numpy()
    part = pl.Series(((mixed * _MULTIPLIER) >> np.uint64(40)) % np.uint64(parts))
    del mixed
    return len(rows) - sum(len(rows.filter(part == number).unique()) for number in range(parts))
