"""What the repetitions of measurements say about labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from autoheur.dataset.dataset import Dataset
from autoheur.train import noise

Rows = list[tuple[int, int, str, str, float]]


def rows(number: int, orig: list[float], pad: list[float]) -> Rows:
    return [(number, 1, "x", choice, time) for choice, times in (("orig", orig), ("pad", pad)) for time in times]


def test_more_repetitions_and_less_spread_make_smaller_errors(make_dataset: Callable[..., Dataset]) -> None:
    steady, shaky = [1.0, 1.01, 0.99], [1.0, 1.2, 0.8]
    found = noise.standard_errors(make_dataset(rows(1, steady, shaky) + rows(2, steady * 5, shaky * 5)))
    assert found[0, 0] < found[0, 1]
    assert found[1, 0] < found[0, 0]
    assert found[1, 1] < found[0, 1]


def test_one_interrupted_repetition_of_many_hardly_counts(make_dataset: Callable[..., Dataset]) -> None:
    calm = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0]
    found = noise.standard_errors(make_dataset(rows(1, calm, [*calm[:-1], 50.0])))
    assert found[0, 1] < 2 * found[0, 0]


def test_repetitions_that_agree_by_chance_are_not_taken_for_exact(make_dataset: Callable[..., Dataset]) -> None:
    shaky = [1.0, 1.1, 0.9]
    found = noise.standard_errors(make_dataset([*rows(1, [1.0] * 3, shaky), *rows(2, shaky, shaky)]))
    assert 0 < found[0, 0] < found[0, 1]


def test_what_was_measured_once_has_the_typical_noise(make_dataset: Callable[..., Dataset]) -> None:
    found = noise.standard_errors(make_dataset([*rows(1, [1.0], [1.0, 1.1, 0.9]), *rows(2, [1.0], [1.0, 1.1, 0.9])]))
    assert np.isfinite(found).all()
    assert found[0, 0] > found[0, 1]


def test_choices_without_a_finite_measurement_have_no_error(make_dataset: Callable[..., Dataset]) -> None:
    found = noise.standard_errors(make_dataset([*rows(1, [1.0, 1.1], [float("inf")]), *rows(2, [1.0], [2.0])]))
    assert np.isnan(found[0, 1])
    assert np.isfinite(found[[0, 1, 1], [0, 0, 1]]).all()


TIMES = np.array([[1.0, 1.3], [1.3, 1.0], [1.0, 1.03], [1.0, 1.3]])
NOISE = np.array([[0.01, 0.01], [0.01, 0.01], [0.001, 0.001], [0.3, 0.3]])


def test_a_slow_choice_is_wrong_beyond_tolerance_and_noise_only() -> None:
    assert noise.good_enough(TIMES, NOISE, 1.05).tolist() == [[True, False], [False, True], [True, True], [True, True]]
    assert noise.good_enough(TIMES, None, 1.05).tolist() == [[True, False], [False, True], [True, True], [True, False]]


def test_at_a_tolerance_of_one_every_slower_choice_is_wrong() -> None:
    assert noise.good_enough(TIMES, NOISE, 1.0)[:, 1].tolist() == [False, True, False, False]


def test_a_problem_says_nothing_where_noise_hides_what_is_asked() -> None:
    assert noise.resolved(TIMES, NOISE, 1.05).tolist() == [True, True, True, False]
    assert noise.resolved(TIMES, NOISE, 1.0).all()


def test_the_noisier_a_problem_the_less_it_weighs() -> None:
    times = np.tile([1.0, 1.01], (4, 1))
    error = noise.HALF_WEIGHT / np.sqrt(2)
    found = noise.weights(times, np.outer([0, error, 3 * error, 100 * error], [1, 1]))
    assert found == pytest.approx([1, 0.5, 0.1, 1e-4], rel=1e-3)
    assert (noise.weights(times, None) == 1).all()


def test_of_many_choices_the_best_two_decide() -> None:
    times = np.array([[1.0, np.nan, 1.5, 9.0]])
    errors = np.array([[0.01, np.nan, 0.01, 5.0]])
    assert noise.resolved(times, errors, 1.05).all()
    assert noise.weights(times, errors) == pytest.approx(1, abs=0.1)
