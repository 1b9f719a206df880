"""One compact tree, taught by an ensemble."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import attrs
import numpy as np

from autoheur.heuristic.model import Forest
from autoheur.train.learner import Examples, FittedModel, Floats
from autoheur_learners import parameters as rules
from autoheur_learners.extra_trees import ExtraTrees
from autoheur_learners.models import ForestModel
from autoheur_learners.sklearn_trees import convert
from autoheur_learners.targets import Aim

_RULES = {
    "max_leaf_nodes": rules.whole(2),
    "min_samples_leaf": rules.whole(1),
    "drawn": rules.whole(0),
}

_MEASURED_WEIGHT = 2.0
"""What a measured problem weighs beside a drawn one."""


@attrs.frozen
class DistilledTree:
    """A tree of at most ``max_leaf_nodes`` leaves, fitted to the scores of an ensemble.

    The teacher is :class:`autoheur_learners.extra_trees.ExtraTrees`. It scores the measured problems and ``drawn``
    further ones (where the operator can draw them), so that the tree sees how the teacher decides between the
    measurements too; it takes both kinds of score into its splits and hands one on. The idea is that of Breiman &
    Shang ("Born again trees", 1996) and Hinton, Vinyals & Dean (2015).
    """

    tolerance: float = 1.0

    name = "distilled_tree"
    description = "one compact tree fitted to the scores of extra_trees"
    grid = MappingProxyType(
        {
            "max_leaf_nodes": (64,),
            "min_samples_leaf": (20,),
            "drawn": (20000,),
        }
    )

    @property
    def statistic(self) -> Literal["ratio", "score"]:
        return Aim(self.tolerance).statistic

    def for_tolerance(self, tolerance: float) -> DistilledTree:
        return DistilledTree(tolerance)

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> FittedModel:
        rules.check(self.name, parameters, _RULES)
        from sklearn.tree import DecisionTreeRegressor

        settings = {"drawn": 20000, "max_leaf_nodes": 64, "min_samples_leaf": 20, **parameters}
        drawn = settings.pop("drawn")
        problems, weights = examples.matrix, np.full(len(examples), _MEASURED_WEIGHT)
        if examples.weights is not None:
            weights = weights * examples.weights
        if drawn and examples.draw is not None:
            more = examples.draw(drawn)
            problems = np.vstack([problems, more])
            weights = np.concatenate([weights, np.ones(len(more))])
        aim = Aim(self.tolerance)
        teacher = ExtraTrees().estimate(examples, {name: values[0] for name, values in ExtraTrees().grid.items()})
        estimator = DecisionTreeRegressor(random_state=42, **settings)
        estimator.fit(problems, teacher.predict(problems), sample_weight=weights)

        def values(leaves: Floats) -> Floats:
            return aim.scores(leaves[:, :, 0])

        base = [aim.base] * len(examples.choices)
        tree = convert(estimator.tree_, values)
        return ForestModel(Forest(list(examples.inputs), base, [tree], "vector", "float32"), examples.choices)
