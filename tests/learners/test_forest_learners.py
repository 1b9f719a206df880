"""The learners that predict gains and losses: extra_trees, decision_tree and distilled_tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from autoheur.codegen import compile_artifact, generate
from autoheur.dataset.files import read
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.model import Input, Policy
from autoheur.heuristic.reference import comparisons
from autoheur.learning import Examples, Floats, concatenate
from autoheur.train.examples import UNFILTERED, Encoding, select
from autoheur.types import Feature
from autoheur_learners.decision_tree import DecisionTree
from autoheur_learners.distilled_tree import DistilledTree
from autoheur_learners.extra_trees import ExtraTrees
from autoheur_learners.targets import GAIN_CLIP, LOSS_CLIP, OFFSET, Target, advantages, losses
from autoheur_pad_mm.features import FEATURES

MakeExamples = Callable[..., Examples]
Score = Callable[..., Floats]
Forests = ExtraTrees | DecisionTree | DistilledTree

SMALL: dict[type[Forests], dict[str, Any]] = {
    ExtraTrees: {"n_estimators": 12, "max_leaf_nodes": 40, "min_samples_leaf": 3, "max_features": 0.8},
    DecisionTree: {"max_leaf_nodes": 20, "min_samples_leaf": 5},
    DistilledTree: {"max_leaf_nodes": 20, "min_samples_leaf": 5, "drawn": 500},
}
each_learner = pytest.mark.parametrize("kind", SMALL, ids=lambda kind: kind.name)
each_aim = pytest.mark.parametrize("tolerance", [1.0, 1.05])
each_number_of_choices = pytest.mark.parametrize("choices", [("orig", "pad"), ("a", "b", "c", "d", "e")], ids=len)


def test_gains_and_losses_of_two_choices_are_the_same_thing() -> None:
    times = np.array([[1.0, 1.02], [3.0, 1.0], [2.0, 2.0]])
    examples = Examples((), ("a", "b"), np.empty((3, 0)), times)
    gains = advantages(examples, 0.05)
    assert np.allclose(gains, [[math.log(1.02) / 0.05, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert np.array_equal(gains, losses(examples, 0.05)[:, ::-1])


def test_choices_that_do_not_count_gain_nothing_and_lose_all() -> None:
    times = np.array([[1.0, np.nan, 1.1]])
    examples = Examples((), ("a", "b", "c"), np.empty((1, 0)), times)
    assert np.allclose(advantages(examples, 0.05), [[1, 0, 0]])
    assert np.allclose(losses(examples, 0.2), [[0, 1, math.log(1.1) / 0.2]])


@each_learner
@each_aim
@each_number_of_choices
def test_generated_code_scores_and_decides_bit_for_bit_as_the_model(
    make_examples: MakeExamples, score: Score, kind: type[Forests], tolerance: float, choices: Sequence[str]
) -> None:
    examples = make_examples(choices, tolerance=tolerance)
    forest = kind().fit(examples, SMALL[kind])
    assert forest.statistic == ("ratio" if tolerance == 1 else "score" if len(choices) == 2 else "difference")
    features = [Feature("m"), Feature("size"), Feature("dtype", "categorical")]
    policy = Policy({"ratio": 1.5, "score": -0.1, "difference": 0.1}[forest.statistic], guard=False)
    artifact = Artifact("toy", "toy", features, list(choices), forest, policy)
    module = compile_artifact(artifact)
    boundaries = [[t, t, b] for tree in forest.trees for t in tree.threshold[:5] for b in (0, 1)]
    rows = np.vstack([examples.matrix[:100], make_examples(choices, 100, seed=4).matrix, boundaries])
    for row, expected in zip(rows.tolist(), score(forest, examples, rows).tolist(), strict=True):
        problem = {"m": row[0], "size": row[1], "dtype": "x" if row[2] else "y"}
        assert module.scores(problem) == tuple(expected)
        best, second = sorted(expected, reverse=True)[:2]
        statistic = {"ratio": best / second, "score": best, "difference": best - second}[forest.statistic]
        choice, _, confidence = module.decide(problem)
        assert confidence == statistic
        assert choice == (choices[expected.index(best)] if statistic > policy.threshold else None)


@each_aim
def test_extra_trees_are_those_of_scikit_learn_with_rounded_leaves(
    make_examples: MakeExamples, score: Score, tolerance: float
) -> None:
    from sklearn.ensemble import ExtraTreesRegressor

    examples = make_examples(tolerance=tolerance)
    examples = attrs.evolve(examples, weights=np.linspace(0.1, 1, len(examples)))
    unseen = make_examples(problems=1000, seed=9).matrix
    parameters = SMALL[ExtraTrees]
    targets = np.hstack([advantages(examples, GAIN_CLIP), losses(examples, LOSS_CLIP)])
    theirs = ExtraTreesRegressor(random_state=42, **parameters)
    theirs.fit(examples.matrix, targets, sample_weight=examples.weights)
    scores = score(ExtraTrees().fit(examples, parameters), examples, unseen)
    expected = np.full((len(unseen), 2), OFFSET if tolerance == 1 else 0.0)
    for tree in theirs.estimators_:
        leaves = tree.tree_.value[tree.apply(unseen)][:, :, 0]
        expected += np.round((leaves[:, :2] if tolerance == 1 else -leaves[:, 2:]) / len(theirs.estimators_), 6)
    assert np.array_equal(scores, expected)


@each_learner
def test_weights_count(make_examples: MakeExamples, score: Score, kind: type[Forests]) -> None:
    examples = make_examples()
    both = concatenate([examples, attrs.evolve(examples, times=examples.times[:, ::-1])])
    light, heavy = np.full(len(examples), 0.01), np.ones(len(examples))
    first, second = (
        score(kind().fit(attrs.evolve(both, weights=np.concatenate(weights)), SMALL[kind]), examples)
        for weights in ((heavy, light), (light, heavy))
    )
    agreement = (first.argmax(axis=1) == examples.times.argmin(axis=1)).mean()
    assert agreement > 0.8
    assert (second.argmax(axis=1) == examples.times.argmin(axis=1)).mean() < 0.2


def test_a_tolerant_score_is_minus_the_expected_loss(make_examples: MakeExamples, score: Score) -> None:
    examples = make_examples(tolerance=1.05)
    scores = score(ExtraTrees().fit(examples, SMALL[ExtraTrees]), examples)
    lost = losses(examples, LOSS_CLIP)
    assert ((scores <= 0) & (scores >= -1)).all()
    assert np.abs(-scores - lost).mean() < np.abs(lost.mean(axis=0) - lost).mean() / 3


def test_a_pure_leaf_of_few_problems_is_less_sure_than_one_of_many(score: Score) -> None:
    matrix = np.repeat([[0.0], [1.0], [2.0]], [10, 500, 500], axis=0)
    times = np.repeat([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]], [10, 500, 500], axis=0)
    examples = Examples((Input("x"),), ("a", "b"), matrix, times, tolerance=1.05)
    forest = DecisionTree().fit(examples, SMALL[DecisionTree])
    few, _, many = score(forest, examples, np.array([[0.0], [1.0], [2.0]])).max(axis=1)
    assert few < many < 0


def test_a_distilled_tree_learns_from_drawn_problems_too(make_examples: MakeExamples, score: Score) -> None:
    examples = make_examples(problems=60)
    asked: list[int] = []

    def draw(count: int) -> Floats:
        asked.append(count)
        return make_examples(problems=count, seed=3).matrix

    plain = DistilledTree().fit(examples, SMALL[DistilledTree])
    taught = DistilledTree().fit(attrs.evolve(examples, draw=draw), SMALL[DistilledTree])
    teacher = ExtraTrees().fit(examples, {name: values[0] for name, values in ExtraTrees().grid.items()})
    unseen = make_examples(problems=500, seed=8).matrix
    near, far = (
        np.abs(score(forest, examples, unseen) - score(teacher, examples, unseen)).mean() for forest in (taught, plain)
    )
    assert asked == [500]
    assert near < far


def test_trees_keep_their_leaf_budget(make_examples: MakeExamples) -> None:
    for kind in (DecisionTree, DistilledTree):
        [tree] = kind().fit(make_examples(problems=3000), SMALL[kind]).trees
        assert sum(feature < 0 for feature in tree.feature) <= 20


def test_comparisons_are_counted_as_a_walk_makes_them(make_examples: MakeExamples) -> None:
    examples = make_examples()
    forest = ExtraTrees().fit(examples, SMALL[ExtraTrees])
    steps = 0
    for row in examples.matrix.astype(np.float32).tolist():
        for tree in forest.trees:
            node = 0
            while tree.feature[node] >= 0:
                node = tree.left[node] if row[tree.feature[node]] <= tree.threshold[node] else tree.right[node]
                steps += 1
    assert comparisons(forest, examples.matrix) == pytest.approx(steps / len(examples))


def test_models_of_real_data_fit_the_budgets(shared_data: Callable[[str], Path]) -> None:
    """An ensemble stays within 2,500 comparisons a decision (200 us of plain Python), a tree's code within pages."""
    ours = [feature for feature in FEATURES if feature.protocol in (None, "calibrated")]
    selection = select(read(shared_data("pad_mm_a100_val.txt.gz")), ours, UNFILTERED)
    examples = Encoding.of([selection], ours).examples(selection, tolerance=1)
    forest = ExtraTrees().fit(examples, {name: values[0] for name, values in ExtraTrees().grid.items()})
    assert comparisons(forest, examples.matrix) < 2500
    tree = DistilledTree().fit(examples, {name: values[0] for name, values in DistilledTree().grid.items()})
    used = {column.feature for column in tree.inputs}
    features = [feature for feature in FEATURES if not feature.derived or feature.name in used]
    code = generate(Artifact("pad_mm", "small", features, ["orig", "pad"], tree, Policy(2.0)), "python")
    assert len(code.splitlines()) < 400


def test_every_tolerance_predicts_the_same_and_keeps_its_half(make_examples: MakeExamples) -> None:
    strict, tolerant = Target(make_examples()), Target(make_examples(tolerance=1.2))
    assert np.array_equal(strict.values, tolerant.values)
    assert np.allclose(strict.scores(strict.values), advantages(strict.examples, GAIN_CLIP), atol=1e-6)
    assert np.allclose(-tolerant.scores(strict.values), losses(strict.examples, LOSS_CLIP), atol=1e-6)
