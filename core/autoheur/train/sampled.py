"""Problems made up for learners that can use more of them than were measured."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

import attrs
import numpy as np
import polars as pl

from autoheur.dataset.columns import feature_columns
from autoheur.dataset.dataset import PROBLEM_DTYPES, Dataset
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.artifact import Seen
from autoheur.heuristic.model import Input
from autoheur.heuristic.reference import inside
from autoheur.learning import Floats
from autoheur.train.examples import matrix
from autoheur.types import Feature, Problem

Sampler = Callable[[Random], Iterator[Problem]]
"""Yields problems of an operator on the device trained for, without end; all randomness comes from its argument."""

_TRIES = 3
"""So many problems are drawn for each that is asked for; those out of range are dropped."""


@attrs.define(eq=False)
class SampledProblems:
    """Draws problems within the ranges and categories of ``seen``. A class, so that it travels to other processes."""

    sampler: Sampler
    features: Sequence[Feature]
    inputs: Sequence[Input]
    seen: Mapping[str, Seen]
    seed: int
    _drawn: tuple[int, Floats] | None = None

    def __call__(self, count: int) -> Floats:
        """Up to ``count`` problems, N x F, in the order of ``inputs``; the same ones every time."""
        if self._drawn is None or self._drawn[0] != count:
            self._drawn = count, self._draw(count)
        return self._drawn[1]

    def _draw(self, count: int) -> Floats:
        problems = list(itertools.islice(self.sampler(Random(self.seed)), _TRIES * count))
        if not problems:
            return np.empty((0, len(self.inputs)))
        columns = feature_columns(_dataset(problems, self.features), self.features)
        rows = matrix(columns, self.inputs, len(problems))
        return rows[inside(self.seen, columns, len(problems))][:count]


def _dataset(problems: Sequence[Problem], features: Sequence[Feature]) -> Dataset:
    """The problems as a dataset without measurements."""
    raw = [feature for feature in features if not feature.derived]
    table = pl.DataFrame(
        [
            pl.Series(
                feature.name,
                [str(p[feature.name]) if feature.kind == "categorical" else p[feature.name] for p in problems],
                PROBLEM_DTYPES[feature.kind, feature.integer],
                strict=False,
            )
            for feature in raw
        ]
    )
    return Dataset("", tuple(raw), (), Fingerprint(), {}, table, pl.DataFrame())
