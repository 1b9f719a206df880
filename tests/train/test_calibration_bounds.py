"""The exact binomial bounds, and the threshold that keeps one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from autoheur.train.bounds import (
    allowed_wrong,
    at_most,
    problems_needed,
    threshold_for,
    upper_bound,
)


@pytest.mark.parametrize(("wrong", "total"), [(0, 1), (0, 59), (1, 59), (3, 7779), (40, 200), (199, 200)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_upper_bound_is_that_of_clopper_and_pearson(wrong: int, total: int, confidence: float) -> None:
    expected = stats.beta.ppf(confidence, wrong + 1, total - wrong)
    assert upper_bound(wrong, total, confidence) == pytest.approx(expected, rel=1e-6)


def test_nothing_is_known_where_all_or_none_were_tried() -> None:
    assert upper_bound(0, 0, 0.95) == upper_bound(5, 5, 0.95) == 1.0


@pytest.mark.parametrize(("wrong", "total", "rate"), [(0, 10, 0.1), (2, 7677, 0.001), (300, 7677, 0.05)])
def test_probabilities_of_few_events_are_the_binomial_ones(wrong: int, total: int, rate: float) -> None:
    assert at_most(wrong, total, rate) == pytest.approx(stats.binom.cdf(wrong, total, rate), rel=1e-9)


@pytest.mark.parametrize("total", [1, 58, 59, 93, 2994, 2995, 7677, 7779, 50_000])
@pytest.mark.parametrize("rate", [0.0005, 0.001, 0.05])
def test_one_more_wrong_decision_than_allowed_would_break_the_bound(total: int, rate: float) -> None:
    allowed = allowed_wrong(total, rate, 0.95)
    if allowed is None:
        assert upper_bound(0, total, 0.95) > rate
    else:
        assert upper_bound(allowed, total, 0.95) <= rate + 1e-11
        assert upper_bound(allowed + 1, total, 0.95) > rate


def test_the_published_a100_problems_allow_two_wrong_in_a_thousandth() -> None:
    assert allowed_wrong(7677, 0.001, 0.95) == 2


@pytest.mark.parametrize(("rate", "confidence"), [(0.001, 0.95), (0.05, 0.95), (0.01, 0.5)])
def test_the_problems_needed_for_none_wrong_follow_from_the_logarithms(rate: float, confidence: float) -> None:
    needed = problems_needed(rate, confidence)
    assert needed == math.ceil(math.log(1 - confidence) / math.log(1 - rate))
    assert allowed_wrong(needed, rate, confidence) == 0
    assert allowed_wrong(needed - 1, rate, confidence) is None


@pytest.mark.parametrize("wrong", [1, 3])
def test_as_many_problems_as_needed_allow_so_many_wrong(wrong: int) -> None:
    needed = problems_needed(0.01, 0.95, wrong)
    assert allowed_wrong(needed, 0.01, 0.95) == wrong
    assert allowed_wrong(needed - 1, 0.01, 0.95) == wrong - 1


def test_the_threshold_is_the_smallest_with_no_more_wrong_than_allowed() -> None:
    random = np.random.default_rng(0)
    confidence, wrong = random.random(500), random.random(500) < 0.1
    for allowed in range(6):
        threshold = threshold_for(np.where(wrong, confidence, -np.inf), confidence, allowed)
        assert (wrong & (confidence > threshold)).sum() == allowed
        assert (wrong & (confidence >= threshold)).sum() == allowed + 1


def test_equal_confidences_are_decided_together_or_not_at_all() -> None:
    confidence = np.array([3.0, 2.0, 2.0, 2.0, 1.0])
    wrong = np.array([False, True, False, True, False])
    assert threshold_for(np.where(wrong, confidence, -np.inf), confidence, 1) == 2.0


def test_everything_is_decided_where_no_more_than_allowed_is_wrong() -> None:
    confidence = np.array([-0.5, -0.1, 0.0])
    threshold = threshold_for(np.array([-0.5, -np.inf, -np.inf]), confidence, 1)
    assert (confidence > threshold).all()
    assert math.isfinite(threshold)


def test_the_true_rate_stays_below_the_bound_as_often_as_promised() -> None:
    """Draw many samples; thresholds set on them break the bound on the whole population in at most 1 of 10 cases."""
    random = np.random.default_rng(1)
    rate, confidence, problems = 0.02, 0.9, 400
    allowed = allowed_wrong(problems, rate, confidence)
    assert allowed is not None
    broken = 0
    for _ in range(2000):
        sure = random.random(problems)
        wrong = random.random(problems) < 0.1 * (1 - sure)
        threshold = threshold_for(np.where(wrong, sure, -np.inf), sure, allowed)
        # P(wrong and surer than t) for this population, in closed form.
        broken += 0.05 * (1 - max(threshold, 0.0)) ** 2 > rate
    assert broken / 2000 <= 1 - confidence
