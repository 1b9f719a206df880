"""Examples, made in the test."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np
import pytest

from autoheur.heuristic import reference
from autoheur.heuristic.model import Forest, Input
from autoheur.learning import Examples, Floats
from autoheur.train.examples import questions

Score = Callable[..., Floats]


@pytest.fixture
def score() -> Score:
    """Score all choices (N x C) of problems (N x F) with a forest that was fitted to the examples."""

    def score(forest: Forest, examples: Examples, matrix: Floats | None = None) -> Floats:
        matrix = examples.matrix if matrix is None else matrix
        everything = attrs.evolve(
            examples, matrix=matrix, times=np.ones((len(matrix), len(examples.choices))), weights=None
        )
        return reference.score(forest, questions(everything), examples.choices)

    return score


@pytest.fixture
def make_examples() -> Callable[..., Examples]:
    """Random problems whose best choice depends on the inputs; of more than two choices some are missing."""

    def make(
        choices: Sequence[str] = ("orig", "pad"), problems: int = 400, seed: int = 1, tolerance: float = 1
    ) -> Examples:
        random = np.random.default_rng(seed)
        # Values that single precision cannot hold, so that rounding inputs makes a difference.
        matrix = np.column_stack(
            [
                random.integers(1, 100, problems) / 10,
                random.lognormal(10, 3, problems),
                random.integers(0, 2, problems).astype(float),
            ]
        )
        # Each choice is best in a range of the first input, the ranges in another order for the other dtype.
        place = matrix[:, :1] / 10 * len(choices)
        slow = 1 + np.abs(np.where(matrix[:, 2:] > 0, place, len(choices) - place) - np.arange(len(choices)) - 0.5)
        times = matrix[:, 1:2] * slow * random.uniform(0.95, 1.05, (problems, len(choices)))
        times[:, 2:][random.random(times[:, 2:].shape) < 0.2] = np.nan
        inputs = (Input("m"), Input("size"), Input("dtype", "x"))
        return Examples(inputs, tuple(choices), matrix, times, tolerance=tolerance)

    return make
