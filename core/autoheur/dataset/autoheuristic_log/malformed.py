"""Says what is wrong with one line of a log, and keeps count."""

from __future__ import annotations

import math

import attrs

from autoheur.dataset.autoheuristic_log.header import Layout
from autoheur.errors import InputError

_SHOWN = 5
"""Malformed lines that are described; the others are only counted."""

_QUOTED = 40
"""Characters of a field that a message repeats."""


@attrs.define
class MalformedLines:
    """Counts malformed lines and describes the first few; with ``strict`` the first one is an error."""

    source: str
    strict: bool = False
    count: int = 0
    shown: list[str] = attrs.field(factory=list)

    @property
    def describing(self) -> bool:
        """Whether the next one is still described."""
        return self.strict or len(self.shown) < _SHOWN

    def add(self, line: int, reason: str) -> None:
        """Record the line with this number.

        Raises:
            InputError: always, when ``strict``.
        """
        message = f"{self.source}:{line}: {reason}"
        if self.strict:
            raise InputError(message)
        if self.describing:
            self.shown.append(message)
        self.count += 1


def reason(layout: Layout, line: bytes) -> str:
    """Why ``line`` is not a row. Whole blocks are judged at once; this repeats the judgement for one line, in words."""
    control = next((byte for byte in line if byte < 32 and byte != 9), None)
    if control is not None:
        return f"control character 0x{control:02x}"
    try:
        fields = line.decode().split(",")
    except UnicodeDecodeError:
        return "not UTF-8"
    if len(fields) != layout.fields:
        return f"{layout.fields} fields expected, {len(fields)} found"
    *values, choice, time = fields
    for feature, value in zip(layout.features, values, strict=True):
        if feature.kind == "numerical" and not math.isfinite(_number(value)):
            return f"{feature.name} is {_quote(value)}, not a finite number"
    if not choice:
        return "the choice is missing"
    if layout.choices is not None and choice not in layout.choices:
        return f"choice {_quote(choice)} is not among those of the metadata ({', '.join(layout.choices)})"
    if not time:
        return "the feedback is missing"
    if _number(time) <= 0:
        return f"feedback {_quote(time)} is not a time above zero"
    return f"feedback {_quote(time)} is not a number"


def _number(text: str) -> float:
    try:
        return math.nan if "_" in text or text != text.strip() else float(text)
    except ValueError:
        return math.nan


def _quote(text: str) -> str:
    return repr(text if len(text) <= _QUOTED else text[:_QUOTED] + "…")
