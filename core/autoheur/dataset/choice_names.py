"""What the names of choices say: ``type=triton_BLOCK-M=64_BLOCK-K=32`` is of kind ``type=triton``, BLOCK_M is 64.

For operators whose plugin is not installed, or does not describe choices by features of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from autoheur.types import Feature, Value

KIND = "kind"
"""The category that is left of a name without its numbers; underscores follow where a number is called so too."""


def parts(name: str) -> tuple[str, dict[str, int | float]]:
    """Take a name apart: what is left without its ``key=number`` parts, and these numbers.

    Parts are joined by ``_``; a value holds none. Keys become identifiers, which formulas can use: ``BLOCK-M`` is
    ``BLOCK_M``. A name that has no such parts, or one key twice, is left whole.
    """
    key, *rest = name.split("=")
    words: list[str] = []
    numbers: dict[str, int | float] = {}
    for position, piece in enumerate(rest):
        value, _, following = (piece, "", "") if position == len(rest) - 1 else piece.partition("_")
        identifier = re.sub(r"\W|^(?=\d)", "_", key)
        number = _number(value)
        if identifier in numbers or not key or (not following and position < len(rest) - 1):
            return name, {}
        if number is None:
            words.append(f"{key}={value}")
        else:
            numbers[identifier] = number
        key = following
    return ("_".join(words) if rest else name), numbers


def _number(text: str) -> int | float | None:
    if re.fullmatch(r"-?[0-9]{1,15}", text):
        return int(text)
    if re.fullmatch(r"-?[0-9]+\.[0-9]+(e[+-]?[0-9]+)?", text) and math.isfinite(float(text)):
        return float(text)
    return None


def features_of(names: Iterable[str], taken: Iterable[str] = ()) -> tuple[Feature, ...]:
    """The features that the names of some choices show, or none where no name holds a number.

    First the kind, then the numbers in order of their first appearance. ``taken`` are names of other features: what
    would be called like one of them gets an underscore.
    """
    found = [parts(name)[1] for name in names]
    whole: dict[str, bool] = {}
    for numbers in found:
        for key, number in numbers.items():
            whole[key] = whole.get(key, True) and isinstance(number, int)
    if not whole:
        return ()
    used = set(taken)

    def free(name: str) -> str:
        while name in used:
            name += "_"
        used.add(name)
        return name

    numerical = tuple(Feature(free(key), integer=integer, of="choice") for key, integer in whole.items())
    return (Feature(free(KIND), "categorical", of="choice"), *numerical)


def values(name: str, features: Sequence[Feature]) -> Mapping[str, Value]:
    """What a name says of such features; a number that it does not hold is 0."""
    kind, numbers = parts(name)
    return {
        feature.name: kind
        if feature.kind == "categorical"
        else numbers.get(feature.name, numbers.get(feature.name.rstrip("_"), 0))
        for feature in features
    }


def tells(name: str, feature: Feature) -> bool:
    """Whether a name holds such a feature: this number or, for the :data:`KIND`, any number."""
    _, numbers = parts(name)
    if feature.kind == "categorical":
        return feature.name.rstrip("_") == KIND and bool(numbers)
    return feature.name in numbers or feature.name.rstrip("_") in numbers
