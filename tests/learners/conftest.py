"""Examples, made in the test."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from autoheur.heuristic.model import Input
from autoheur.train.learner import Examples


@pytest.fixture
def make_examples() -> Callable[..., Examples]:
    """Random problems whose best choice depends on the inputs; of more than two choices some are missing."""

    def make(choices: Sequence[str] = ("orig", "pad"), problems: int = 400, seed: int = 1) -> Examples:
        random = np.random.default_rng(seed)
        # Values that single precision cannot hold, so that rounding inputs makes a difference.
        matrix = np.column_stack(
            [
                random.integers(1, 100, problems) / 10,
                random.lognormal(10, 3, problems),
                random.integers(0, 2, problems).astype(float),
            ]
        )
        slow = np.arange(len(choices)) + matrix[:, :1]
        times = matrix[:, 1:2] * (1 + (slow % len(choices)) / 3) * random.uniform(0.95, 1.05, (problems, len(choices)))
        if len(choices) > 2:
            times[random.random(times.shape) < 0.2] = np.nan
            times[:, :2] = np.where(np.isnan(times[:, :2]), 1.0, times[:, :2])
        inputs = (Input("m"), Input("size"), Input("dtype", "x"))
        return Examples(inputs, tuple(choices), matrix, times, np.zeros_like(times))

    return make
