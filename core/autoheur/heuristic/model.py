"""The model inside an artifact: trees in flat arrays, and the policy that turns their scores into a decision."""

from __future__ import annotations

import math
from typing import Literal

import attrs

Statistic = Literal["ratio", "difference", "score"]


@attrs.frozen
class Input:
    """One column of the matrix that a model was fitted on. Exactly one of three forms:

    - a numerical feature: ``feature`` alone;
    - an indicator: 1.0 where the categorical ``feature`` equals ``category``, else 0.0;
    - a choice indicator: ``choice`` alone, 1.0 in the row of that choice.
    """

    feature: str | None = None
    category: str | None = None
    choice: str | None = None


@attrs.frozen
class Tree:
    """A binary decision tree in flat arrays; node 0 is the root.

    At an inner node ``feature[i]`` is the index of the model input that is tested: left where
    ``input <= threshold[i]``, else right. At a leaf ``feature[i]`` is -1 and ``value[i]`` holds the outputs.
    ``value`` has one row per node: one number for a model of layout ``row``, one per choice for ``vector``; rows of
    inner nodes may be empty.
    """

    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    value: list[list[float]]


@attrs.frozen
class Forest:
    """A sum of trees.

    ``layout`` says how choices get their scores. ``row``: the model is evaluated once per choice, on inputs of the
    problem, of the choice, and of both, and yields one number; without indicators of choices among its inputs it also
    scores a choice that training never saw. ``vector``: evaluated once per problem, it yields one number per choice, in
    the order of the artifact's choices.

    The score is ``base + tree_0 + tree_1 + …``, added in that order in float64; ``base`` is as long as a leaf's value.
    ``precision`` is the type to which inputs are rounded before they are compared with thresholds: scikit-learn's
    trees compare float32 inputs, its histogram boosting float64 ones. ``statistic`` is what scores mean: how the best
    one is compared with another, see :class:`Policy`.
    """

    inputs: list[Input]
    base: list[float]
    trees: list[Tree]
    layout: Literal["row", "vector"] = "row"
    precision: Literal["float32", "float64"] = "float32"
    statistic: Statistic = "ratio"

    @property
    def needs_names(self) -> bool:
        """Whether a choice that training never saw cannot be scored."""
        return self.layout == "vector" or any(column.choice is not None for column in self.inputs)


@attrs.frozen
class Policy:
    """Says which of the choices that were offered are left.

    Take the offered choices in the order of their scores, best first, equals in the order in which they were offered.
    The model's *statistic* compares each one but the first with those before it. ``ratio``: best score over this one,
    by IEEE division, infinite for a positive score over 0. ``difference``: best score minus this one. ``score``: the
    sum of the scores before this one, which is for probabilities. The shortlist ends before the first choice whose
    statistic is greater than ``threshold``; a statistic that is not a number, such as the ratio of two zeros, ends
    nothing. So with two choices the better one is taken when the statistic of the other one exceeds the threshold.

    A choice without a score stays on the shortlist. With ``guard`` a problem outside the ranges or categories seen in
    training keeps all its choices, whatever the scores, and a choice outside them has no score.
    """

    threshold: float
    guard: bool = True


def flaw(forest: Forest, choices: int) -> str | None:
    """Say why a forest cannot be evaluated safely for so many choices, or return ``None``.

    In one without a flaw every walk ends at a leaf of the right width, and every score is a finite number.
    """
    width = 1 if forest.layout == "row" else choices
    if len(forest.base) != width:
        return f"the model's base has {len(forest.base)} values, not {width}"
    reach = [abs(value) for value in forest.base]
    for position, tree in enumerate(forest.trees):
        found = _tree_flaw(tree, len(forest.inputs), width)
        if found:
            return f"tree {position}{found}"
        leaves = [tree.value[node] for node, tested in enumerate(tree.feature) if tested < 0]
        reach = [r + max(abs(v) for v in column) for r, column in zip(reach, zip(*leaves, strict=True), strict=True)]
    if not all(math.isfinite(value) for value in reach):
        return "the model's scores are not all finite numbers"
    return None


def _tree_flaw(tree: Tree, inputs: int, width: int) -> str | None:
    size = len(tree.feature)
    if not size or any(len(column) != size for column in (tree.threshold, tree.left, tree.right, tree.value)):
        return ": arrays of different length, or empty"
    children: list[int] = []
    for node, tested in enumerate(tree.feature):
        if tested == -1:
            if len(tree.value[node]) != width:
                return f", leaf {node}: {len(tree.value[node])} values, not {width}"
            continue
        if not 0 <= tested < inputs:
            return f", node {node}: no model input {tested}"
        if math.isnan(tree.threshold[node]):
            return f", node {node}: the threshold is not a number"
        # Children after their parent: no cycles, so every walk ends.
        if not (node < tree.left[node] < size and node < tree.right[node] < size):
            return f", node {node}: children out of order"
        children += (tree.left[node], tree.right[node])
    if len(set(children)) != len(children):  # following both parents could take forever
        return ": a node has two parents"
    return None
