"""Extremely randomised trees that predict gains and losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import attrs
import numpy as np

from autoheur.heuristic.model import Forest
from autoheur.train.learner import Examples, FittedModel, Floats
from autoheur_learners import parameters as rules
from autoheur_learners.models import ForestModel
from autoheur_learners.sklearn_trees import convert
from autoheur_learners.targets import advantages, losses

_RULES = {
    "n_estimators": rules.whole(1),
    "max_leaf_nodes": rules.whole_or_none(2),
    "min_samples_leaf": rules.whole(1),
    "max_features": rules.number(0, 1, above=True),
}

GAIN_CLIP, LOSS_CLIP = 0.05, 0.2
"""Logarithms of ratios (5 % and 22 %) from which on a gain is as clear, and a loss as bad, as can be."""

OFFSET = 0.1
"""What is added to gains, so that their ratio does not hang on how near to zero the smaller one is."""

_DIGITS = 6
"""Leaf values are rounded to so many digits after the point: no decision hangs on more, and files are half as long."""


@attrs.frozen
class ExtraTrees:
    """Many trees with random splits, which predict what every choice gains and loses.

    Strictly, with a ``tolerance`` of 1, the score of a choice is :data:`OFFSET` plus its expected gain over the others
    (:func:`autoheur_learners.targets.advantages`). The ratio of two scores weighs what the better one is expected to
    gain against what it may lose. Where choices within a tolerance are as good as the best, ties are no reason to be
    unsure: then the score is minus the expected loss (:func:`autoheur_learners.targets.losses`), and the best score
    alone says what is risked.

    Both come from the same trees, scikit-learn's ``ExtraTreesRegressor`` (Geurts, Ernst & Wehenkel, Machine Learning
    2006), which split on gains and losses together.
    """

    tolerance: float = 1.0

    name = "extra_trees"
    description = "an ensemble of randomised trees that predict what each choice gains and loses"
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {
        "n_estimators": (100,),
        "max_leaf_nodes": (256,),
        "min_samples_leaf": (3,),
        "max_features": (0.8,),
    }

    @property
    def statistic(self) -> Literal["ratio", "score"]:
        return "ratio" if self.tolerance == 1 else "score"

    def for_tolerance(self, tolerance: float) -> ExtraTrees:
        return ExtraTrees(tolerance)

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> FittedModel:
        rules.check(self.name, parameters, _RULES)
        from sklearn.ensemble import ExtraTreesRegressor

        targets = np.hstack([advantages(examples, GAIN_CLIP), losses(examples, LOSS_CLIP)])
        estimator = ExtraTreesRegressor(random_state=42, **parameters)
        estimator.fit(examples.matrix, targets, sample_weight=examples.weights)
        choices = len(examples.choices)
        used, sign = (slice(0, choices), 1) if self.tolerance == 1 else (slice(choices, None), -1)

        def values(leaves: Floats) -> Floats:
            return np.round(sign * leaves[:, used, 0] / len(estimator.estimators_), _DIGITS)

        trees = [convert(tree.tree_, values) for tree in estimator.estimators_]
        base = [OFFSET if self.tolerance == 1 else 0.0] * choices
        return ForestModel(Forest(list(examples.inputs), base, trees, "vector", "float32"), examples.choices)
