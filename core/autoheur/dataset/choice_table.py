"""The table of choices beside the table of problems: one row per choice, one column per raw feature of choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import polars as pl

from autoheur.dataset import choice_names
from autoheur.dataset.dataset import PROBLEM_DTYPES, Dataset
from autoheur.errors import InputError
from autoheur.types import Feature, Value

CHOICE = "choice"
"""The column of names."""


def table(rows: Mapping[str, Mapping[str, Value]], features: Sequence[Feature]) -> pl.DataFrame:
    """The table of these choices (name -> raw features)."""
    schema = {CHOICE: pl.String} | {f.name: PROBLEM_DTYPES[f.kind, f.integer] for f in features}
    columns = {CHOICE: list(rows)} | {f.name: [values[f.name] for values in rows.values()] for f in features}
    return pl.DataFrame(columns, schema=schema)


def from_names(dataset: Dataset) -> Dataset:
    """The dataset with the features that the names of its choices show, where they hold numbers."""
    features = choice_names.features_of(dataset.choices, [feature.name for feature in dataset.features])
    return with_features(dataset, features, lambda name: choice_names.values(name, features))


def with_features(
    dataset: Dataset, features: Sequence[Feature], of_name: Callable[[str], Mapping[str, Value]]
) -> Dataset:
    """The dataset with these raw features of its choices; ``of_name`` gives the values for a name."""
    rows = {name: of_name(name) for name in dataset.choices} if features else {}
    return attrs.evolve(
        dataset,
        choice_features=tuple(features),
        choice_table=table(rows, features) if features else pl.DataFrame(),
    )


def features_of(datasets: Sequence[Dataset]) -> tuple[Feature, ...]:
    """The raw features of the choices of several datasets together; see :func:`union`."""
    described = union(datasets, [dataset.name for dataset in datasets])
    if described is not None:
        return described[0]
    names = dict.fromkeys(name for dataset in datasets for name in dataset.choices)
    return choice_names.features_of(names, [feature.name for feature in datasets[0].features])


def column(dataset: Dataset, feature: Feature) -> list[Value]:
    """The values of one raw feature, in the order of ``dataset.choices``; what is not in the table is in the names.

    Raises:
        InputError: neither holds the feature.
    """
    stored = {each.name: each.kind for each in dataset.choice_features}
    if stored.get(feature.name) == feature.kind:
        values: list[Value] = dataset.choice_table.get_column(feature.name).to_list()
        return values
    if feature.name in stored or not any(choice_names.tells(name, feature) for name in dataset.choices):
        known = ", ".join(f"{name} ({kind})" for name, kind in stored.items()) or "none"
        raise InputError(
            f"{dataset.name}: its choices have no {feature.kind} feature {feature.name!r} (there are: {known})"
        )
    return [choice_names.values(name, [feature])[feature.name] for name in dataset.choices]


def rows_of(dataset: Dataset) -> dict[str, dict[str, Value]]:
    """Name -> raw features, of the choices that are in the table."""
    if not dataset.choice_features:
        return {}
    return {row.pop(CHOICE): row for row in dataset.choice_table.to_dicts()}


def union(datasets: Sequence[Dataset], names: Sequence[str]) -> tuple[tuple[Feature, ...], pl.DataFrame] | None:
    """The features and the table of several datasets' choices; ``None`` where they have different features.

    ``names`` is what messages call the datasets.

    Raises:
        InputError: two datasets say something different of one choice.
    """
    kinds = [{feature.name: feature.kind for feature in dataset.choice_features} for dataset in datasets]
    if any(kind != kinds[0] for kind in kinds):
        return None
    features = tuple(
        attrs.evolve(
            feature,
            integer=all(other.integer for d in datasets for other in d.choice_features if other.name == feature.name),
        )
        for feature in datasets[0].choice_features
    )
    if not features:
        return (), pl.DataFrame()
    rows: dict[str, dict[str, Value]] = {}
    origin: dict[str, str] = {}
    for dataset, name in zip(datasets, names, strict=True):
        for choice, values in rows_of(dataset).items():
            if rows.setdefault(choice, values) != values:
                raise InputError(
                    f"{origin[choice]} and {name} do not go together: of the choice {choice!r} one says "
                    f"{_told(rows[choice])}, the other {_told(values)}"
                )
            origin.setdefault(choice, name)
    return features, table(rows, features)


def _told(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
