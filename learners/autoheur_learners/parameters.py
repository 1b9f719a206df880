"""Checking the parameters of learners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autoheur.plugin import InputError

Rule = tuple[Callable[[Any], bool], str]
"""A test of a value, and in words what passes it."""


def check(learner: str, parameters: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Check names and values of a learner's parameters; those left out are fine.

    Raises:
        InputError: an unknown name, or a value that its rule refuses.
    """
    for name, value in parameters.items():
        if name not in rules:
            raise InputError(f"{learner}: no parameter {name!r} (there are: {', '.join(rules)})")
        accepts, words = rules[name]
        if not accepts(value):
            raise InputError(f"{learner}: {name} must be {words}, not {value!r}")


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def whole(least: int) -> Rule:
    """A whole number of at least ``least``."""
    return lambda value: _whole(value, least), f"a whole number of at least {least}"


def whole_or_none(least: int) -> Rule:
    """A whole number of at least ``least``, or ``None`` for no limit."""
    return lambda value: value is None or _whole(value, least), f"a whole number of at least {least}, or none"


def number(low: float, high: float, *, above: bool = False) -> Rule:
    """A number from ``low`` to ``high``; ``above`` leaves out ``low`` itself."""

    def accepts(value: Any) -> bool:
        return (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and (low < value if above else low <= value)
            and value <= high
        )

    return accepts, f"a number {'above' if above else 'from'} {low:g} {'up ' if above else ''}to {high:g}"


def either(word: str, rule: Rule) -> Rule:
    """This word, or what passes the rule."""
    accepts, words = rule
    return lambda value: value == word or accepts(value), f"{words}, or {word}"
