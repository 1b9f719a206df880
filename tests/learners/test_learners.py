"""What holds for each learner that comes with autoheur."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from autoheur.errors import InputError
from autoheur.heuristic.artifact import Artifact, from_json, to_json
from autoheur.heuristic.model import Input, Policy
from autoheur.learning import Examples, Floats, Learner, choice_rows
from autoheur.types import Feature
from autoheur_learners.plugin import autoheur_learners

LEARNERS = {learner.name: learner for learner in autoheur_learners()}
CHOICES = [("orig", "pad"), ("a", "b", "c", "d", "e")]
MakeExamples = Callable[..., Examples]
Score = Callable[..., Floats]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads of scikit-learn that wait for one another's cores take far longer than one."""
    with threadpool_limits(limits=1, user_api="openmp"):
        yield


each_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=list(LEARNERS))
each_number_of_choices = pytest.mark.parametrize("choices", CHOICES, ids=len)


def smallest(learner: Learner) -> dict[str, Any]:
    """The first combination of the grid, with few trees."""
    few = {"max_iter": 25, "n_estimators": 10}
    return {name: few.get(name, values[0]) for name, values in learner.grid.items()}


@each_learner
@each_number_of_choices
def test_the_forest_is_a_valid_artifact(make_examples: MakeExamples, learner: Learner, choices: Sequence[str]) -> None:
    examples = make_examples(choices)
    forest = learner.fit(examples, smallest(learner))
    assert tuple(forest.inputs[: len(examples.inputs)]) == examples.inputs
    features = [Feature("m"), Feature("size"), Feature("dtype", "categorical")]
    artifact = Artifact("toy", "toy", features, list(choices), forest, Policy(0.0))
    assert from_json(to_json(artifact)) == artifact


@each_learner
@each_number_of_choices
def test_the_best_choice_is_mostly_found(
    make_examples: MakeExamples, score: Score, learner: Learner, choices: Sequence[str]
) -> None:
    examples, unseen = make_examples(choices, 800), make_examples(choices, 300, seed=2)
    parameters = {name: values[-1] for name, values in learner.grid.items()}
    scores = score(learner.fit(examples, parameters), examples, unseen.matrix)
    measured = np.isfinite(unseen.times)
    found = np.where(measured, scores, -np.inf).argmax(axis=1)
    regret = unseen.times[np.arange(len(found)), found] / np.nanmin(unseen.times, axis=1)
    anyhow = np.nanmean(unseen.times, axis=1) / np.nanmin(unseen.times, axis=1)
    assert regret.mean() - 1 < (anyhow.mean() - 1) / 4


@each_learner
def test_fitting_twice_gives_the_same_forest(make_examples: MakeExamples, learner: Learner) -> None:
    forests = [learner.fit(make_examples(), smallest(learner)) for _ in range(2)]
    assert forests[0] == forests[1]


@each_learner
def test_examples_are_left_as_they_are(make_examples: MakeExamples, learner: Learner) -> None:
    examples = make_examples(CHOICES[1])
    learner.fit(examples, smallest(learner))
    untouched = make_examples(CHOICES[1])
    assert np.array_equal(examples.matrix, untouched.matrix)
    assert np.array_equal(examples.times, untouched.times, equal_nan=True)


@each_learner
def test_an_unknown_parameter_is_an_error_that_lists_the_known_ones(
    make_examples: MakeExamples, learner: Learner
) -> None:
    with pytest.raises(InputError, match=f"{learner.name}: no parameter 'colour' .*min_samples_leaf"):
        learner.fit(make_examples(), {"colour": "red"})


@each_learner
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", None])
def test_a_value_out_of_range_is_an_error(make_examples: MakeExamples, learner: Learner, value: Any) -> None:
    with pytest.raises(InputError, match="min_samples_leaf must be a whole number of at least 1"):
        learner.fit(make_examples(), {"min_samples_leaf": value})


@each_learner
def test_few_examples_make_a_model_too(make_examples: MakeExamples, score: Score, learner: Learner) -> None:
    examples = make_examples(problems=2)
    scores = score(learner.fit(examples, smallest(learner)), examples)
    assert np.isfinite(scores).all()


