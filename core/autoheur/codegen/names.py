"""Names that come from data, made safe: as string literals, as identifiers, as comments."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")
_LONGEST = 40


def literal(text: str) -> str:
    """A Python string literal, ASCII only, quoted as formatters quote: double unless that needs more escapes."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    # Escapes backslashes, control characters, and everything outside ASCII (lone surrogates too).
    body = text.encode("unicode_escape", "surrogatepass").decode("ascii").replace(quote, "\\" + quote)
    return f"{quote}{body}{quote}"


def number(value: float) -> str:
    """A number as a literal that reads back exactly, spelt as formatters spell it (``1e16``, not ``1e+16``)."""
    if value != value or value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    return repr(value).replace("e+", "e")


def comment(text: str) -> str:
    """Text for the inside of a comment: one line, ASCII, of bounded length."""
    flat = " ".join(text.split()).encode("unicode_escape", "surrogatepass").decode("ascii")
    return flat if len(flat) <= 100 else flat[:97] + "..."


class Identifiers:
    """Hands out identifiers: each valid, ASCII, used once, and never one that Python or the target already uses."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken = {*dir(builtins), *keyword.kwlist, *keyword.softkwlist, *reserved}

    def take(self, name: str, prefix: str = "v_") -> str:
        """The name itself where it is an ordinary identifier and free, else one made from it."""
        if _PLAIN.fullmatch(name) and name not in self._taken:
            identifier = name
        else:
            stem = prefix + re.sub(r"[^A-Za-z0-9]+", "_", name)[:_LONGEST].strip("_")
            identifier, count = stem, 1
            while identifier in self._taken:
                count += 1
                identifier = f"{stem}_{count}"
        self._taken.add(identifier)
        return identifier

    def take_class(self, name: str) -> str:
        """A class name in capitalised words."""
        words = re.findall(r"[A-Za-z0-9]+", name[:200])
        stem = "".join(word[0].upper() + word[1:] for word in words)[: 2 * _LONGEST]
        if not stem or stem[0].isdigit():
            stem = "Heuristic" + stem
        elif stem in self._taken:
            stem += "Heuristic"
        return self.take(stem, prefix="Heuristic")
