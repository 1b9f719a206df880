"""Extremely randomised trees that predict gains and losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from autoheur.learning import Examples, Floats, Forest, Tree, choice_rows, convert_tree
from autoheur_learners import parameters as rules
from autoheur_learners.targets import PairTarget, Target

AUTO = "auto"

PER_PROBLEM = {"max_leaf_nodes": 128, "min_samples_leaf": 3}
PER_CHOICE = {"max_leaf_nodes": 2048, "min_samples_leaf": 2}
"""What :data:`AUTO` means. A tree that scores one choice at a time has to tell the choices apart too, and what is
measured of the others of a problem keeps its leaves from following noise."""

_RULES = {
    "n_estimators": rules.whole(1),
    "max_leaf_nodes": rules.either(AUTO, rules.whole_or_none(2)),
    "min_samples_leaf": rules.either(AUTO, rules.whole(1)),
    "max_features": rules.number(0, 1, above=True),
}


class ExtraTrees:
    """Many trees with random splits, which predict what every choice gains and loses.

    Scores are as :mod:`autoheur_learners.targets` says. The trees are scikit-learn's ``ExtraTreesRegressor`` (Geurts,
    Ernst & Wehenkel, Machine Learning 2006) with ``random_state=42``. ``auto`` is :data:`PER_CHOICE` where choices have
    features, and trees score one choice at a time; else :data:`PER_PROBLEM`.
    """

    name = "extra_trees"
    description = "an ensemble of randomised trees that predict what each choice gains and loses"
    grid: Mapping[str, Sequence[Any]] = {
        "n_estimators": (50,),
        "max_leaf_nodes": (AUTO,),
        "min_samples_leaf": (AUTO,),
        "max_features": (0.8,),
    }

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> Forest:
        estimators = self._estimator(examples, parameters).estimators_
        if examples.pair_inputs:
            trees = [convert_tree(each.tree_, lambda leaves: leaves[:, :, 0] / len(estimators)) for each in estimators]
            return PairTarget(examples).forest([_unscaled(tree) for tree in trees])
        target = Target(examples)

        def values(leaves: Floats) -> Floats:
            return target.scores(leaves[:, :, 0], len(estimators))

        return target.forest([convert_tree(estimator.tree_, values) for estimator in estimators])

    def predictor(self, examples: Examples, parameters: Mapping[str, Any]) -> Callable[[Floats], Floats]:
        """The fitted model: it takes what :func:`autoheur.learning.distil` gives, and returns targets."""
        estimator = self._estimator(examples, parameters)
        if examples.pair_inputs:
            return lambda rows: estimator.predict(_scaled(rows))
        predict: Callable[[Floats], Floats] = estimator.predict
        return predict

    def _estimator(self, examples: Examples, parameters: Mapping[str, Any]) -> Any:
        rules.check(self.name, parameters, _RULES)
        from sklearn.ensemble import ExtraTreesRegressor

        suited = PER_CHOICE if examples.pair_inputs else PER_PROBLEM
        given = {name: value for name, value in parameters.items() if value != AUTO}
        estimator = ExtraTreesRegressor(random_state=42, **{**suited, **given})
        if examples.pair_inputs:
            pairs = PairTarget(examples)
            rows, _, _ = choice_rows(examples, np.float64)
            return estimator.fit(_scaled(rows), pairs.values, sample_weight=pairs.weights)
        return estimator.fit(examples.matrix, Target(examples).values, sample_weight=examples.weights)


def _scaled(rows: Floats) -> Floats:
    """Random splits are drawn evenly between the least and the greatest value; sizes are spread like powers of two."""
    scaled: Floats = np.copysign(np.log2(1 + np.abs(rows)), rows)
    return scaled


def _unscaled(tree: Tree) -> Tree:
    """The same tree for values that are not scaled."""
    threshold = np.array(tree.threshold)
    return attrs.evolve(tree, threshold=np.copysign(np.exp2(np.abs(threshold)) - 1, threshold).tolist())
