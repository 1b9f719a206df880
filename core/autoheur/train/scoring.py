"""Evaluating a forest on many problems at once, bit for bit as scikit-learn and generated code do."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from autoheur.heuristic.model import Forest, Tree
from autoheur.train.learner import Floats

Matrix = NDArray[np.float32] | NDArray[np.float64]


@attrs.frozen(eq=False)
class _Arrays:
    """A tree for vectorised walks: leaves point at themselves, so that everything takes ``depth`` steps."""

    feature: NDArray[np.intp]
    threshold: Floats
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    value: Floats
    depth: int

    @staticmethod
    def of(tree: Tree, width: int) -> _Arrays:
        feature = np.asarray(tree.feature, np.intp)
        leaf = feature < 0
        itself = np.arange(len(feature))
        depth = [0] * len(feature)
        for node, inner in enumerate(~leaf):
            if inner:  # children come after their parent
                depth[tree.left[node]] = depth[tree.right[node]] = depth[node] + 1
        value = np.zeros((len(feature), width))
        value[leaf] = [tree.value[node] for node in np.flatnonzero(leaf)]
        return _Arrays(
            feature=np.where(leaf, 0, feature),
            threshold=np.asarray(tree.threshold, np.float64),
            left=np.where(leaf, itself, np.asarray(tree.left, np.intp)),
            right=np.where(leaf, itself, np.asarray(tree.right, np.intp)),
            value=value,
            depth=max(depth),
        )

    def outputs(self, flat: Matrix, starts: NDArray[np.intp]) -> Floats:
        """Leaf values, P x width; row p of the matrix starts at ``flat[starts[p]]``."""
        node = np.zeros(len(starts), np.intp)
        for _ in range(self.depth):
            goes_left = flat[starts + self.feature[node]] <= self.threshold[node]
            node = np.where(goes_left, self.left[node], self.right[node])
        leaves: Floats = self.value[node]
        return leaves


def score(forest: Forest, matrix: Floats, choices: tuple[str, ...]) -> Floats:
    """Score every choice on every problem: P x F in, P x C out.

    ``matrix`` holds the problem inputs of ``forest``, in their order, without choice indicators.
    """
    indicators = [position for position, column in enumerate(forest.inputs) if column.choice is not None]
    problem_inputs = [position for position, column in enumerate(forest.inputs) if column.choice is None]
    count = len(matrix)
    inputs = np.zeros((count, max(1, len(forest.inputs))), np.dtype(forest.precision))
    inputs[:, problem_inputs] = matrix
    flat = inputs.ravel()
    starts = np.arange(count) * inputs.shape[1]
    scores = np.empty((count, len(choices)))
    scores[:] = forest.base
    column_of = {forest.inputs[position].choice: position for position in indicators}
    for tree in forest.trees:
        arrays = _Arrays.of(tree, len(forest.base))
        tested = set(tree.feature).intersection(indicators)
        # Most trees ask about few choices; all others take the same way through them.
        common = arrays.outputs(flat, starts)
        if not tested:
            scores += common
            continue
        for position, choice in enumerate(choices):
            column = column_of.get(choice)
            if column in tested:
                inputs[:, column] = 1
                scores[:, position] += arrays.outputs(flat, starts)[:, 0]
                inputs[:, column] = 0
            else:
                scores[:, position] += common[:, 0]
    return scores


def comparisons(forest: Forest, matrix: Floats) -> float:
    """The mean number of comparisons that one evaluation of the forest takes on these problems (P x F).

    In a forest of layout ``row`` one evaluation is that of one choice; indicators of choices count as 0.
    """
    inputs = np.zeros((len(matrix), max(1, len(forest.inputs))), np.dtype(forest.precision))
    inputs[:, [position for position, column in enumerate(forest.inputs) if column.choice is None]] = matrix
    flat, starts = inputs.ravel(), np.arange(len(matrix)) * inputs.shape[1]
    steps = 0.0
    for tree in forest.trees:
        depths = [0] * len(tree.feature)
        for node, feature in enumerate(tree.feature):
            if feature >= 0:  # children come after their parent
                depths[tree.left[node]] = depths[tree.right[node]] = depths[node] + 1
        by_depth = attrs.evolve(tree, value=[[float(depth)] for depth in depths])
        steps += float(_Arrays.of(by_depth, 1).outputs(flat, starts).sum())
    return steps / max(1, len(matrix))
