"""For authors of learners: what a learner gets, what it returns, and helpers that make the one from the other.

A learner is any object with a name, a grid of parameters and a method ``fit`` that turns :class:`Examples` into a
:class:`~autoheur.heuristic.model.Forest`: a sum of trees over the inputs of the examples. A model of another kind,
such as nearest neighbours or a network, becomes a forest through :func:`distil`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from autoheur.heuristic.model import Forest, Input, Statistic, Tree

__all__ = [
    "Examples",
    "Floats",
    "Forest",
    "Input",
    "Learner",
    "Mask",
    "Statistic",
    "Tree",
    "choice_rows",
    "concatenate",
    "convert_tree",
    "distil",
    "row_inputs",
    "speedups",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Positions = NDArray[np.intp]


@attrs.frozen(eq=False)
class Examples:
    """Measured problems as a learner sees them: P problems, F inputs of a problem, C choices.

    ``inputs`` describes the F columns of ``matrix`` (P x F, float64). ``times`` (P x C) holds medians in milliseconds:
    NaN where a choice was not measured, did not pass the protocol's filter, or failed. Every problem has at least two
    finite times.

    Where choices have features, ``pair_inputs`` describes the G columns of ``pairs`` (R x G): what belongs to a choice,
    or to a problem and a choice together. Its R rows are the finite times, problem by problem, each in the order of
    ``choices``. A model is then to score a choice by these, so that it scores choices that it never saw. Where
    ``pair_inputs`` is empty, choices are told apart by their names alone.

    ``noise`` (P x C) is the standard error of the logarithm of each median, NaN likewise. ``weights`` (P) says how much
    each problem counts in fitting; ``None`` is 1 for all. A choice up to ``tolerance`` times slower than the best is
    good enough; at 1 only the best is. ``draw`` makes up to so many further problems within the range of these, without
    times: N x F, always the same ones. It is ``None`` where the operator cannot.
    """

    inputs: tuple[Input, ...]
    choices: tuple[str, ...]
    matrix: Floats
    times: Floats
    pair_inputs: tuple[Input, ...] = ()
    pairs: Floats | None = None
    noise: Floats | None = None
    weights: Floats | None = None
    tolerance: float = 1.05
    draw: Callable[[int], Floats] | None = None

    def take(self, indices: Positions) -> Examples:
        """The examples at ``indices``, in that order."""
        pairs = self.pairs
        if pairs is not None:
            counts = np.isfinite(self.times).sum(axis=1)
            starts = np.cumsum(counts) - counts
            rows = [np.arange(starts[index], starts[index] + counts[index]) for index in indices]
            pairs = pairs[np.concatenate(rows)] if rows else pairs[:0]
        return attrs.evolve(
            self,
            matrix=self.matrix[indices],
            times=self.times[indices],
            pairs=pairs,
            noise=None if self.noise is None else self.noise[indices],
            weights=None if self.weights is None else self.weights[indices],
        )

    def __len__(self) -> int:
        return len(self.matrix)


def concatenate(parts: Sequence[Examples]) -> Examples:
    """All examples of several parts, which have the same inputs and choices, in that order."""

    def join(arrays: Sequence[Floats | None]) -> Floats | None:
        present = [array for array in arrays if array is not None]
        return np.concatenate(present) if len(present) == len(arrays) else None

    return attrs.evolve(
        parts[0],
        matrix=np.concatenate([part.matrix for part in parts]),
        times=np.concatenate([part.times for part in parts]),
        pairs=join([part.pairs for part in parts]),
        noise=join([part.noise for part in parts]),
        weights=join([part.weights for part in parts]),
    )


class Learner(Protocol):
    """Fits examples. ``name`` is how the command line calls it.

    ``grid`` is the default search grid: parameter -> values to try, in order.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def grid(self) -> Mapping[str, Sequence[Any]]: ...

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> Forest:
        """Fit one model; deterministic for the same examples and parameters.

        The forest's inputs are taken from :func:`row_inputs` (layout ``row``) or from ``examples.inputs`` (layout
        ``vector``: one output per choice, in their order, for choices without features). Its ``statistic`` says what
        its scores mean.

        Raises:
            InputError: a parameter that the learner does not have, or a value out of its range.
        """
        ...


