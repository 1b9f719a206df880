"""The learner published with PyTorch's AutoHeuristic: one regression tree over problems and choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autoheur.learning import Examples, Forest, choice_rows, convert_tree, row_inputs, speedups
from autoheur_learners import parameters as rules

_RULES = {"max_depth": rules.whole_or_none(1), "min_samples_leaf": rules.whole(1)}


class RegressionTree:
    """Predicts how much faster a choice is than the mean of its problem's choices.

    A score of 1.2 for ``pad`` says that padding takes 1/1.2 of the mean time of all choices. The tree is
    scikit-learn's ``DecisionTreeRegressor`` with ``random_state=42``, one row per problem and choice.
    """

    name = "regression_tree"
    description = "one regression tree that scores each choice (the published method)"
    grid: Mapping[str, Sequence[Any]] = {"max_depth": (5, 6, 7), "min_samples_leaf": (1, 2, 5, 10)}

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> Forest:
        rules.check(self.name, parameters, _RULES)
        from sklearn.tree import DecisionTreeRegressor

        rows, problem, choice = choice_rows(examples, np.float32)
        # The random state breaks ties between equally good splits, so it is part of the method.
        estimator = DecisionTreeRegressor(random_state=42, **parameters)
        weights = None if examples.weights is None else examples.weights[problem]
        estimator.fit(rows, speedups(examples)[problem, choice], sample_weight=weights)
        tree = convert_tree(estimator.tree_, lambda leaves: leaves[:, 0])
        return Forest(list(row_inputs(examples)), [0.0], [tree], "row", "float32", "ratio")
