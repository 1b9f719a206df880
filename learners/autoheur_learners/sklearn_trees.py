"""Fitted scikit-learn trees -> trees of a forest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autoheur.heuristic.model import Tree
from autoheur.train.learner import Floats


def convert(fitted: Any, values: Callable[[Floats], Floats]) -> Tree:
    """Convert scikit-learn's ``tree_``, whose children come after their parents too.

    ``values`` turns the leaves' values (L x outputs x classes) into those of the forest (L x width).
    """
    leaf = fitted.children_left < 0
    found = iter(values(fitted.value[leaf]).tolist())
    return Tree(
        feature=np.where(leaf, -1, fitted.feature).tolist(),
        threshold=np.where(leaf, 0.0, fitted.threshold).tolist(),
        left=fitted.children_left.tolist(),
        right=fitted.children_right.tolist(),
        value=[next(found) if at_leaf else [] for at_leaf in leaf],
    )