def row_inputs(examples: Examples) -> tuple[Input, ...]:
    """The columns of :func:`choice_rows`: the problem's inputs, then those of the pair, or one indicator per choice."""
    return (*examples.inputs, *(examples.pair_inputs or (Input(choice=choice) for choice in examples.choices)))


Real = TypeVar("Real", np.float32, np.float64)


def choice_rows(examples: Examples, dtype: type[Real]) -> tuple[NDArray[Real], Positions, Positions]:
    """One row per problem and choice that counts, problem by problem, each in the order of ``examples.choices``.

    Returns the matrix (R x I, of ``dtype``, with the columns of :func:`row_inputs`) and, per row, the positions of its
    problem and of its choice.
    """
    problem, choice = np.nonzero(np.isfinite(examples.times))
    own = len(examples.inputs)
    rows = np.zeros((len(problem), len(row_inputs(examples))), dtype)
    rows[:, :own] = examples.matrix[problem]
    if examples.pairs is not None:
        rows[:, own:] = examples.pairs
    else:
        rows[np.arange(len(problem)), own + choice] = 1
    return rows, problem, choice


def speedups(examples: Examples) -> Floats:
    """Mean time of a problem's choices over each choice's own: P x C, above 1 for the faster ones, NaN likewise."""
    ratio: Floats = np.nanmean(examples.times, axis=1, keepdims=True) / examples.times
    return ratio


def convert_tree(fitted: Any, values: Callable[[Floats], Floats]) -> Tree:
    """Convert a fitted scikit-learn tree (its attribute ``tree_``), whose children come after their parents too.

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


_MEASURED_WEIGHT = 2.0
"""What a measured problem weighs beside a drawn one."""


def distil(
    predict: Callable[[Floats], Floats],
    examples: Examples,
    statistic: Statistic,
    *,
    scores: Callable[[Floats], Floats] = lambda predicted: predicted,
    base: float = 0.0,
    drawn: int = 20_000,
    max_leaf_nodes: int = 64,
    min_samples_leaf: int = 20,
) -> Forest:
    """Turn any model into one compact tree, by fitting the tree to what the model predicts.

    ``predict`` takes problems (N x F, the columns of ``examples.inputs``) and returns what the tree is to learn of
    each: N x K. Where choices have features it takes rows (R x I, the columns of :func:`row_inputs`) and returns R x K.
    The tree sees the measured problems and, where the operator can make up more, ``drawn`` further ones, so that it
    learns how the model decides between the measurements too. ``scores`` turns what a leaf has learned (L x K) into
    scores: L x C, or L x 1 for rows; by default they are what was predicted. ``statistic`` says what the scores mean,
    and ``base`` is added to each.

    The idea is that of Breiman & Shang ("Born again trees", 1996) and Hinton, Vinyals & Dean (2015).
    """
    from sklearn.tree import DecisionTreeRegressor

    weights = np.ones(len(examples)) if examples.weights is None else examples.weights
    if examples.pair_inputs:
        rows, problem, _ = choice_rows(examples, np.float64)
        weights = weights[problem]
    else:
        rows, weights = examples.matrix, weights * _MEASURED_WEIGHT
        if drawn and examples.draw is not None:
            more = examples.draw(drawn)
            rows, weights = np.vstack([rows, more]), np.concatenate([weights, np.ones(len(more))])
    estimator = DecisionTreeRegressor(random_state=42, max_leaf_nodes=max_leaf_nodes, min_samples_leaf=min_samples_leaf)
    estimator.fit(rows, predict(rows), sample_weight=weights)
    tree = convert_tree(estimator.tree_, lambda leaves: scores(leaves[:, :, 0]))
    if examples.pair_inputs:
        return Forest(list(row_inputs(examples)), [base], [tree], "row", "float32", statistic)
    return Forest(list(examples.inputs), [base] * len(examples.choices), [tree], "vector", "float32", statistic)
