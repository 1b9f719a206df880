"""The reference interpreter: what forest, guard and policy make of many problems at once.

Evaluating, explaining and calibrating go through here; generated code is independent of it and compared with it.
Everything is bit for bit as scikit-learn and generated code have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from autoheur.heuristic.artifact import Seen
from autoheur.heuristic.model import Forest, Input, Statistic, Tree

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Positions = NDArray[np.intp]
Matrix = NDArray[np.float32] | NDArray[np.float64]

_ROWS = 16_384
"""Rows evaluated at a time: their inputs stay in the processor's cache while all trees pass over them."""


@attrs.frozen(eq=False)
class _Arrays:
    """A tree for vectorised walks: leaves point at themselves, so that every row takes ``depth`` steps."""

    feature: Positions
    threshold: Floats
    left: Positions
    right: Positions
    value: Floats
    depth: int

    @staticmethod
    def of(tree: Tree, value: Floats) -> _Arrays:
        feature = np.asarray(tree.feature, np.intp)
        leaf = feature < 0
        itself = np.arange(len(feature))
        return _Arrays(
            feature=np.where(leaf, 0, feature),
            threshold=np.asarray(tree.threshold, np.float64),
            left=np.where(leaf, itself, np.asarray(tree.left, np.intp)),
            right=np.where(leaf, itself, np.asarray(tree.right, np.intp)),
            value=value,
            depth=max(_depths(tree)),
        )

    def outputs(self, flat: Matrix, starts: Positions) -> Floats:
        """Leaf values, R x width; row r of the matrix starts at ``flat[starts[r]]``."""
        node = np.zeros(len(starts), np.intp)
        for _ in range(self.depth):
            goes_left = flat[starts + self.feature[node]] <= self.threshold[node]
            node = np.where(goes_left, self.left[node], self.right[node])
        leaves: Floats = self.value[node]
        return leaves


def _depths(tree: Tree) -> list[int]:
    """The number of tests before each node."""
    depths = [0] * len(tree.feature)
    for node, tested in enumerate(tree.feature):
        if tested >= 0:  # children come after their parent
            depths[tree.left[node]] = depths[tree.right[node]] = depths[node] + 1
    return depths


def _leaf_values(tree: Tree, width: int) -> Floats:
    value = np.zeros((len(tree.feature), width))
    for node, tested in enumerate(tree.feature):
        if tested < 0:
            value[node] = tree.value[node]
    return value


def evaluate(forest: Forest, matrix: Floats) -> Floats:
    """The forest's outputs, R x width; ``matrix`` (R x I) has a column per input of the forest."""
    trees = [_Arrays.of(tree, _leaf_values(tree, len(forest.base))) for tree in forest.trees]
    totals = np.empty((len(matrix), len(forest.base)))
    totals[:] = forest.base
    for low in range(0, len(matrix), _ROWS):
        flat, starts = _flat(forest, matrix[low : low + _ROWS])
        for tree in trees:
            totals[low : low + _ROWS] += tree.outputs(flat, starts)
    return totals


def comparisons(forest: Forest, matrix: Floats) -> float:
    """The mean number of comparisons that one evaluation of the forest takes on these rows (R x I)."""
    flat, starts = _flat(forest, matrix)
    steps = 0.0
    for tree in forest.trees:
        depths = np.asarray(_depths(tree), np.float64)[:, None]
        steps += float(_Arrays.of(tree, depths).outputs(flat, starts).sum())
    return steps / max(1, len(matrix))


def _flat(forest: Forest, matrix: Floats) -> tuple[Matrix, Positions]:
    width = max(1, matrix.shape[1])
    with np.errstate(over="ignore"):
        flat = np.zeros((len(matrix), width), np.dtype(forest.precision))
        flat[:, : matrix.shape[1]] = matrix
    return flat.ravel(), np.arange(len(matrix)) * width


def path(forest: Forest, tree: Tree, row: Sequence[float]) -> Iterator[tuple[int, bool]]:
    """The way of one row (one value per input) through a tree: its nodes, and whether it goes left there, to the leaf.

    At the leaf, where it ends, the second is False.
    """
    with np.errstate(over="ignore"):
        rounded = np.asarray(row, np.dtype(forest.precision))
    node = 0
    while tree.feature[node] >= 0:
        left = bool(np.float64(rounded[tree.feature[node]]) <= tree.threshold[node])
        yield node, left
        node = tree.left[node] if left else tree.right[node]
    yield node, False


@attrs.frozen(eq=False)
class Questions:
    """P problems with C choices, as far as a forest looks at them.

    ``matrix`` (P x F) has a column for each of ``inputs``, which belong to the problem. ``offered`` (P x C) says which
    choices are possible. ``pairs`` (R x G) has a column for each of ``pair_inputs``, which belong to a choice or to
    both; its rows are the pairs offered, problem by problem.
    """

    inputs: Sequence[Input]
    matrix: Floats
    choices: Sequence[str]
    offered: Mask
    pair_inputs: Sequence[Input] = ()
    pairs: Floats | None = None

    def rows(self, columns: Sequence[Input]) -> Floats:
        """One row per pair that is offered (R x I), with a column for each of ``columns``."""
        problem, choice = np.nonzero(self.offered)
        own = {column: position for position, column in enumerate(self.inputs)}
        shared = {column: position for position, column in enumerate(self.pair_inputs)}
        rows = np.empty((len(problem), len(columns)))
        names = np.array(self.choices, object)
        for position, column in enumerate(columns):
            if column in own:
                rows[:, position] = self.matrix[problem, own[column]]
            elif column.choice is not None:
                rows[:, position] = names[choice] == column.choice
            else:
                assert self.pairs is not None, "there are columns for these inputs"
                rows[:, position] = self.pairs[:, shared[column]]
        return rows


