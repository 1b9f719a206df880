"""Extremely randomised trees on clipped advantages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from autoheur.heuristic.model import Forest
from autoheur.train.learner import Examples, FittedModel, Floats
from autoheur_learners import parameters as rules
from autoheur_learners.models import ForestModel
from autoheur_learners.sklearn_trees import convert
from autoheur_learners.targets import advantages

_RULES = {
    "n_estimators": rules.whole(1),
    "max_leaf_nodes": rules.whole_or_none(2),
    "min_samples_leaf": rules.whole(1),
    "max_features": rules.number(0, 1, above=True),
    "clip": rules.number(0, 100, above=True),
    "offset": rules.number(0, 100, above=True),
}

_DIGITS = 5
"""Leaf values are rounded to so many digits after the point: no decision hangs on more, and files are half as long."""


class ExtraTrees:
    """Many trees with random splits; each predicts, for every choice, how much is lost by not taking it.

    A score is ``offset`` plus the mean of the trees' predictions, which lie between 0 and 1. The ratio of two scores
    is high where one choice is expected to win by far and the other hardly ever: it weighs a win against the risk.
    The trees are scikit-learn's ``ExtraTreesRegressor`` (Geurts, Ernst & Wehenkel, Machine Learning 2006).
    """

    name = "extra_trees"
    description = "an ensemble of randomised trees on clipped advantages"
    grid: Mapping[str, Sequence[Any]] = {
        "n_estimators": (100,),
        "max_leaf_nodes": (256,),
        "min_samples_leaf": (2,),
        "max_features": (0.5,),
        "clip": (0.08,),
        "offset": (0.1,),
    }
    statistic: Literal["ratio"] = "ratio"

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> FittedModel:
        rules.check(self.name, parameters, _RULES)
        from sklearn.ensemble import ExtraTreesRegressor

        settings = {"clip": 0.08, "offset": 0.1, **parameters}
        clip, offset = settings.pop("clip"), settings.pop("offset")
        estimator = ExtraTreesRegressor(random_state=42, **settings)
        estimator.fit(examples.matrix, advantages(examples, clip), sample_weight=examples.weights)
        count = len(estimator.estimators_)

        def values(leaves: Floats) -> Floats:
            return np.round(leaves[:, :, 0] / count, _DIGITS)

        trees = [convert(tree.tree_, values) for tree in estimator.estimators_]
        forest = Forest(list(examples.inputs), [offset] * len(examples.choices), trees, "vector", "float32")
        return ForestModel(forest, examples.choices)
