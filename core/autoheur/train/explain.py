"""Why a heuristic decides one problem as it does: the way through its trees, and what was measured near by."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from autoheur import formula as formulas
from autoheur.codegen import compile_artifact
from autoheur.dataset.columns import Columns, evaluate
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.statistics import statistics
from autoheur.errors import FormulaError, InputError
from autoheur.heuristic.artifact import Artifact, Seen
from autoheur.heuristic.model import Forest, Input, Tree
from autoheur.learning import Floats
from autoheur.types import Feature, Problem, Value, check_names


@attrs.frozen
class FeatureValue:
    """The value that a problem has for a feature: ``None`` for a derived one that cannot be computed.

    ``seen`` is what training saw of a raw feature, where the artifact says it, and ``inside`` whether the value is in
    it.
    """

    feature: Feature
    value: Value | None
    seen: Seen | None
    inside: bool | None


@attrs.frozen
class Condition:
    """What one node of a tree asks: whether ``value`` is at most ``limit`` where that is a number, or is it."""

    feature: str
    value: Value
    limit: float | str
    holds: bool

    def __str__(self) -> str:
        if isinstance(self.limit, str):
            return f"{self.feature} {'is' if self.holds else 'is not'} {self.limit}"
        return f"{self.feature} {self.value:g} {'<=' if self.holds else '>'} {self.limit:g}"


@attrs.frozen
class Way:
    """The way through one tree to a leaf: of ``choice``, or of all choices where the tree scores all at once."""

    tree: int
    choice: str | None
    conditions: tuple[Condition, ...]
    outputs: tuple[float, ...]


@attrs.frozen
class Neighbour:
    """A measured problem. ``distance`` is 0 for the same problem, and grows by 1 per category that differs.

    ``times_ms`` are medians, without choices that failed; ``differences`` the raw features that are not those of the
    problem explained.
    """

    dataset: str
    distance: float
    differences: dict[str, Value]
    times_ms: dict[str, float]

    @property
    def best(self) -> str | None:
        return min(self.times_ms, key=self.times_ms.__getitem__, default=None)


@attrs.frozen
class Explanation:
    """One decision in full. ``scores`` and ``ways`` are empty where a derived feature cannot be computed; they are
    there also where precondition or guard keep the model from being asked."""

    choice: str | None
    reason: str
    confidence: float
    scores: dict[str, float]
    features: tuple[FeatureValue, ...]
    ways: tuple[Way, ...]
    neighbours: tuple[Neighbour, ...]

    @property
    def votes(self) -> dict[str, int]:
        """Choice -> trees that give it more than any other; trees between equals have no vote."""
        outputs: dict[int, dict[str, float]] = {}
        for way in self.ways:
            each = {way.choice: way.outputs[0]} if way.choice else dict(zip(self.scores, way.outputs, strict=True))
            outputs.setdefault(way.tree, {}).update(each)
        votes = dict.fromkeys(self.scores, 0)
        for each in outputs.values():
            best = max(each.values())
            winners = [choice for choice, output in each.items() if output == best]
            if len(winners) == 1:
                votes[winners[0]] += 1
        return votes

    @property
    def asked(self) -> dict[str, int]:
        """Feature -> how often it is asked about on the ways, the most often asked first."""
        counts = Counter(condition.feature for way in self.ways for condition in way.conditions)
        return dict(counts.most_common())


def explain(artifact: Artifact, problem: Problem, datasets: Sequence[Dataset] = (), count: int = 5) -> Explanation:
    """Explain the decision of one problem, with the ``count`` nearest problems that ``datasets`` hold.

    Raises:
        InputError: the problem's names are not the artifact's raw features, a value is of the wrong kind, or a
            dataset is of another operator or lacks a feature.
    """
    names = [feature.name for feature in artifact.raw_features]
    difference = check_names(list(problem), names)
    if difference:
        raise InputError(f"{artifact.operator}: {difference}")
    compiled = compile_artifact(artifact)
    choice, reason, confidence = compiled.decide(problem)
    values = _values(artifact, problem)
    known = all(value is not None for value in values.values())
    return Explanation(
        choice=choice,
        reason=reason,
        confidence=confidence,
        scores=dict(zip(artifact.choices, compiled.scores(problem), strict=True)) if known else {},
        features=tuple(_feature_value(artifact, feature, values[feature.name]) for feature in artifact.features),
        ways=tuple(_ways(artifact, values)) if known else (),
        neighbours=tuple(_nearest(artifact, problem, datasets, count)),
    )


def _values(artifact: Artifact, problem: Problem) -> dict[str, Value | None]:
    """The values of all features of the artifact, ``None`` for what cannot be computed."""
    raw: Columns = {
        feature.name: np.array([float(problem[feature.name])])
        if feature.kind == "numerical"
        else np.array([str(problem[feature.name])], object)
        for feature in artifact.raw_features
    }
    values: dict[str, Value | None] = {}
    for feature in artifact.features:
        if feature.formula is None:
            values[feature.name] = raw[feature.name].tolist()[0]
            continue
        try:
            [value] = evaluate(formulas.parse(feature.formula), raw).tolist()
        except FormulaError:
            value = None
        values[feature.name] = str(value) if feature.kind == "categorical" and value is not None else value
    return values


def _feature_value(artifact: Artifact, feature: Feature, value: Value | None) -> FeatureValue:
    seen = artifact.seen.get(feature.name)
    if seen is None or value is None:
        return FeatureValue(feature, value, seen, None)
    if seen.categories is not None:
        return FeatureValue(feature, value, seen, value in seen.categories)
    low = -math.inf if seen.low is None else seen.low
    high = math.inf if seen.high is None else seen.high
    return FeatureValue(feature, value, seen, low <= float(value) <= high)


def _ways(artifact: Artifact, values: dict[str, Value | None]) -> Iterator[Way]:
    forest = artifact.model
    for number, tree in enumerate(forest.trees):
        if forest.layout == "vector":
            yield _way(forest, tree, number, values, None)
        else:
            yield from (_way(forest, tree, number, values, choice) for choice in artifact.choices)


def _way(forest: Forest, tree: Tree, number: int, values: dict[str, Value | None], choice: str | None) -> Way:
    conditions = []
    node = 0
    while tree.feature[node] >= 0:
        column, threshold = forest.inputs[tree.feature[node]], tree.threshold[node]
        number_in = _input(column, values, choice)
        rounded = float(np.float32(number_in)) if forest.precision == "float32" else number_in
        left = rounded <= threshold
        if column.feature is not None:
            value = values[column.feature]
            assert value is not None, "there are no ways without all values"
            if column.category is None:
                conditions.append(Condition(column.feature, value, threshold, left))
            else:
                conditions.append(Condition(column.feature, value, column.category, not left))
        node = tree.left[node] if left else tree.right[node]
    return Way(number, choice, tuple(conditions), tuple(tree.value[node]))


def _input(column: Input, values: dict[str, Value | None], choice: str | None) -> float:
    if column.choice is not None:
        return float(column.choice == choice)
    value = values[str(column.feature)]
    return float(value == column.category) if column.category is not None else float(value or 0.0)


def _nearest(artifact: Artifact, problem: Problem, datasets: Sequence[Dataset], count: int) -> list[Neighbour]:
    found: list[Neighbour] = []
    for dataset in datasets:
        if dataset.operator != artifact.operator:
            raise InputError(f"{dataset.name}: measurements of {dataset.operator!r}, not of {artifact.operator!r}")
        missing = [feature.name for feature in artifact.raw_features if feature.name not in dataset.problems.columns]
        if missing:
            raise InputError(f"{dataset.name}: no feature {missing[0]!r}")
        distances = _distances(artifact, problem, dataset)
        medians = statistics(dataset).median_ms
        for row in np.argsort(distances, kind="stable")[:count]:
            times = zip(dataset.choices, medians[row].tolist(), strict=True)
            measured = dataset.problems.row(int(row), named=True)
            differences = {
                feature.name: measured[feature.name]
                for feature in artifact.raw_features
                if not _same(feature, measured[feature.name], problem[feature.name])
            }
            medians_ms = {choice: time_ms for choice, time_ms in times if math.isfinite(time_ms)}
            found.append(Neighbour(dataset.name, float(distances[row]), differences, medians_ms))
    return sorted(found, key=lambda neighbour: neighbour.distance)[:count]


def _same(feature: Feature, one: Value, other: Value) -> bool:
    return float(one) == float(other) if feature.kind == "numerical" else str(one) == str(other)


def _distances(artifact: Artifact, problem: Problem, dataset: Dataset) -> Floats:
    """How far each problem of a dataset is away: the root mean square over numerical features, in standard deviations
    of their logarithms, and 1 more per category that differs."""
    squares = []
    different = np.zeros(len(dataset.problems))
    for feature in artifact.raw_features:
        column = dataset.problems.get_column(feature.name).to_numpy()
        if feature.kind == "categorical":
            different += column.astype(str) != str(problem[feature.name])
            continue
        logs, here = (_signed_log(np.asarray(each, np.float64)) for each in (column, float(problem[feature.name])))
        scale = float(logs.std()) or 1.0
        squares.append(((logs - here) / scale) ** 2)
    distances: Floats = different + (np.sqrt(np.mean(squares, axis=0)) if squares else 0.0)
    return distances


def _signed_log(values: Floats) -> Floats:
    logs: Floats = np.sign(values) * np.log2(1 + np.abs(values))
    return logs
