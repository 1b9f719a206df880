"""Fitted models that are forests."""

from __future__ import annotations

import attrs

from autoheur.heuristic.model import Forest
from autoheur.train.learner import Floats
from autoheur.train.scoring import score


@attrs.frozen(eq=False)
class ForestModel:
    """A forest with the choices that it scores."""

    trees: Forest
    choices: tuple[str, ...]

    def scores(self, matrix: Floats) -> Floats:
        return score(self.trees, matrix, self.choices)

    def forest(self) -> Forest:
        return self.trees
