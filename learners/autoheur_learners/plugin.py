"""Registers the learners of this distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autoheur.plugin import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autoheur.learning import Learner


@hookimpl
def autoheur_learners() -> Sequence[Learner]:
    from autoheur_learners.decision_tree import DecisionTree
    from autoheur_learners.distilled_tree import DistilledTree
    from autoheur_learners.extra_trees import ExtraTrees
    from autoheur_learners.gradient_boosting import GradientBoosting
    from autoheur_learners.regression_tree import RegressionTree

    return [RegressionTree(), GradientBoosting(), ExtraTrees(), DecisionTree(), DistilledTree()]
