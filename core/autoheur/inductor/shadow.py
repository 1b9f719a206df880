"""What mode ``shadow`` found: how heuristics compare with Inductor's measurements on the user's own models."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

from autoheur.errors import InputError
from autoheur.inductor.observed import comparisons_folder


@attrs.define
class Tally:
    """The comparisons of one operator and heuristic; ``heuristic`` ``None``: none answers for the device.

    A *regret* is the time of the chosen alternative over that of the faster one, 1.0 for a right choice.
    ``saved_ms`` is the time that Inductor took for what the heuristic decided, less the time of deciding.
    """

    operator: str
    heuristic: str | None
    questions: int = 0
    decided: int = 0
    agreed: int = 0
    regrets: list[float] = attrs.field(factory=list)
    inductor_regrets: list[float] = attrs.field(factory=list)
    saved_ms: float = 0.0

    def add(self, row: dict[str, Any]) -> None:
        self.questions += 1
        choice, times = row["choice"], row["times_ms"]
        if choice is None:
            return
        self.decided += 1
        self.agreed += choice == row["inductor"]
        self.saved_ms += row["inductor_ms"] - row["decision_ms"]
        best = min(times.values(), default=0.0)
        if best > 0 and choice in times:
            self.regrets.append(times[choice] / best)
            self.inductor_regrets.append(times[row["inductor"]] / best)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; figures that cannot be computed are ``None``."""
        return {
            "operator": self.operator,
            "heuristic": self.heuristic,
            "questions": self.questions,
            "decided": self.decided,
            "unsure": self.questions - self.decided,
            "agreement": self.agreed / self.decided if self.decided else None,
            "measured": len(self.regrets),
            "regret_gmean": _geometric_mean(self.regrets),
            "regret_max": max(self.regrets, default=None),
            "inductor_regret_gmean": _geometric_mean(self.inductor_regrets),
            "saved_ms": self.saved_ms,
        }


@attrs.frozen
class Report:
    """All comparisons, per operator and heuristic; ``skipped`` counts lines that could not be read."""

    tallies: list[Tally]
    files: int
    skipped: int


def report(files: Sequence[Path] | None = None) -> Report:
    """Read the comparisons in ``files``, by default all that this user's processes have written.

    A line that breaks off (its process was killed) is counted and left out.

    Raises:
        InputError: a file cannot be read.
    """
    paths = sorted(comparisons_folder().glob("*.jsonl")) if files is None else list(files)
    tallies: dict[tuple[str, str | None], Tally] = {}
    skipped = 0
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise InputError(f"{path}: cannot read: {error.strerror or error}") from None
        for line in filter(None, lines):
            row = _parse(line)
            if row is None:
                skipped += 1
                continue
            key = (row["operator"], row["heuristic"])
            tallies.setdefault(key, Tally(*key)).add(row)
    ordered = sorted(tallies.values(), key=lambda tally: (tally.operator, tally.heuristic or ""))
    return Report(ordered, len(paths), skipped)


def _parse(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
        texts = [row[name] for name in ("operator", "inductor")]
        numbers = [row["inductor_ms"], row["decision_ms"], *row["times_ms"].values()]
        optional = [row["heuristic"], row["choice"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    usable = all(isinstance(text, str) for text in texts) and all(_is_number(number) for number in numbers)
    usable = usable and all(text is None or isinstance(text, str) for text in optional)
    complete = not row["times_ms"] or row["inductor"] in row["times_ms"]
    return row if usable and complete else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _geometric_mean(values: Iterable[float]) -> float | None:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else None
