"""From datasets to examples: filter measurements, order problems, encode features as columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import polars as pl
from numpy.typing import NDArray

from autoheur.dataset import choice_table
from autoheur.dataset.columns import evaluate, feature_columns
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.statistics import statistics
from autoheur.errors import InputError
from autoheur.formula import parse
from autoheur.heuristic.artifact import of_choices
from autoheur.heuristic.model import Input
from autoheur.heuristic.reference import Questions
from autoheur.learning import Examples, Floats, Positions
from autoheur.train.noise import standard_errors
from autoheur.types import Feature

Columns = Mapping[str, NDArray[Any]]
"""Feature name -> one value per problem: float64 for numerical features, ``str`` objects for categorical ones."""

_LARGEST = float(np.finfo(np.float32).max)


@attrs.frozen
class Filter:
    """Which choices of a problem count: those with enough measurements that agree well enough.

    ``min_count`` is the least number of measurements, ``max_spread`` the greatest relative standard deviation (0.05
    is 5 %) of a choice. Failed choices never count, and neither do problems with fewer than two choices left.
    """

    min_count: int = 1
    max_spread: float = math.inf


PUBLISHED = Filter(min_count=3, max_spread=0.05)
"""What PyTorch's AutoHeuristic trains on."""

UNFILTERED = Filter()
"""Every choice that was measured, as AutoHeuristic takes further evaluation datasets."""


@attrs.frozen
class Dropped:
    """How many problems were left out and why; each is counted once, under the first reason that applies.

    ``total`` counts the problems in the data, before anything is left out.
    """

    total: int = 0
    single_choice: int = 0
    failed: int = 0
    few_measurements: int = 0
    noisy: int = 0
    undefined: int = 0

    @property
    def count(self) -> int:
        return self.single_choice + self.failed + self.few_measurements + self.noisy + self.undefined

    def describe(self, rule: Filter) -> str:
        """One clause per reason that occurred, such as ``2 have measurements of fewer than two choices``."""
        reasons = (
            (self.single_choice, "with measurements of fewer than two choices"),
            (self.failed, "with fewer than two choices that did not fail"),
            (self.few_measurements, f"with fewer than two choices measured at least {rule.min_count} times"),
            (self.noisy, f"with fewer than two choices whose measurements vary by at most {rule.max_spread:.0%}"),
            (self.undefined, "with a feature that is not a finite number"),
        )
        return ", ".join(f"{count:,} {reason}" for count, reason in reasons if count)


@attrs.frozen(eq=False)
class Selection:
    """The P problems of a dataset that pass a filter, sorted by their raw features: numerical, then categorical ones.

    ``keys`` holds those raw features in that order, under names of its own; ``columns`` all features that belong to a
    problem. ``choices`` are the C choices that count for at least one problem, sorted by name; ``choice_columns`` holds
    their raw features (one value per choice), and ``pair_features`` are the features that belong to a choice or to a
    problem and a choice together. ``times`` (P x C, median milliseconds) and ``noise`` (P x C, standard error of the
    logarithm of the median) are NaN where a choice does not count.
    """

    keys: pl.DataFrame
    columns: Columns
    choices: tuple[str, ...]
    choice_columns: Columns
    pair_features: tuple[Feature, ...]
    times: Floats
    noise: Floats
    dropped: Dropped

    def __len__(self) -> int:
        return len(self.times)

    def take(self, indices: Positions) -> Selection:
        """The problems at ``indices``, in that order."""
        return attrs.evolve(
            self,
            keys=self.keys[indices],
            columns={name: column[indices] for name, column in self.columns.items()},
            times=self.times[indices],
            noise=self.noise[indices],
        )

    def pair_columns(self) -> Columns:
        """The values of ``pair_features``: one per finite time, problem by problem.

        Raises:
            FormulaError: a formula cannot be computed for some pair; the message shows its values.
        """
        problem, choice = np.nonzero(np.isfinite(self.times))
        raw = {name: column[choice] for name, column in self.choice_columns.items()}
        read = {name for f in self.pair_features if f.formula is not None for name in parse(f.formula).names}
        raw |= {name: self.columns[name][problem] for name in read if name in self.columns}
        found: dict[str, NDArray[Any]] = {}
        for feature in self.pair_features:
            if feature.formula is None:
                found[feature.name] = raw[feature.name]
                continue
            values = evaluate(parse(feature.formula), raw)
            if feature.kind == "categorical":
                found[feature.name] = np.array(["False", "True"], object)[values.astype(np.intp)]
            else:
                found[feature.name] = values.astype(np.float64)
        return found

    def restrict(self, choices: Sequence[str]) -> Selection:
        """Only these choices, in this order (NaN where there is none here), and the problems left with two of them."""
        position = {choice: column for column, choice in enumerate(self.choices)}
        times, noise = np.full((2, len(self), len(choices)), np.nan)
        for column, choice in enumerate(choices):
            if choice in position:
                times[:, column] = self.times[:, position[choice]]
                noise[:, column] = self.noise[:, position[choice]]
        # Of a choice that is not here no value is ever looked at.
        place = [position.get(choice, 0) for choice in choices]
        restricted = attrs.evolve(
            self,
            choices=tuple(choices),
            choice_columns={name: column[place] for name, column in self.choice_columns.items()},
            times=times,
            noise=noise,
        )
        return restricted.take(np.flatnonzero(_has_two(np.isfinite(times))))

    def with_choices_first(self, choices: Sequence[str]) -> Selection:
        """All problems, with these choices first and in this order, then the others."""
        return self.restrict((*choices, *(choice for choice in self.choices if choice not in choices)))


