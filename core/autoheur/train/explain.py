"""Why a heuristic decides one problem as it does: the paths through its trees, and what was measured near by."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np

from autoheur import formula as formulas
from autoheur.codegen import CompiledHeuristic, compile_artifact
from autoheur.dataset.columns import Columns, evaluate
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.statistics import statistics
from autoheur.errors import FormulaError, InputError
from autoheur.heuristic import reference
from autoheur.heuristic.artifact import Artifact, Seen
from autoheur.heuristic.model import Forest, Input, Tree
from autoheur.learning import Floats
from autoheur.types import Decision, Feature, Problem, Reason, Value, check_names


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
class DecisionPath:
    """The way through one tree to a leaf: of ``choice``, or of all choices where the tree scores all at once.

    ``outputs`` says what the leaf adds to the scores: choice -> output.
    """

    tree: int
    choice: str | None
    conditions: tuple[Condition, ...]
    outputs: dict[str, float]


@attrs.frozen
class OfferedChoice:
    """One of the choices, with those of its ``features`` that may differ between the choices of one problem.

    ``score`` is ``None`` where there is none: training never saw the choice and has no features for it, or one of them
    cannot be computed. ``kept`` says whether it is on the shortlist.
    """

    name: str
    score: float | None
    kept: bool
    features: tuple[FeatureValue, ...] = ()


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
    """One decision in full.

    ``choices`` are those offered, the best-scored first. Where a derived feature of the problem cannot be computed none
    has a score, and there are no ``paths``; both are there also where precondition or guard keep the model from being
    asked.
    """

    decision: Decision
    features: tuple[FeatureValue, ...]
    choices: tuple[OfferedChoice, ...]
    paths: tuple[DecisionPath, ...]
    neighbours: tuple[Neighbour, ...]

    @property
    def scores(self) -> dict[str, float]:
        """Choice -> score, of those that have one, the best first."""
        return {choice.name: choice.score for choice in self.choices if choice.score is not None}

    @property
    def votes(self) -> dict[str, int]:
        """Choice -> trees that give it more than any other; trees between equals have no vote."""
        outputs: dict[int, dict[str, float]] = {}
        for path in self.paths:
            outputs.setdefault(path.tree, {}).update(path.outputs)
        votes = dict.fromkeys(self.scores, 0)
        for each in outputs.values():
            best = max(each.values())
            winners = [choice for choice, output in each.items() if output == best]
            if len(winners) == 1 and winners[0] in votes:
                votes[winners[0]] += 1
        return votes

    @property
    def tested(self) -> dict[str, int]:
        """Feature -> how many conditions of the paths are about it, the most frequent first."""
        counts = Counter(condition.feature for path in self.paths for condition in path.conditions)
        return dict(counts.most_common())


Offered = Mapping[str, Mapping[str, Value]]
"""What is offered: names of choices with their raw features."""


def explain(
    artifact: Artifact,
    problem: Problem,
    datasets: Sequence[Dataset] = (),
    count: int = 5,
    offered: Offered | None = None,
) -> Explanation:
    """Explain the decision of one problem, with the ``count`` nearest problems that ``datasets`` hold.

    ``offered`` are the choices to decide between; by default those that training saw.

    Raises:
        InputError: the problem's names are not the artifact's raw features, a value is of the wrong kind, or a
            dataset is of another operator or lacks a feature.
    """
    names = [feature.name for feature in artifact.raw_features]
    difference = check_names(list(problem), names)
    if difference:
        raise InputError(f"{artifact.operator}: {difference}")
    if offered is None:
        offered = artifact.table()
    compiled = compile_artifact(artifact)
    if len(offered) > 1:
        shortlist, reason, confidence = compiled.shortlist(problem, offered)
    else:
        shortlist, reason, confidence = tuple(offered), Reason.ONLY_CHOICE, 0.0
    own = [feature for feature in artifact.features if not artifact.belongs_to_choice(feature.name)]
    varying = [feature for feature in artifact.features if artifact.belongs_to_choice(feature.name)]
    values = _values(own, problem)
    known = all(value is not None for value in values.values())
    pairs = {name: _values(varying, {**problem, **features}) for name, features in offered.items()}
    scores = _scores(compiled, artifact, problem, offered) if known else {}
    choices = [
        OfferedChoice(
            name,
            scores.get(name),
            name in shortlist,
            tuple(_feature_value(artifact, feature, pairs[name][feature.name]) for feature in varying),
        )
        for name in offered
    ]
    choices.sort(key=lambda choice: -math.inf if choice.score is None else choice.score, reverse=True)
    scored = {choice.name: values | pairs[choice.name] for choice in choices if choice.score is not None}
    return Explanation(
        decision=Decision(artifact.operator, shortlist, Reason(reason), confidence, artifact.name),
        features=tuple(_feature_value(artifact, feature, values[feature.name]) for feature in own),
        choices=tuple(choices),
        paths=tuple(_paths(artifact, values, scored)) if known else (),
        neighbours=tuple(_nearest(artifact, problem, datasets, count)),
    )


def _scores(compiled: CompiledHeuristic, artifact: Artifact, problem: Problem, offered: Offered) -> dict[str, float]:
    """The scores of the offered choices that have one."""
    if compiled.open:
        found = dict(zip(offered, compiled.scores(problem, offered), strict=True))
    else:
        found = dict(zip(artifact.choices, compiled.scores(problem), strict=True))
    return {name: score for name, score in found.items() if name in offered and not math.isnan(score)}


def _values(features: Sequence[Feature], raw: Mapping[str, Value]) -> dict[str, Value | None]:
    """The values of some features, ``None`` for what cannot be computed; ``raw`` holds the raw ones they need."""
    kinds = {feature.name: feature.kind for feature in features}
    columns: Columns = {
        name: np.array([str(value)], object)
        if kinds.get(name, "categorical" if isinstance(value, str) else "numerical") == "categorical"
        else np.array([float(value)])
        for name, value in raw.items()
    }
    values: dict[str, Value | None] = {}
    for feature in features:
        if feature.formula is None:
            values[feature.name] = columns[feature.name].tolist()[0] if feature.name in columns else None
            continue
        parsed = formulas.parse(feature.formula)
        try:
            [value] = evaluate(parsed, columns).tolist() if columns.keys() >= set(parsed.names) else [None]
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


def _paths(
    artifact: Artifact, values: Mapping[str, Value | None], scored: Mapping[str, Mapping[str, Value | None]]
) -> Iterator[DecisionPath]:
    """The paths through all trees; ``scored`` holds the values of all features for each choice that has a score."""
    forest = artifact.model
    ways: dict[str | None, Mapping[str, Value | None]] = {None: values}
    if forest.layout == "row":
        ways = dict(scored.items())
    rows = {choice: [_input(column, known, choice) for column in forest.inputs] for choice, known in ways.items()}
    for number, tree in enumerate(forest.trees):
        for choice, known in ways.items():
            nodes = list(reference.path(forest, tree, rows[choice]))
            leaf, _ = nodes.pop()
            outputs = zip(artifact.choices if choice is None else [choice], tree.value[leaf], strict=True)
            yield DecisionPath(number, choice, tuple(_conditions(forest, tree, nodes, known)), dict(outputs))


def _conditions(
    forest: Forest, tree: Tree, nodes: Sequence[tuple[int, bool]], values: Mapping[str, Value | None]
) -> Iterator[Condition]:
    for node, left in nodes:
        column = forest.inputs[tree.feature[node]]
        if column.feature is None:  # whether it is this choice; the path says of which it is
            continue
        value = values[column.feature]
        assert value is not None, "there are no paths without all values"
        if column.category is None:
            yield Condition(column.feature, value, tree.threshold[node], left)
        else:
            yield Condition(column.feature, value, column.category, not left)


def _input(column: Input, values: Mapping[str, Value | None], choice: str | None) -> float:
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
