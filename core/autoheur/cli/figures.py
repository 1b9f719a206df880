"""The figures of heuristics as tables of text, for the terminal and for reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from autoheur.cli.output import number

if TYPE_CHECKING:
    from autoheur.train.figures import Row

COLUMNS = (
    ("correct", "correct"),
    ("wrong", "wrong"),
    ("unsure", "unsure"),
    ("total", "total"),
    ("max_wrong_speedup", "max_wrong_speedup"),
    ("gmean_wrong_speedup", "gmean_wrong_speedup"),
    ("threshold", "threshold"),
    ("coverage", "coverage"),
    ("wrong_beyond_tolerance", "wrong_beyond_tol"),
    ("regret_gmean", "regret_gmean"),
    ("regret_max", "regret_max"),
)
"""Key of a row's JSON and header, in the order of the published table; then the practical figures."""


@attrs.frozen
class Table:
    """Lines of text under headers; all columns but the first are numbers."""

    headers: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


def decision_table(rows: Sequence[Row], first: str = "dataset", leave_out: Sequence[str] = ()) -> Table:
    """What was decided, one line per row; ``first`` is the header of the rows' names."""
    columns = [(key, header) for key, header in COLUMNS if key not in leave_out]
    lines = [(row.dataset, *(_cell(getattr(row, key)) for key, _ in columns)) for row in rows]
    return Table((first, *(header for _, header in columns)), tuple(lines))


def choice_tables(rows: Sequence[Row], first: str = "dataset") -> Iterator[Table]:
    """Shortlists and rankings, of rows with more than two choices; none where there is no such row."""
    many = [row for row in rows if row.recall_at is not None]
    if not many:
        return
    headers = (first, "shortlist_mean", "benchmarks_saved", "regret_shortlist_gmean", "regret_shortlist_max")
    lines = []
    for row in many:
        regret = row.regret_shortlist or {}
        figures = (row.shortlist_mean, row.benchmarks_saved, regret.get("gmean"), regret.get("max"))
        lines.append((row.dataset, *map(number, figures)))
    yield Table(headers, tuple(lines))
    ranked = [
        (row.dataset, str(k), f"{recall:.3f}", number(regret["gmean"]), number(regret["max"]))
        for row in many
        for (k, recall), regret in zip((row.recall_at or {}).items(), (row.regret_at or {}).values(), strict=True)
    ]
    yield Table((first, "top", "recall", "regret_gmean", "regret_max"), tuple(ranked))


def _cell(value: float | int | None) -> str:
    return str(value) if isinstance(value, int) else number(value)
