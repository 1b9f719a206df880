"""The dataset in memory."""

from __future__ import annotations

from typing import Any

import attrs
import polars as pl

from autoheur.fingerprint import Fingerprint
from autoheur.types import Feature

PROBLEM_DTYPES = {("numerical", True): pl.Int64, ("numerical", False): pl.Float64, ("categorical", False): pl.String}
"""(feature kind, integer) -> polars type of the feature's column."""

ROW_DTYPES = {"problem": pl.UInt32, "choice": pl.UInt32, "time_ms": pl.Float64}
"""The columns of ``Dataset.rows``."""


@attrs.frozen
class Summary:
    """What reading found, for the one summary line.

    ``rows``, ``problems`` and ``choices`` are what is in the dataset. ``repeated_rows`` counts rows that equal an
    earlier one in problem, choice and time; they are kept, as blank and malformed lines are not. ``skipped`` holds
    one message per malformed line that was dropped (the first few), each with file and line number.
    """

    rows: int = 0
    problems: int = 0
    choices: int = 0
    blank_lines: int = 0
    repeated_rows: int = 0
    failed_measurements: int = 0
    single_choice_problems: int = 0
    malformed_lines: int = 0
    skipped: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line, for example ``35,143 rows, 5,821 problems, 2 choices; 0 blank lines, 12 repeated rows, …``."""
        found = ", ".join(
            (
                _counted(self.blank_lines, "blank line"),
                _counted(self.repeated_rows, "repeated row"),
                f"{self.failed_measurements:,} failed",
                f"{_counted(self.single_choice_problems, 'problem')} with one choice only",
                f"{_counted(self.malformed_lines, 'malformed line')}{' skipped' if self.malformed_lines else ''}",
            )
        )
        contents = (_counted(self.rows, "row"), _counted(self.problems, "problem"), _counted(self.choices, "choice"))
        where = ""
        if self.skipped:
            more = "; …" if self.malformed_lines > len(self.skipped) else ""
            where = f" ({'; '.join(self.skipped)}{more})"
        return f"{', '.join(contents)}; {found}{where}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@attrs.frozen(eq=False)
class Dataset:
    """Measurements of one operator on one device.

    ``features`` are the raw features in stored order. ``choices`` are in order of first appearance (or as the
    metadata lists them). ``problems`` has one row per distinct problem, in order of first appearance, one column per
    feature: Int64 or Float64 for numerical ones, String for categorical ones. ``rows`` has one row per measurement in
    recorded order: ``problem`` (UInt32, row number in ``problems``), ``choice`` (UInt32, position in ``choices``) and
    ``time_ms`` (Float64; ``inf`` where the choice failed). ``device`` is what the measurements hold for.
    ``metadata`` is the log's own JSON metadata, kept for export; empty for what autoheur measured itself.
    ``sources`` are the files that the rows came from and ``sha256`` the digests of their (unpacked) contents, in the
    same order. ``environment`` describes the measuring process where it is known: versions of torch and triton, clock
    state; plain JSON data. In a dataset put together from others it lists them, each with all of this; see
    :mod:`autoheur.dataset.parts`.
    """

    operator: str
    features: tuple[Feature, ...]
    choices: tuple[str, ...]
    device: Fingerprint
    metadata: dict[str, Any]
    problems: pl.DataFrame
    rows: pl.DataFrame
    sources: tuple[str, ...] = ()
    summary: Summary = Summary()
    sha256: tuple[str, ...] = ()
    environment: dict[str, Any] = attrs.field(factory=dict)
    choice_features: tuple[Feature, ...] = ()
    choice_table: pl.DataFrame = attrs.field(factory=pl.DataFrame)

    @property
    def name(self) -> str:
        """What to call this dataset in messages: its first source, or its operator."""
        return self.sources[0] if self.sources else f"measurements of {self.operator}"