def score(forest: Forest, questions: Questions, known: Sequence[str]) -> Floats:
    """Score every offered choice (P x C); NaN where a choice is not offered, or where the forest cannot score it.

    ``known`` are the choices that the forest was fitted to, in its order.
    """
    offered = questions.offered
    scores = np.full(offered.shape, np.nan)
    if forest.layout == "vector":
        place = {column: position for position, column in enumerate(questions.inputs)}
        outputs = evaluate(forest, questions.matrix[:, [place[column] for column in forest.inputs]])
        for position, choice in enumerate(questions.choices):
            if choice in known:
                scores[:, position] = outputs[:, list(known).index(choice)]
    else:
        scores[offered] = evaluate(forest, questions.rows(forest.inputs))[:, 0]
        if forest.needs_names:
            scores[:, [choice not in known for choice in questions.choices]] = np.nan
    scores[~offered] = np.nan
    return scores


def inside(seen: Mapping[str, Seen], columns: Mapping[str, NDArray[Any]], length: int) -> Mask:
    """Which of so many rows are within the ranges and categories seen; ``columns`` hold raw features by name."""
    fine = np.ones(length, bool)
    for name, found in seen.items():
        if name not in columns:
            continue
        if found.categories is not None:
            fine &= np.isin(columns[name].astype(object), np.array(found.categories, object))
        elif found.low is not None and found.high is not None:
            fine &= (columns[name] >= found.low) & (columns[name] <= found.high)
    return fine


@attrs.frozen(eq=False)
class Shortlists:
    """What a policy makes of the scores of P problems with C choices.

    ``order`` (P x C) are positions of choices, the best-scored first; those without a score come last. ``statistic``
    (P x C) is that of the choice at each place of the order, against those before it; NaN at the first place and where
    there is no score. ``kept`` (P x C, by choice) is the shortlist, ``scored`` (likewise) which choices have a score.
    """

    order: Positions
    statistic: Floats
    kept: Mask
    scored: Mask

    @property
    def decided(self) -> Mask:
        """Whether one choice is left (P)."""
        one: Mask = self.length == 1
        return one

    @property
    def confidence(self) -> Floats:
        """The statistic of the second place (P)."""
        return self.statistic[:, 1]

    @property
    def first(self) -> Positions:
        """The best-scored choice, also where it is not decided (P)."""
        return self.order[:, 0]

    @property
    def length(self) -> Positions:
        """How many choices are left (P)."""
        count: Positions = self.kept.sum(axis=1)
        return count

    @property
    def ends(self) -> Floats:
        """The threshold below which the choice at each place of the order is left out (P x C).

        Minus infinity, which is never, for the best-scored choice and for those without a score.
        """
        highest = np.fmax.accumulate(np.where(np.isnan(self.statistic), -np.inf, self.statistic), axis=1)
        ends: Floats = np.where(np.take_along_axis(self.scored, self.order, axis=1), highest, -np.inf)
        return ends

    def threshold_needed(self, good: Mask) -> Floats:
        """The smallest threshold at which the shortlist holds a choice that is ``good`` (P x C), for each problem (P).

        It is minus infinity where the best-scored choice is good, or one that has no score and so always stays; and NaN
        where no choice is good.
        """
        place = np.take_along_axis(good, self.order, axis=1).argmax(axis=1)
        needed: Floats = self.ends[np.arange(len(place)), place]
        needed[(good & ~self.scored).any(axis=1)] = -np.inf
        needed[~good.any(axis=1)] = np.nan
        return needed


def shortlists(
    scores: Floats, offered: Mask, statistic: Statistic, threshold: float, applies: Mask | None = None
) -> Shortlists:
    """Apply a policy to P problems.

    ``scores`` and ``offered`` are P x C; an offered choice whose score is NaN stays. Where ``applies`` (P) is false all
    that is offered stays; pass there what guard and precondition say.
    """
    scored = offered & ~np.isnan(scores)
    masked = np.where(scored, scores, -np.inf)
    # Choices without a score come after all scores, those that are not offered at the very end.
    position = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    order = np.lexsort((position, -masked, ~scored, ~offered), axis=1)
    ranked = np.take_along_axis(masked, order, axis=1)
    compared = np.full(scores.shape, np.nan)
    best = ranked[:, :1]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if statistic == "ratio":
            zero = np.where(best > 0, np.inf, np.nan)
            compared[:, 1:] = np.where(ranked[:, 1:] != 0, best / ranked[:, 1:], zero)
        elif statistic == "difference":
            compared[:, 1:] = best - ranked[:, 1:]
        else:
            compared[:, 1:] = np.cumsum(ranked, axis=1)[:, :-1]
    places = np.take_along_axis(scored, order, axis=1)
    compared[~places] = np.nan
    ended = np.logical_or.accumulate(np.nan_to_num(compared, nan=-np.inf, posinf=np.inf) > threshold, axis=1)
    kept = np.zeros(scores.shape, bool)
    np.put_along_axis(kept, order, places & ~ended, axis=1)
    kept |= offered & ~scored
    if applies is not None:
        kept = np.where(applies[:, None], kept, offered)
    return Shortlists(order, compared, kept, scored)
