"""One compact tree, taught by an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autoheur.learning import Examples, Forest, distil
from autoheur_learners import parameters as rules
from autoheur_learners.extra_trees import ExtraTrees
from autoheur_learners.targets import Target

_RULES = {
    "max_leaf_nodes": rules.whole(2),
    "min_samples_leaf": rules.whole(1),
    "drawn": rules.whole(0),
}


class DistilledTree:
    """A tree of at most ``max_leaf_nodes`` leaves, fitted to the scores of an ensemble.

    The teacher is :class:`autoheur_learners.extra_trees.ExtraTrees`. It scores the measured problems and ``drawn``
    further ones (where the operator can draw them); the tree takes both gains and losses into its splits and hands one
    on. See :func:`autoheur.learning.distil`.
    """

    name = "distilled_tree"
    description = "one compact tree fitted to the scores of extra_trees"
    grid: Mapping[str, Sequence[Any]] = {"max_leaf_nodes": (64,), "min_samples_leaf": (20,), "drawn": (20000,)}

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> Forest:
        rules.check(self.name, parameters, _RULES)
        teacher = ExtraTrees().predictor(examples, {name: values[0] for name, values in ExtraTrees().grid.items()})
        if examples.pair_inputs:
            return distil(teacher, examples, "difference", **parameters)
        target = Target(examples)
        return distil(teacher, examples, target.statistic, scores=target.scores, base=target.base, **parameters)
