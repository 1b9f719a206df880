"""What the tests of generated code share: a slow reference for models and policies, and exporters for scikit-learn."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.types import Value

Derived = Mapping[str, Callable[[Mapping[str, Value]], Value]]


class Reference:
    """Does what the docstrings of Forest and Policy say, one node at a time."""

    @staticmethod
    def inputs(forest: Forest, values: Mapping[str, Value], choice: str | None) -> list[float]:
        row = []
        for column in forest.inputs:
            if column.choice is not None:
                row.append(1.0 if column.choice == choice else 0.0)
            elif column.category is not None:
                assert column.feature is not None
                row.append(1.0 if str(values[column.feature]) == column.category else 0.0)
            else:
                assert column.feature is not None
                row.append(float(values[column.feature]))
        return row

    @staticmethod
    def add_up(forest: Forest, row: Sequence[float]) -> list[float]:
        with np.errstate(over="ignore"):
            rounded = [np.dtype(forest.precision).type(value) for value in row]
        total = list(forest.base)
        for tree in forest.trees:
            node = 0
            while tree.feature[node] != -1:
                goes_left = bool(np.float64(rounded[tree.feature[node]]) <= np.float64(tree.threshold[node]))
                node = tree.left[node] if goes_left else tree.right[node]
            total = [old + new for old, new in zip(total, tree.value[node], strict=True)]
        return total

    @classmethod
    def scores(
        cls, artifact: Artifact, problem: Mapping[str, Value], derived: Derived | None = None
    ) -> tuple[float, ...]:
        values = {**problem, **{name: compute(problem) for name, compute in (derived or {}).items()}}
        forest = artifact.model
        if forest.layout == "vector":
            return tuple(cls.add_up(forest, cls.inputs(forest, values, None)))
        return tuple(cls.add_up(forest, cls.inputs(forest, values, choice))[0] for choice in artifact.choices)

    @staticmethod
    def decide(policy: Policy, choices: Sequence[str], scores: Sequence[float]) -> tuple[str | None, str, float]:
        first = max(range(len(scores)), key=lambda index: (scores[index], -index))
        best = scores[first]
        second = max(score for index, score in enumerate(scores) if index != first)
        if policy.statistic == "score":
            statistic = best
        elif policy.statistic == "difference":
            statistic = best - second
        elif second == 0:
            statistic = math.inf if best > 0 else math.nan
        else:
            statistic = best / second
        if statistic > policy.threshold:
            return choices[first], "decided", statistic
        return None, "below_threshold", statistic


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


@pytest.fixture(scope="session")
def reference() -> type[Reference]:
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
