"""What the tests of generated code share: the reference interpreter, and exporters for scikit-learn."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from autoheur.heuristic import reference
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.model import Forest, Input, Tree
from autoheur.types import Value

Derived = Mapping[str, Callable[[Mapping[str, Value]], Value]]


class Reference:
    """The reference interpreter, asked about one problem."""

    @staticmethod
    def scores(
        artifact: Artifact,
        problem: Mapping[str, Value],
        derived: Derived | None = None,
        offered: Mapping[str, Mapping[str, Value]] | None = None,
    ) -> tuple[float, ...]:
        """The scores of what is offered; ``derived`` computes derived features from those of problem and choice."""
        offered = artifact.table() if offered is None else offered
        forest = artifact.model
        own = [c for c in forest.inputs if c.choice is None and not artifact.belongs_to_choice(c.feature)]
        pair = [c for c in forest.inputs if c.choice is None and artifact.belongs_to_choice(c.feature)]

        def row(columns: Sequence[Input], raw: Mapping[str, Value]) -> list[float]:
            values = {**raw, **{name: compute(raw) for name, compute in (derived or {}).items() if _in(columns, name)}}
            read = [(values[str(column.feature)], column.category) for column in columns]
            return [float(value) if category is None else str(value) == category for value, category in read]

        questions = reference.Questions(
            own,
            np.array([row(own, problem)], np.float64).reshape(1, -1),
            list(offered),
            np.ones((1, len(offered)), bool),
            pair,
            np.array([row(pair, {**problem, **features}) for features in offered.values()], np.float64),
        )
        return tuple(reference.score(forest, questions, artifact.choices)[0].tolist())

    @staticmethod
    def shortlist(
        artifact: Artifact, names: Sequence[str], scores: Sequence[float]
    ) -> tuple[tuple[str, ...], str, float]:
        """What the policy leaves of some names with scores, NaN for none: as generated code says it."""
        found = reference.shortlists(
            np.array([scores]), np.ones((1, len(names)), bool), artifact.model.statistic, artifact.policy.threshold
        )
        left = tuple(names[position] for position in found.order[0] if found.kept[0, position])
        reason = "decided" if len(left) == 1 else "below_threshold" if len(left) == len(names) else "shortlisted"
        several = len(names) > 1 and found.scored[0].sum() > 1
        return left, reason, float(found.confidence[0]) if several else 0.0


def _in(columns: Sequence[Input], name: str) -> bool:
    return any(column.feature == name for column in columns)


class Export:
    """Fitted scikit-learn models as forests."""

    @staticmethod
    def tree(estimator: Any, normalise: bool = False) -> Tree:
        """A single decision tree; ``normalise`` for a classifier, whose outputs are class probabilities."""
        tree = estimator.tree_
        values = tree.value[:, 0, :] if normalise else tree.value[:, :, 0]
        if normalise:
            values = values / values.sum(axis=1, keepdims=True)
        leaf = tree.children_left == -1
        return Tree(
            feature=[-1 if is_leaf else int(f) for is_leaf, f in zip(leaf, tree.feature, strict=True)],
            threshold=[float(t) for t in tree.threshold],
            left=[int(c) for c in tree.children_left],
            right=[int(c) for c in tree.children_right],
            value=[[float(v) for v in row] for row in values],
        )

    @staticmethod
    def boosted(estimator: Any, inputs: Sequence[Input]) -> Forest:
        """A histogram gradient boosting regressor with one output."""
        trees = []
        for (predictor,) in estimator._predictors:
            nodes = predictor.nodes
            trees.append(
                Tree(
                    feature=[-1 if n["is_leaf"] else int(n["feature_idx"]) for n in nodes],
                    threshold=[float(n["num_threshold"]) for n in nodes],
                    left=[int(n["left"]) for n in nodes],
                    right=[int(n["right"]) for n in nodes],
                    value=[[float(n["value"])] for n in nodes],
                )
            )
        return Forest(list(inputs), [float(estimator._baseline_prediction[0, 0])], trees, "row", "float64")


def around(threshold: float) -> list[float]:
    """A threshold, and the float64 and float32 numbers next to it and between them."""
    with np.errstate(over="ignore"):
        single = np.float32(threshold)
        neighbours = [np.nextafter(single, np.float32(side)) for side in (-np.inf, np.inf)]
    near = [float(threshold), float(single), *map(float, neighbours)]
    near += [(float(single) + float(neighbour)) / 2 for neighbour in neighbours]
    near = [value for value in near if math.isfinite(value)]
    return [shifted for v in near for shifted in (math.nextafter(v, -math.inf), v, math.nextafter(v, math.inf))]


def formatted(source: str, width: int = 120) -> str:
    """The source as the formatter leaves it."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", str(width), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="session", name="reference")
def reference_of_one() -> type[Reference]:
    return Reference


@pytest.fixture(scope="session")
def export() -> type[Export]:
    return Export


@pytest.fixture(scope="session")
def values_around() -> Callable[[float], list[float]]:
    return around


@pytest.fixture(scope="session")
def format_source() -> Callable[[str], str]:
    return formatted