def select(dataset: Dataset, features: Sequence[Feature], rule: Filter) -> Selection:
    """Apply a filter and put problems and choices in an order that does not depend on the order of the data.

    Raises:
        InputError: a raw feature of ``features`` is not in the data, or of another kind there; or all measurements
            are of one choice.
    """
    found = statistics(dataset)
    measured = found.count + found.failed > 0
    if measured.any(axis=0).sum() == 1:
        only = dataset.choices[int(measured.any(axis=0).argmax())]
        raise InputError(f"{dataset.name}: only one choice ({only}) was measured, so there is nothing to choose")
    of_pairs = of_choices(features)
    own = [feature for feature in features if feature.name not in of_pairs]
    columns = feature_columns(dataset, own)
    choice_columns = _choice_columns(dataset, features)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = found.std_ms / found.mean_ms
    works = (found.count > 0) & (found.failed == 0)
    often = works & (found.count >= rule.min_count)
    steady = often & ((spread * 100 <= rule.max_spread * 100) if math.isfinite(rule.max_spread) else True)
    finite = np.ones(len(spread), bool)
    for feature in own:
        if feature.kind == "numerical":
            finite &= np.abs(columns[feature.name]) <= _LARGEST

    stages = [_has_two(stage) for stage in (measured, works, often, steady)]
    stages.append(stages[-1] & finite)
    left = [len(spread), *(int(stage.sum()) for stage in stages)]
    dropped = Dropped(left[0], *(before - after for before, after in itertools.pairwise(left)))

    kept = np.flatnonzero(stages[-1])
    keys = _keys(dataset, own)[kept]
    sorting = sorted_order(keys)
    order = kept[sorting]
    by_name = sorted(range(len(dataset.choices)), key=lambda c: dataset.choices[c])
    chosen = np.array([c for c in by_name if steady[order, c].any()], np.intp)
    where = np.ix_(order, chosen)
    return Selection(
        keys=keys[sorting],
        columns={name: column[order] for name, column in columns.items()},
        choices=tuple(dataset.choices[c] for c in chosen),
        choice_columns={name: column[chosen] for name, column in choice_columns.items()},
        pair_features=tuple(feature for feature in features if feature.name in of_pairs),
        times=np.where(steady[where], found.median_ms[where], np.nan),
        noise=np.where(steady[where], standard_errors(dataset)[where], np.nan),
        dropped=dropped,
    )


def _choice_columns(dataset: Dataset, features: Sequence[Feature]) -> Columns:
    """The raw features of the dataset's choices, one value per choice."""
    columns: dict[str, NDArray[Any]] = {}
    for feature in features:
        if not feature.derived and feature.of == "choice":
            dtype = object if feature.kind == "categorical" else np.float64
            columns[feature.name] = np.array(choice_table.column(dataset, feature), dtype)
    return columns


def _keys(dataset: Dataset, features: Sequence[Feature]) -> pl.DataFrame:
    """The raw features, numerical ones first. Polars takes some names (``*``, ``^…$``) for patterns: number them."""
    names = [f.name for kind in ("numerical", "categorical") for f in features if f.kind == kind and not f.derived]
    return pl.DataFrame([dataset.problems.get_column(name).alias(f"k{i}") for i, name in enumerate(names)])


