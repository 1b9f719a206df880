"""Problems made up for learners that can use more of them than were measured."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random

import numpy as np
import polars as pl

from autoheur.dataset.columns import feature_columns
from autoheur.dataset.dataset import PROBLEM_DTYPES, Dataset
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.artifact import Seen
from autoheur.heuristic.model import Input
from autoheur.train.examples import matrix
from autoheur.train.guarding import within
from autoheur.train.learner import Floats
from autoheur.types import Feature, Problem

Sampler = Callable[[Random], Iterator[Problem]]
"""Yields problems of an operator on the device trained for, without end; all randomness comes from its argument."""

_TRIES = 3
"""So many problems are drawn for each that is asked for; those out of range are dropped."""


def drawing(
    sampler: Sampler, features: Sequence[Feature], inputs: Sequence[Input], seen: Mapping[str, Seen], seed: int
) -> Callable[[int], Floats]:
    """A function that draws up to N problems within the ranges and categories of ``seen``: N x F, in these inputs."""

    @lru_cache(maxsize=1)
    def draw(count: int) -> Floats:
        problems = list(itertools.islice(sampler(Random(seed)), _TRIES * count))
        if not problems:
            return np.empty((0, len(inputs)))
        rows = matrix(feature_columns(_dataset(problems, features), features), inputs)
        return rows[within(seen, inputs, rows)][:count]

    return draw


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
