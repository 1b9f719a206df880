"""Decisions from scores, and the figures of the result table."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

import numpy as np
import pytest

from autoheur.heuristic.model import Statistic
from autoheur.heuristic.reference import shortlists
from autoheur.train.figures import Row, judge

NAN = float("nan")


def array(*rows: list[float]) -> Any:
    return np.array(rows, float)


def figures(scores: Any, times: Any, threshold: float, tolerance: float = 1.05, **more: Any) -> Row:
    return judge(scores, times, "ratio", threshold, dataset="d", learner="l", params={}, tolerance=tolerance, **more)


@pytest.mark.parametrize(("statistic", "confidence"), [("ratio", 2.0), ("difference", 1.5), ("score", 3.0)])
def test_a_decision_needs_a_confidence_above_the_threshold(statistic: Statistic, confidence: float) -> None:
    scores, available = array([1.5, 3.0]), np.array([[True, True]])
    for threshold, decided in ((confidence, False), (np.nextafter(confidence, 0), True)):
        found = shortlists(scores, available, statistic, threshold)
        assert (found.first[0], found.confidence[0], found.decided[0]) == (1, confidence, decided)


def test_of_equal_scores_the_first_is_taken() -> None:
    found = shortlists(array([1, 2, 2]), np.ones((1, 3), bool), "ratio", 0.5)
    assert (found.first[0], found.confidence[0]) == (1, 1.0)


def test_choices_that_are_not_available_do_not_compete() -> None:
    found = shortlists(array([1, 9, 2, 8]), np.array([[True, False, True, False]]), "ratio", 1.9)
    assert (found.first[0], found.confidence[0], found.decided[0]) == (2, 2.0, True)


def test_a_second_best_of_zero_makes_an_infinite_ratio_or_none() -> None:
    found = shortlists(array([1, 0], [0, 0], [1, -0.0]), np.ones((3, 2), bool), "ratio", 5)
    assert found.confidence[0] == found.confidence[2] == math.inf
    assert math.isnan(found.confidence[1])
    assert found.decided.tolist() == [True, False, True]


def test_where_a_heuristic_does_not_apply_it_is_unsure() -> None:
    applies = np.array([True, False])
    row = figures(array([2, 1], [2, 1]), array([1, 2], [1, 2]), 1, applies=applies)
    assert (row.correct, row.unsure) == (1, 1)


def test_correct_wrong_and_unsure_with_their_figures() -> None:
    scores = array([3, 1], [3, 1], [1, 3], [1.1, 1], [4, 1])
    times = array([1, 2], [3, 2], [1.04, 1], [1, 9], [4, 1])
    row = figures(scores, times, 2.0)
    assert (row.correct, row.wrong, row.unsure, row.total) == (2, 2, 1, 5)
    assert row.max_wrong_speedup == 4
    assert row.gmean_wrong_speedup == pytest.approx(math.sqrt(1.5 * 4))
    assert row.coverage == 0.8
    assert row.wrong_beyond_tolerance == 2
    assert row.regret_max == 4
    assert row.regret_gmean == pytest.approx((1 * 1.5 * 1 * 4) ** 0.25)
    assert row.threshold == 2.0


def test_the_wrong_choice_within_tolerance_is_wrong_by_the_published_figures_only() -> None:
    row = figures(array([2, 1]), array([1.05, 1.0]), 1)
    assert (row.wrong, row.wrong_beyond_tolerance) == (1, 0)
    assert figures(array([2, 1]), array([1.05, 1.0]), 1, tolerance=1.04).wrong_beyond_tolerance == 1


def test_of_equally_fast_choices_the_first_is_the_right_one() -> None:
    row = figures(array([2, 1], [1, 2]), array([1, 1], [1, 1]), 1)
    assert (row.correct, row.wrong, row.max_wrong_speedup, row.regret_max) == (1, 1, 1, 1)


def test_slowest_over_fastest_counts_measured_choices_only() -> None:
    row = figures(array([9, 1, 5, 2]), array([NAN, 2, 4, 8]), 1)
    assert (row.wrong, row.max_wrong_speedup, row.regret_max) == (1, 4, 2)


def test_figures_that_do_not_exist_are_none_and_never_nan() -> None:
    row = figures(array([1, 1]), array([1, 2]), 2)
    assert row.to_dict() == {
        "dataset": "d", "learner": "l", "params": {}, "chosen": False,
        "correct": 0, "wrong": 0, "unsure": 1, "total": 1,
        "max_wrong_speedup": None, "gmean_wrong_speedup": None, "threshold": 2,
        "wrong_beyond_tolerance": 0, "coverage": 0.0, "regret_gmean": None, "regret_max": None,
        "shortlist_mean": 2.0, "benchmarks_saved": 0.0, "regret_shortlist": {"gmean": 1.0, "max": 1.0},
    }  # fmt: skip
    json.dumps(row.to_dict(), allow_nan=False)


def test_rankings_are_judged_where_there_are_more_than_two_choices() -> None:
    scores = array([4, 3, 2, 1], [1, 2, 3, 4])
    times = array([2, 1.5, 4, 1], [8, NAN, 1, 2])
    row = figures(scores, times, 9)
    assert row.recall_at is not None
    assert row.regret_at is not None
    assert row.recall_at[1] == 0
    assert row.recall_at[3] == 0.5
    assert row.recall_at[5] == 1
    assert row.regret_at[1] == {"gmean": pytest.approx(2), "max": 2}
    assert row.regret_at[3] == {"gmean": pytest.approx(math.sqrt(1.5)), "max": 1.5}
    assert row.regret_at[10] == {"gmean": 1, "max": 1}
    data = row.to_dict()
    assert list(data["recall_at"]) == ["1", "3", "5", "10"]
    json.dumps(data, allow_nan=False)


def test_in_a_ranking_equal_scores_keep_the_order_of_choices() -> None:
    scores = np.tile([0.0, 1.0], 20)[None, :]  # ranked: the odd places, then the even ones
    times = np.where(scores > 0, np.arange(80, 40, -1), 100.0)
    row = figures(scores, times, 9)
    assert row.regret_at is not None
    assert [row.regret_at[k]["max"] for k in (1, 3, 5, 10)] == [79 / 41, 75 / 41, 71 / 41, 61 / 41]


def test_figures_equal_those_of_a_loop_over_problems() -> None:
    random = Random(3)
    scores = [[random.choice([0.5, 1, 1.5, 2]) for _ in range(4)] for _ in range(200)]
    times = [[random.choice([1, 1.02, 2, 3, NAN]) for _ in range(4)] for _ in range(200)]
    for measured in times:
        measured[:2] = [1.0 if math.isnan(time) else time for time in measured[:2]]
    counts = {"correct": 0, "wrong": 0, "unsure": 0, "beyond": 0}
    regrets = []
    for predicted, measured in zip(scores, times, strict=True):
        there = [choice for choice in range(4) if not math.isnan(measured[choice])]
        best, second = sorted((predicted[choice] for choice in there), reverse=True)[:2]
        taken = next(choice for choice in there if predicted[choice] == best)
        fastest = min(measured[choice] for choice in there)
        if not best / second > 1.2:
            counts["unsure"] += 1
            continue
        winner = next(choice for choice in there if measured[choice] == fastest)
        counts["correct" if taken == winner else "wrong"] += 1
        counts["beyond"] += measured[taken] > 1.05 * fastest
        regrets.append(measured[taken] / fastest)
    row = figures(array(*scores), array(*times), 1.2)
    assert {
        "correct": row.correct, "wrong": row.wrong, "unsure": row.unsure, "beyond": row.wrong_beyond_tolerance
    } == counts  # fmt: skip
    assert min(counts.values()) > 5
    assert row.regret_gmean == pytest.approx(math.prod(regrets) ** (1 / len(regrets)))
    assert row.regret_max == max(regrets)


def test_shortlists_are_judged_by_their_length_and_by_what_they_miss() -> None:
    scores = array([4, 3, 1, 1], [4, 1, 1, 1], [4, 3.5, 3, 2.5], [1, 2, 3, NAN])
    times = array([2, 1, 9, 9], [3, 1, 4, 4], [1, 2, 3, 4], [4, 3, NAN, 1])
    row = figures(scores, times, 2.0)
    # Left are two choices, one (a wrong one), all four, and of three two beside the one without a score.
    assert row.shortlist_mean == (2 + 1 + 4 + 3) / 4
    assert row.benchmarks_saved == pytest.approx(1 - (2 + 0 + 4 + 3) / 15)
    assert row.regret_shortlist == {"gmean": pytest.approx(3**0.25), "max": 3}
    assert (row.correct, row.wrong, row.unsure) == (0, 1, 3)


def test_choices_that_the_guard_does_not_trust_stay_and_are_ranked_all_the_same() -> None:
    scores, times = array([4, 1, 1]), array([2, 1, 3])
    row = figures(scores, times, 2.0, trusted=np.array([[True, False, True]]))
    assert (row.shortlist_mean, row.regret_shortlist) == (2, {"gmean": 1, "max": 1})
    assert row.regret_at is not None
    assert row.regret_at[1]["max"] == 2
