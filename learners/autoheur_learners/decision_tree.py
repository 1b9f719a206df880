"""One tree that predicts gains and losses."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import attrs

from autoheur.heuristic.model import Forest
from autoheur.train.learner import Examples, FittedModel, Floats
from autoheur_learners import parameters as rules
from autoheur_learners.models import ForestModel
from autoheur_learners.sklearn_trees import convert
from autoheur_learners.targets import Aim

_RULES = {"max_leaf_nodes": rules.whole_or_none(2), "min_samples_leaf": rules.whole(1)}


@attrs.frozen
class DecisionTree:
    """One tree of few leaves; its scores are those of :class:`autoheur_learners.extra_trees.ExtraTrees`.

    The tree is scikit-learn's ``DecisionTreeRegressor``, grown best leaf first, with ``random_state=42``. Its leaves
    are drawn towards the mean of all problems as if one further problem, like that mean, were among theirs: a leaf
    without a loss among ten problems is less sure than one without among a thousand (Laplace's rule).
    """

    tolerance: float = 1.0

    name = "decision_tree"
    description = "one tree that predicts what each choice gains and loses"
    grid = MappingProxyType({"max_leaf_nodes": (64,), "min_samples_leaf": (10,)})

    @property
    def statistic(self) -> Literal["ratio", "score"]:
        return Aim(self.tolerance).statistic

    def for_tolerance(self, tolerance: float) -> DecisionTree:
        return DecisionTree(tolerance)

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> FittedModel:
        rules.check(self.name, parameters, _RULES)
        from sklearn.tree import DecisionTreeRegressor

        aim = Aim(self.tolerance)
        estimator = DecisionTreeRegressor(random_state=42, **parameters)
        estimator.fit(examples.matrix, aim.targets(examples), sample_weight=examples.weights)

        fitted = estimator.tree_
        size = fitted.weighted_n_node_samples[fitted.children_left < 0][:, None]

        def values(leaves: Floats) -> Floats:
            return aim.scores((leaves[:, :, 0] * size + fitted.value[0, :, 0]) / (size + 1))

        tree = convert(fitted, values)
        base = [aim.base] * len(examples.choices)
        return ForestModel(Forest(list(examples.inputs), base, [tree], "vector", "float32"), examples.choices)
