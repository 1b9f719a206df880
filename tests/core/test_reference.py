"""The reference interpreter: forests, scores and shortlists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from autoheur.heuristic.model import Forest, Input, Statistic, Tree
from autoheur.heuristic.reference import Floats, Questions, evaluate, shortlists
from autoheur.heuristic.reference import score as score_questions

CHOICES = ("a", "b", "c")


def score(forest: Forest, matrix: Floats, choices: Sequence[str]) -> Floats:
    """Scores of all choices; ``matrix`` has the forest's inputs that are no indicators of choices."""
    own = [column for column in forest.inputs if column.choice is None]
    offered = np.ones((len(matrix), len(choices)), bool)
    return score_questions(forest, Questions(own, matrix, choices, offered), choices)


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


BLOCKS = Input("block")


def test_pairs_are_scored_by_their_features_and_only_where_offered() -> None:
    forest = Forest([Input("m"), BLOCKS], [0.0], [stump(1, 2.5, [1.0], [2.0]), stump(0, 5, [10.0], [20.0])], "row")
    offered = np.array([[True, False, True], [True, True, False]])
    questions = Questions(
        [Input("m")],
        np.array([[1.0], [9.0]]),
        ("x", "y", "z"),
        offered,
        [BLOCKS],
        np.array([[1.0], [4.0], [1.0], [3.0]]),
    )
    expected = [[11, math.nan, 12], [21, 22, math.nan]]
    assert not forest.needs_names
    for known in (("x", "y", "z"), ("x",), ()):  # names do not matter
        assert np.array_equal(score_questions(forest, questions, known), expected, equal_nan=True)


@pytest.mark.parametrize("layout", ["row", "vector"])
def test_a_forest_that_needs_names_scores_no_choice_that_it_does_not_know(layout: str) -> None:
    if layout == "row":
        forest = Forest([Input(choice="a")], [0.0], [stump(0, 0.5, [1.0], [2.0])], "row")
    else:
        forest = Forest([], [2.0, 1.0], [], "vector")
    questions = Questions([], np.empty((1, 0)), ("new", "b", "a"), np.ones((1, 3), bool))
    assert np.array_equal(score_questions(forest, questions, ("a", "b")), [[math.nan, 1, 2]], equal_nan=True)


def slow_shortlist(
    scores: Sequence[float], offered: Sequence[bool], statistic: Statistic, threshold: float
) -> set[int]:
    """The policy as its description has it, choice by choice."""
    order = sorted(
        (c for c in range(len(scores)) if offered[c] and not math.isnan(scores[c])), key=lambda c: -scores[c]
    )
    left = {c for c in range(len(scores)) if offered[c] and math.isnan(scores[c])}
    total = 0.0
    for place, choice in enumerate(order):
        best, this = scores[order[0]], scores[choice]
        if place:
            total += scores[order[place - 1]]
            if statistic == "ratio":
                compared = best / this if this else (math.inf if best > 0 else math.nan)
            else:
                compared = best - this if statistic == "difference" else total
            if compared > threshold:
                break
        left.add(choice)
    return left


@pytest.mark.parametrize(("statistic", "thresholds"), [("ratio", (1, 1.5)), ("difference", (0, 1)), ("score", (1, 3))])
def test_shortlists_equal_those_of_a_loop_over_choices(statistic: Statistic, thresholds: Sequence[float]) -> None:
    random = Random(3)
    lengths = set()
    for threshold in thresholds:
        scores = np.array([[random.choice([0, 0.5, 1, 1.5, 2, math.nan]) for _ in range(5)] for _ in range(300)])
        offered = np.array([[random.random() < 0.8 for _ in range(5)] for _ in range(300)])
        offered[:, 0] = True
        found = shortlists(scores, offered, statistic, threshold)
        for position, kept in enumerate(found.kept):
            expected = slow_shortlist(scores[position].tolist(), offered[position].tolist(), statistic, threshold)
            assert set(np.flatnonzero(kept).tolist()) == expected
            lengths.add(len(expected))
        assert found.length.tolist() == found.kept.sum(axis=1).tolist()
    assert lengths == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("statistic", ["ratio", "difference", "score"])
def test_the_threshold_needed_is_the_smallest_at_which_a_good_choice_is_left(statistic: Statistic) -> None:
    random = Random(4)
    scores = np.array([[random.choice([0.5, 1, 1.5, 2, math.nan]) for _ in range(4)] for _ in range(300)])
    offered = np.ones(scores.shape, bool)
    good = np.array([[random.random() < 0.3 for _ in range(4)] for _ in range(300)])
    needed = shortlists(scores, offered, statistic, 0).threshold_needed(good)
    assert np.isnan(needed).sum() == (~good.any(axis=1)).sum() > 0
    finite = np.isfinite(needed)
    assert finite.sum() > 50
    for position in range(len(scores)):
        one = slice(position, position + 1)
        for threshold, holds in ((needed[position], True), (np.nextafter(needed[position], -np.inf), False)):
            if finite[position]:
                kept = shortlists(scores[one], offered[one], statistic, threshold).kept
                assert (kept & good[one]).any() == holds
        if needed[position] == -np.inf:
            assert (shortlists(scores[one], offered[one], statistic, -1e300).kept & good[one]).any()


def test_where_the_policy_does_not_apply_everything_offered_is_left() -> None:
    scores, offered = np.array([[3.0, 1, 2], [3.0, 1, 2]]), np.array([[True, True, False]] * 2)
    found = shortlists(scores, offered, "ratio", 1, np.array([True, False]))
    assert found.kept.tolist() == [[True, False, False], [True, True, False]]
    assert found.decided.tolist() == [True, False]


def test_evaluation_goes_on_over_many_rows() -> None:
    forest = Forest([Input("m")], [0.0], [stump(0, 1e5, [1.0], [2.0])], "row", "float64")
    values = evaluate(forest, np.arange(200_000, dtype=float)[:, None])[:, 0]
    assert values.sum() == 100_001 + 2 * 99_999
