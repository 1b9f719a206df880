"""The model inside an artifact: trees in flat arrays, and the policy that turns their scores into a decision."""

from __future__ import annotations

from typing import Literal

import attrs


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

    ``layout`` says how choices get their scores. ``row``: the model is evaluated once per choice, on the problem's
    inputs plus that choice's indicators, and yields one number. ``vector``: evaluated once per problem, it yields
    one number per choice, in the order of the artifact's choices.

    The score is ``base + tree_0 + tree_1 + …``, added in that order in float64; ``base`` is as long as a leaf's value.
    ``precision`` is the type to which inputs are rounded before they are compared with thresholds: scikit-learn's
    trees compare float32 inputs, its histogram boosting float64 ones.
    """

    inputs: list[Input]
    base: list[float]
    trees: list[Tree]
    layout: Literal["row", "vector"] = "row"
    precision: Literal["float32", "float64"] = "float32"


@attrs.frozen
class Policy:
    """Turns the scores of one problem into a decision.

    The best choice (the first of the best, in the artifact's order) is taken when the *statistic* is greater than
    ``threshold``; otherwise the decision is unsure. ``ratio``: best score over second best, by IEEE division: infinite
    for a positive score over 0, negative, and so rarely enough, where the second best is. ``difference``:
    best minus second best. ``score``: the best score itself. A statistic that is not a number, such as the ratio of
    two zeros, never decides. With ``guard`` a problem outside the ranges or categories seen in training is unsure
    whatever the scores.
    """

    statistic: Literal["ratio", "difference", "score"]
    threshold: float
    guard: bool = True
