"""One row per problem and choice: the matrix behind models of layout ``row``."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from autoheur.heuristic.model import Input
from autoheur.train.learner import Examples, Floats


def row_inputs(examples: Examples) -> tuple[Input, ...]:
    """The columns of :func:`choice_rows`: the problem's inputs, then one indicator per choice."""
    return (*examples.inputs, *(Input(choice=choice) for choice in examples.choices))


Real = TypeVar("Real", np.float32, np.float64)


def choice_rows(examples: Examples, dtype: type[Real]) -> tuple[NDArray[Real], NDArray[np.intp], NDArray[np.intp]]:
    """Stack the choices that count, problem by problem, each in the order of ``examples.choices``.

    Returns the matrix (R x (F + C), of ``dtype``) and, per row, the positions of its problem and of its choice.
    """
    problem, choice = np.nonzero(np.isfinite(examples.times))
    rows = np.zeros((len(problem), len(examples.inputs) + len(examples.choices)), dtype)
    rows[:, : len(examples.inputs)] = examples.matrix[problem]
    rows[np.arange(len(problem)), len(examples.inputs) + choice] = 1
    return rows, problem, choice


def speedups(examples: Examples) -> Floats:
    """Mean time of a problem's choices over each choice's own: P x C, above 1 for the faster ones, NaN likewise."""
    ratio: Floats = np.nanmean(examples.times, axis=1, keepdims=True) / examples.times
    return ratio