def test_the_plugin_imports_no_heavy_library() -> None:
    code = (
        "import sys, autoheur_learners.plugin; "
        "print([name for name in ('sklearn', 'numpy', 'polars', 'joblib', 'torch') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_names_and_descriptions_are_there_and_names_are_distinct() -> None:
    assert {"regression_tree", "gradient_boosting"} <= set(LEARNERS)
    assert len(LEARNERS) == len(autoheur_learners())
    assert all(learner.description for learner in LEARNERS.values())


def problem_rows(examples: Examples, matrix: Floats) -> Floats:
    """The rows of every choice of every problem, as a model of layout ``row`` reads them."""
    every = attrs.evolve(examples, matrix=matrix, times=np.ones((len(matrix), len(examples.choices))))
    return choice_rows(every, np.float64)[0]


@each_number_of_choices
def test_a_regression_tree_predicts_bit_for_bit_what_scikit_learn_does(
    make_examples: MakeExamples, score: Score, choices: Sequence[str]
) -> None:
    from sklearn.tree import DecisionTreeRegressor

    examples, unseen = make_examples(choices), make_examples(choices, 2000, seed=9).matrix
    # Two columns that are equal in training and not otherwise: which of them is split on is the random state's choice.
    twice = np.column_stack([examples.matrix, examples.matrix[:, 0]])
    examples = attrs.evolve(examples, inputs=(*examples.inputs, Input("n")), matrix=twice)
    unseen = np.column_stack([unseen, unseen[::-1, 0]])
    rows, problem, choice = choice_rows(examples, np.float64)
    target = (np.nanmean(examples.times, axis=1, keepdims=True) / examples.times)[problem, choice]
    for depth, leaf in ((3, 5), (None, 1)):
        theirs = DecisionTreeRegressor(random_state=42, max_depth=depth, min_samples_leaf=leaf).fit(rows, target)
        ours = LEARNERS["regression_tree"].fit(examples, {"max_depth": depth, "min_samples_leaf": leaf})
        for matrix in (examples.matrix, unseen):
            expected = theirs.predict(problem_rows(examples, matrix)).reshape(len(matrix), -1)
            assert np.array_equal(score(ours, examples, matrix), expected)


def test_gradient_boosting_of_two_choices_predicts_bit_for_bit_what_scikit_learn_does(
    make_examples: MakeExamples, score: Score
) -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor

    examples, unseen = make_examples(), make_examples(problems=2000, seed=9).matrix
    parameters = {"max_iter": 40, "learning_rate": 0.3, "max_leaf_nodes": 9, "min_samples_leaf": 3}
    theirs = HistGradientBoostingRegressor(early_stopping=False, random_state=42, **parameters)
    theirs.fit(examples.matrix, np.log(examples.times[:, 0] / examples.times[:, 1]))
    ours = LEARNERS["gradient_boosting"].fit(examples, parameters)
    for matrix in (examples.matrix, unseen):
        scores = score(ours, examples, matrix)
        assert np.array_equal(scores[:, 1], theirs.predict(matrix))
        assert not scores[:, 0].any()


def test_gradient_boosting_of_many_choices_predicts_bit_for_bit_what_scikit_learn_does(
    make_examples: MakeExamples, score: Score
) -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor

    examples, unseen = make_examples(CHOICES[1]), make_examples(CHOICES[1], 1000, seed=9).matrix
    parameters = {"max_iter": 40, "learning_rate": 0.3, "max_leaf_nodes": 9, "min_samples_leaf": 3}
    rows, problem, choice = choice_rows(examples, np.float64)
    target = np.log((np.nanmean(examples.times, axis=1, keepdims=True) / examples.times)[problem, choice])
    theirs = HistGradientBoostingRegressor(early_stopping=False, random_state=42, **parameters).fit(rows, target)
    ours = LEARNERS["gradient_boosting"].fit(examples, parameters)
    for matrix in (examples.matrix, unseen):
        expected = theirs.predict(problem_rows(examples, matrix)).reshape(len(matrix), -1)
        assert np.array_equal(score(ours, examples, matrix), expected)
