"""Problems in the one form that is stored, compared and handed to benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autoheur.types import Feature, Problem, Value, check_names

Key = tuple[Value, ...]
"""A problem's raw feature values in stored order: int, float, or str for categories."""


def key_of(problem: Problem, features: Sequence[Feature]) -> Key:
    """The values of a problem, in the order of its raw ``features`` and in the types in which they are stored.

    Raises:
        ValueError: a feature is missing or unknown, or a value is not what the feature's kind says.
    """
    difference = check_names(tuple(problem), [feature.name for feature in features])
    if difference:
        raise ValueError(f"features {difference}")
    return tuple(_stored(feature, problem[feature.name]) for feature in features)


def _stored(feature: Feature, value: Value) -> Value:
    if feature.kind == "categorical":
        return str(value)
    try:
        number = float(value)
        if feature.integer and int(value) != number:
            raise ValueError
    except (ValueError, OverflowError):
        kind = "a whole number" if feature.integer else "a number"
        raise ValueError(f"{feature.name} must be {kind}, not {value!r}") from None
    return int(value) if feature.integer else number


def as_problem(key: Iterable[Value], features: Sequence[Feature]) -> dict[str, Value]:
    """The problem that has these stored values."""
    return {feature.name: value for feature, value in zip(features, key, strict=True)}