def sorted_order(keys: pl.DataFrame) -> NDArray[np.intp]:
    """The permutation that sorts rows by all columns, the first one first."""
    order = keys.with_row_index("row").sort(keys.columns, maintain_order=True)["row"]
    return order.to_numpy().astype(np.intp)


def _has_two(counts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    two: NDArray[np.bool_] = counts.sum(axis=1) >= 2
    return two


def matrix(columns: Columns, inputs: Iterable[Input], rows: int) -> Floats:
    """Evaluate inputs other than indicators of choices on so many rows: one column per input.

    A category that no indicator names gives a row of zeros.
    """
    evaluated = [
        columns[str(column.feature)]
        if column.category is None
        else (columns[str(column.feature)] == column.category).astype(np.float64)
        for column in inputs
    ]
    return np.column_stack(evaluated) if evaluated else np.empty((rows, 0))


@attrs.frozen(eq=False)
class Encoding:
    """The columns and choices that a model is trained on, fixed once so that further datasets get the same.

    Columns come in the published order: raw, then derived numerical features, each in declared order; then raw and
    derived categorical ones, with one indicator per category in order of its first appearance among the sorted
    problems. ``pair_inputs`` are those of choices, likewise; there are none where only names tell choices apart.
    Choices are those of all selections that models are fitted to.
    """

    inputs: tuple[Input, ...]
    pair_inputs: tuple[Input, ...]
    choices: tuple[str, ...]

    @staticmethod
    def of(selections: Sequence[Selection], features: Sequence[Feature]) -> Encoding:
        """Derive the encoding of all these problems together.

        Raises:
            FormulaError: see :meth:`Selection.pair_columns`.
        """
        order = sorted_order(pl.concat([selection.keys for selection in selections], how="vertical_relaxed"))
        choices = dict.fromkeys(choice for selection in selections for choice in selection.choices)
        pairs = {feature.name for feature in selections[0].pair_features}
        of_pairs = [selection.pair_columns() for selection in selections] if pairs else []

        def columns(feature: Feature) -> list[str]:
            if feature.name in pairs:
                return [value for found in of_pairs for value in found[feature.name].tolist()]
            joined: list[str] = np.concatenate([s.columns[feature.name] for s in selections])[order].tolist()
            return joined

        inputs: list[Input] = []
        pair_inputs: list[Input] = []
        for feature in sorted(features, key=lambda feature: (feature.kind != "numerical", feature.derived)):
            target = pair_inputs if feature.name in pairs else inputs
            if feature.kind == "numerical":
                target.append(Input(feature.name))
            else:
                target += (Input(feature.name, category) for category in dict.fromkeys(columns(feature)))
        return Encoding(tuple(inputs), tuple(pair_inputs), tuple(sorted(choices)))

    def examples(self, selection: Selection, tolerance: float) -> Examples:
        """Encode problems whose choices begin with those of the encoding (:meth:`Selection.with_choices_first`).

        Raises:
            FormulaError: see :meth:`Selection.pair_columns`.
        """
        pairs = None
        if self.pair_inputs:
            count = int(np.isfinite(selection.times).sum())
            pairs = matrix(selection.pair_columns(), self.pair_inputs, count)
        return Examples(
            self.inputs,
            selection.choices,
            matrix(selection.columns, self.inputs, len(selection)),
            selection.times,
            self.pair_inputs,
            pairs,
            selection.noise,
            tolerance=tolerance,
        )


def questions(examples: Examples) -> Questions:
    """What a forest is asked about these examples: every choice that counts, on every problem."""
    return Questions(
        examples.inputs,
        examples.matrix,
        examples.choices,
        np.isfinite(examples.times),
        examples.pair_inputs,
        examples.pairs,
    )


def require_problems(selection: Selection, rule: Filter, where: str) -> Selection:
    """Return ``selection`` unless it is empty.

    Raises:
        InputError: no problem is left; the message counts the reasons.
    """
    if len(selection):
        return selection
    if not selection.dropped.total:
        raise InputError(f"{where}: no measurements")
    raise InputError(
        f"{where}: no problem can be used; of {selection.dropped.total:,} problems there are "
        f"{selection.dropped.describe(rule)}"
    )
