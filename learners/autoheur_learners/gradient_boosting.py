"""Gradient-boosted trees on logarithms of times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from autoheur.learning import Examples, Floats, Forest, Input, Tree, choice_rows, row_inputs, speedups
from autoheur_learners import parameters as rules
from autoheur_learners.targets import PairTarget

_RULES = {
    "max_iter": rules.whole(1),
    "learning_rate": rules.number(0, 1, above=True),
    "max_leaf_nodes": rules.whole(2),
    "min_samples_leaf": rules.whole(1),
    "l2_regularization": rules.number(0, 1e6),
}


class GradientBoosting:
    """Many small trees, each fitted to what the ones before it leave unexplained.

    Of two choices it learns the logarithm of the first one's time over the second one's, once per problem: the
    second scores that, the first 0. Of more choices it learns for each the logarithm of the mean time over its own, and
    of choices with features that of the best time (:class:`autoheur_learners.targets.PairTarget`). Either way the
    difference of two scores is the logarithm of a predicted speed-up. The trees are scikit-learn's
    ``HistGradientBoostingRegressor`` (after LightGBM, Ke et al., NIPS 2017).
    """

    name = "gradient_boosting"
    description = "gradient-boosted trees on the logarithm of relative times"
    grid: Mapping[str, Sequence[Any]] = {
        "max_iter": (100, 300),
        "learning_rate": (0.1,),
        "max_leaf_nodes": (15, 31),
        "min_samples_leaf": (20,),
        "l2_regularization": (0.0,),
    }

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> Forest:
        rules.check(self.name, parameters, _RULES)
        if len(examples.choices) == 2 and not examples.pair_inputs:
            target = np.log(examples.times[:, 0] / examples.times[:, 1])
            estimator = _fit(examples.matrix, target, examples.weights, parameters)
            return _forest(estimator, examples.inputs, "vector")
        rows, problem, choice = choice_rows(examples, np.float64)
        if examples.pair_inputs:
            pairs = PairTarget(examples)
            estimator = _fit(rows, pairs.values, pairs.weights, parameters)
        else:
            weights = None if examples.weights is None else examples.weights[problem]
            estimator = _fit(rows, np.log(speedups(examples)[problem, choice]), weights, parameters)
        return _forest(estimator, row_inputs(examples), "row")


def _fit(rows: Floats, target: Floats, weights: Floats | None, parameters: Mapping[str, Any]) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    # No early stopping: it would hold out rows, not problems. The random state draws the rows that bins are made from.
    settings = {"early_stopping": False, "random_state": 42, **parameters}
    # One thread: a search keeps the other cores busy with other candidates. OpenMP threads that outnumber free cores
    # spin while they wait for one another; on a busy two-core machine a search took 109 s with them and 3 s without.
    with threadpool_limits(limits=1, user_api="openmp"):
        return HistGradientBoostingRegressor(**settings).fit(rows, target, sample_weight=weights)


def _forest(estimator: Any, inputs: Sequence[Input], layout: Literal["row", "vector"]) -> Forest:
    """Read the trees out of a fitted estimator; in layout ``vector`` the first of two choices scores 0.

    scikit-learn keeps them in a private attribute, one structured array of nodes per iteration.
    """
    zeros = [0.0] if layout == "vector" else []
    return Forest(
        inputs=list(inputs),
        base=[*zeros, float(estimator._baseline_prediction.item())],
        trees=[_tree(predictors[0].nodes, zeros) for predictors in estimator._predictors],
        layout=layout,
        precision="float64",
        statistic="difference",
    )


def _tree(nodes: NDArray[Any], zeros: list[float]) -> Tree:
    """Convert one tree, whose children come after their parents too; leaf values hold the learning rate already."""
    leaf = nodes["is_leaf"].astype(bool)
    return Tree(
        feature=np.where(leaf, -1, nodes["feature_idx"].astype(np.int64)).tolist(),
        threshold=np.where(leaf, 0.0, nodes["num_threshold"]).tolist(),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)).tolist(),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64)).tolist(),
        value=[[*zeros, float(value)] if at_leaf else [] for at_leaf, value in zip(leaf, nodes["value"], strict=True)],
    )
