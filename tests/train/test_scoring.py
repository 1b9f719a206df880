"""Vectorised evaluation of forests."""

from __future__ import annotations

import numpy as np

from autoheur.heuristic.model import Forest, Input, Tree
from autoheur.train.scoring import score

CHOICES = ("a", "b", "c")


def stump(feature: int, threshold: float, left: list[float], right: list[float]) -> Tree:
    return Tree([feature, -1, -1], [threshold, 0.0, 0.0], [1, -1, -1], [2, -1, -1], [[], left, right])


def test_a_row_forest_scores_each_choice_with_its_own_indicator() -> None:
    inputs = [Input("m"), Input(choice="a"), Input("n"), Input(choice="c")]  # indicators anywhere, one missing
    trees = [stump(1, 0.5, [1.0], [2.0]), stump(3, 0.5, [10.0], [20.0]), stump(2, 5, [100.0], [200.0])]
    forest = Forest(inputs, [0.25], trees, "row", "float64")
    scores = score(forest, np.array([[0.0, 5.0], [0.0, 6.0]]), CHOICES)
    assert scores.tolist() == [[112.25, 111.25, 121.25], [212.25, 211.25, 221.25]]


def test_a_vector_forest_scores_all_choices_at_once() -> None:
    forest = Forest([Input("m")], [0.0, 1.0, 2.0], [stump(0, 1, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0])], "vector", "float64")
    assert score(forest, np.array([[1.0], [2.0]]), CHOICES).tolist() == [[1, 3, 5], [4, 6, 8]]


def test_inputs_are_rounded_to_the_forests_precision() -> None:
    value = 2.0**24 + 1  # rounds to 2**24 in single precision
    for precision, expected in (("float32", 1.0), ("float64", 2.0)):
        forest = Forest([Input("m")], [0.0], [stump(0, 2.0**24, [1.0], [2.0])], "row", precision)  # type: ignore[arg-type]
        assert score(forest, np.array([[value]]), ("a", "b")).tolist() == [[expected, expected]]


def test_thresholds_keep_double_precision() -> None:
    threshold = float(np.float32(0.1)) - 1e-12
    forest = Forest([Input("m")], [0.0], [stump(0, threshold, [1.0], [2.0])], "row", "float32")
    assert score(forest, np.array([[0.1]]), ("a",)).tolist() == [[2.0]]


def test_trees_are_added_in_order() -> None:
    leaves = [0.1, 1e16, -1e16, 0.3]
    trees = [Tree([-1], [0.0], [-1], [-1], [[value]]) for value in leaves]
    forest = Forest([], [0.7], trees, "row", "float64")
    expected = 0.7
    for value in leaves:
        expected += value
    assert score(forest, np.empty((2, 0)), ("a", "b")).tolist() == [[expected] * 2] * 2


def test_no_problems_give_no_scores() -> None:
    forest = Forest([Input("m")], [0.0], [stump(0, 1, [1.0], [2.0])], "row", "float64")
    assert score(forest, np.empty((0, 1)), CHOICES).shape == (0, 3)


def test_leaves_at_different_depths_end_where_they_are() -> None:
    tree = Tree([0, -1, 0, -1, -1], [1, 0, 3, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [[], [1], [], [2], [3]])
    forest = Forest([Input("m")], [0.0], [tree], "row", "float64")
    assert score(forest, np.array([[0.0], [2.0], [9.0]]), ("a",)).tolist() == [[1], [2], [3]]
