"""Puts datasets of one operator together."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import polars as pl

from autoheur.dataset import choice_table
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.parts import PARTS, describe_parts
from autoheur.dataset.problem_table import ProblemTable, with_integers
from autoheur.dataset.summary import summarise
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint


def combine(
    datasets: Sequence[Dataset], allow_mixed_devices: bool = False, names: Sequence[str] | None = None
) -> Dataset:
    """Concatenate datasets: rows in order, problems that recur shared, the union of choices. Linear in rows.

    Operator, features (names and kinds) and, unless ``allow_mixed_devices``, device must agree; the order of features
    is the first's. A feature is ``integer`` if it is in all of them. The result has the metadata of the first, and an
    environment that lists where everything came from (see :mod:`autoheur.dataset.parts`); with mixed devices it also
    has the first's device, which the caller has to know. ``names`` is what messages call the datasets (default: their
    first sources).

    Raises:
        InputError: no dataset, or two that do not go together; the message names both and the difference.
    """
    device = common_device(datasets, allow_mixed_devices, names)
    if len(datasets) == 1:
        return datasets[0]
    first = datasets[0]
    features = [feature.name for feature in first.features]
    table = ProblemTable(features)
    choices: dict[str, int] = {}
    rows = []
    for dataset in datasets:
        table.add(_in_order(dataset, features), dataset.rows.get_column("problem").to_numpy())
        numbers = [choices.setdefault(choice, len(choices)) for choice in dataset.choices]
        choice = np.asarray(numbers, np.uint32)[dataset.rows.get_column("choice").to_numpy()]
        rows.append(dataset.rows.select(pl.lit(pl.Series(choice)).alias("choice"), pl.col("time_ms")))
    problems, ids = table.finish()
    together = pl.concat(rows).select(pl.lit(pl.Series(np.concatenate(ids))).alias("problem"), "choice", "time_ms")
    complete = all(dataset.sources for dataset in datasets)  # part of the sources would pass for all of them
    summaries = [dataset.summary for dataset in datasets]
    described = choice_table.union(datasets, names or [dataset.name for dataset in datasets])
    result = attrs.evolve(
        first,
        features=with_integers(first.features, problems),
        choices=tuple(choices),
        device=device,
        problems=problems,
        rows=together,
        sources=tuple(source for dataset in datasets for source in dataset.sources) if complete else (),
        sha256=tuple(digest for dataset in datasets for digest in dataset.sha256) if complete else (),
        summary=summarise(
            together,
            len(problems),
            len(choices),
            sum(summary.blank_lines for summary in summaries),
            sum(summary.malformed_lines for summary in summaries),
            tuple(message for summary in summaries for message in summary.skipped),
        ),
        environment={PARTS: [part for dataset in datasets for part in describe_parts(dataset)]},
    )
    if described is None:  # names of choices show other numbers here and there
        return choice_table.from_names(result)
    return attrs.evolve(result, choice_features=described[0], choice_table=described[1])


def common_device(
    datasets: Sequence[Dataset], allow_mixed_devices: bool = False, names: Sequence[str] | None = None
) -> Fingerprint:
    """The device that all datasets are of, after a check that they go together at all.

    Raises:
        InputError: see :func:`combine`.
    """
    if not datasets:
        raise InputError("no data: name at least one dataset or log")
    first = datasets[0]
    names = names or [dataset.name for dataset in datasets]
    device = first.device
    for dataset, name in zip(datasets[1:], names[1:], strict=True):
        common = device if allow_mixed_devices else _common_device(device, dataset.device)
        difference = _difference(first, dataset, common)
        if difference or common is None:
            raise InputError(f"{names[0]} and {name} do not go together: {difference}")
        device = common
    return device


def _difference(first: Dataset, other: Dataset, device: Fingerprint | None) -> str | None:
    if first.operator != other.operator:
        return f"operator {first.operator!r} and {other.operator!r}"
    ours = {feature.name: feature.kind for feature in first.features}
    theirs = {feature.name: feature.kind for feature in other.features}
    only_one = [name for name in (*ours, *theirs) if (name in ours) != (name in theirs)]
    if only_one:
        return f"only one of them has the feature {', '.join(only_one)}"
    for name, kind in ours.items():
        if kind != theirs[name]:
            return f"feature {name!r} is {kind} and {theirs[name]}"
    if device is None:
        return f"measured on different devices ({first.device.to_dict()} and {other.device.to_dict()})"
    return None


def _common_device(first: Fingerprint, second: Fingerprint) -> Fingerprint | None:
    """The device that both describe, as far as both do; ``None`` where they are different ones.

    A log knows less of its device than what autoheur measured itself, and may be combined with it.
    """
    if first == second:
        return first
    if first.kind is None or first.kind != second.kind:
        return None
    if first.mismatch(second) is None:
        return first
    return second if second.mismatch(first) is None else None


def _in_order(dataset: Dataset, names: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame([dataset.problems.get_column(name) for name in names])
