"""Lays out Python source the way formatters do, so that generated files stay as they are when formatted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

WIDTH = 120
"""Columns. A line that cannot be broken and is longer is marked ``# fmt: skip``."""

_INDENT = "    "


class Writer:
    """Collects lines at the current indentation."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._verbatim = False

    def line(self, text: str = "") -> None:
        """One line; empty text is a blank line."""
        if not text:
            self._lines.append("")
            return
        indented = _INDENT * self._depth + text
        if len(indented) > WIDTH and not self._verbatim and not text.startswith("#"):
            indented += "  # fmt: skip"
        self._lines.append(indented)

    @contextmanager
    def body(self) -> Iterator[None]:
        """The body of a compound statement whose header is written."""
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """A compound statement: its header now, its body inside the ``with``."""
        self.line(header)
        with self.body():
            yield

    @contextmanager
    def verbatim(self) -> Iterator[None]:
        """Lines of any length that formatters leave alone."""
        self.line("# fmt: off")
        self._verbatim = True
        yield
        self._verbatim = False
        self.line("# fmt: on")

    def bracketed(self, before: str, items: Sequence[str], after: str) -> None:
        """Items separated by commas between brackets: on one line, or one a line where that is too long.

        ``before`` ends with the opening bracket; ``after`` starts with the closing one.
        """
        comma = "," if len(items) == 1 and before.endswith("(") and not before[-2:-1].isalnum() else ""
        joined = f"{before}{', '.join(items)}{comma}{after}"
        if len(_INDENT) * self._depth + len(joined) <= WIDTH:
            self.line(joined)
            return
        self.line(before)
        self._depth += 1
        for item in items:
            self._lines.append(f"{_INDENT * self._depth}{item},")  # a long item cannot be broken: no mark needed
        self._depth -= 1
        self.line(after)

    def conjunction(self, before: str, items: Sequence[str], after: str) -> None:
        """Conditions joined by ``and`` between brackets: on one line, on one of their own, or one a line."""
        joined = f"{before}{' and '.join(items)}{after}"
        if len(items) == 1 or len(_INDENT) * self._depth + len(joined) <= WIDTH:
            self.line(joined)
            return
        self.line(before)
        self._depth += 1
        inside = " and ".join(items)
        if len(_INDENT) * self._depth + len(inside) <= WIDTH:
            self.line(inside)
        else:
            self.line(items[0])
            for item in items[1:]:
                self.line(f"and {item}")
        self._depth -= 1
        self.line(after)

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"
