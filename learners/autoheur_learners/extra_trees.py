"""Extremely randomised trees that predict gains and losses."""

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

_RULES = {
    "n_estimators": rules.whole(1),
    "max_leaf_nodes": rules.whole_or_none(2),
    "min_samples_leaf": rules.whole(1),
    "max_features": rules.number(0, 1, above=True),
}


@attrs.frozen
class ExtraTrees:
    """Many trees with random splits, which predict what every choice gains and loses.

    Scores are as :class:`autoheur_learners.targets.Aim` says. The trees are scikit-learn's ``ExtraTreesRegressor``
    (Geurts, Ernst & Wehenkel, Machine Learning 2006) with ``random_state=42``.
    """

    tolerance: float = 1.0

    name = "extra_trees"
    description = "an ensemble of randomised trees that predict what each choice gains and loses"
    grid = MappingProxyType(
        {
            "n_estimators": (50,),
            "max_leaf_nodes": (128,),
            "min_samples_leaf": (3,),
            "max_features": (0.8,),
        }
    )

    @property
    def statistic(self) -> Literal["ratio", "score"]:
        return Aim(self.tolerance).statistic

    def for_tolerance(self, tolerance: float) -> ExtraTrees:
        return ExtraTrees(tolerance)

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> FittedModel:
        estimators = self.estimate(examples, parameters).estimators_
        aim = Aim(self.tolerance)

        def values(leaves: Floats) -> Floats:
            return aim.scores(leaves[:, :, 0], len(estimators))

        trees = [convert(estimator.tree_, values) for estimator in estimators]
        base = [aim.base] * len(examples.choices)
        return ForestModel(Forest(list(examples.inputs), base, trees, "vector", "float32"), examples.choices)

    def estimate(self, examples: Examples, parameters: Mapping[str, Any]) -> Any:
        """The fitted scikit-learn estimator; it predicts what :meth:`Aim.targets` describes."""
        rules.check(self.name, parameters, _RULES)
        from sklearn.ensemble import ExtraTreesRegressor

        estimator = ExtraTreesRegressor(random_state=42, **parameters)
        return estimator.fit(examples.matrix, Aim(self.tolerance).targets(examples), sample_weight=examples.weights)
