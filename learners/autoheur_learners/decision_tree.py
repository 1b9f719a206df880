"""One tree that predicts gains and losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autoheur.learning import Examples, Floats, Forest, choice_rows, convert_tree
from autoheur_learners import parameters as rules
from autoheur_learners.targets import PairTarget, Target

_RULES = {"max_leaf_nodes": rules.whole_or_none(2), "min_samples_leaf": rules.whole(1)}


class DecisionTree:
    """One tree of few leaves; its scores are those of :class:`autoheur_learners.extra_trees.ExtraTrees`.

    The tree is scikit-learn's ``DecisionTreeRegressor``, grown best leaf first, with ``random_state=42``. Its leaves
    are drawn towards the mean of all problems as if one further problem, like that mean, were among theirs: a leaf
    without a loss among ten problems is less sure than one without among a thousand (Laplace's rule).
    """

    name = "decision_tree"
    description = "one tree that predicts what each choice gains and loses"
    grid: Mapping[str, Sequence[Any]] = {"max_leaf_nodes": (64,), "min_samples_leaf": (10,)}

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> Forest:
        rules.check(self.name, parameters, _RULES)
        from sklearn.tree import DecisionTreeRegressor

        estimator = DecisionTreeRegressor(random_state=42, **parameters)
        if examples.pair_inputs:
            pairs = PairTarget(examples)
            rows, _, _ = choice_rows(examples, np.float32)
            estimator.fit(rows, pairs.values, sample_weight=pairs.weights)
            return pairs.forest([convert_tree(estimator.tree_, lambda leaves: leaves[:, :, 0])])
        target = Target(examples)
        estimator.fit(examples.matrix, target.values, sample_weight=examples.weights)
        fitted = estimator.tree_
        size = fitted.weighted_n_node_samples[fitted.children_left < 0][:, None]

        def values(leaves: Floats) -> Floats:
            return target.scores((leaves[:, :, 0] * size + fitted.value[0, :, 0]) / (size + 1))

        return target.forest([convert_tree(fitted, values)])
