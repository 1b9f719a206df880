"""Cross-fitting: every problem is scored by a model that has not seen it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from autoheur.errors import InputError
from autoheur.train.learner import Examples, FittedModel, Floats
from autoheur.train.search import Candidate, Progress, label, run_all
from autoheur.train.splits import Indices

FEW = 1000
"""With fewer problems than this there are ten folds instead of five: there, every problem fitted counts."""


def folds(examples: Examples, seed: int) -> list[Indices]:
    """Deal the problems out at random into five folds, ten where they are :data:`FEW`, each sorted.

    A problem that comes twice, as one of train and of val may, is one problem here.

    Raises:
        InputError: fewer than two different problems.
    """
    _, problem = np.unique(examples.matrix, axis=0, return_inverse=True)
    problem = problem.reshape(-1)
    count = int(problem.max()) + 1
    if count < 2:
        raise InputError("train: all measurements are of one problem, which leaves none to hold out; measure more")
    order = np.random.RandomState(seed).permutation(count)
    fold_of = np.empty(count, np.intp)
    for fold, dealt in enumerate(np.array_split(order, min(count, 10 if count < FEW else 5))):
        fold_of[dealt] = fold
    return [np.flatnonzero(fold_of[problem] == fold) for fold in range(int(fold_of.max()) + 1)]


def first_of_each(examples: Examples) -> NDArray[np.bool_]:
    """Whether a problem (P) is the first of its kind here: twice the same is no more evidence than once."""
    _, first = np.unique(examples.matrix, axis=0, return_index=True)
    found = np.zeros(len(examples), bool)
    found[first] = True
    return found


@attrs.frozen(eq=False)
class CrossFit:
    """One candidate, cross-fitted: ``scores`` (P x C) are out of fold, ``model`` is fitted to all P problems."""

    candidate: Candidate
    scores: Floats
    model: FittedModel


@attrs.frozen(eq=False)
class _Task:
    candidate: Candidate
    held_out: Indices | None

    def __str__(self) -> str:
        return label(self.candidate)


def cross_fit(
    examples: Examples, candidates: Sequence[Candidate], parts: Sequence[Indices], progress: Progress | None = None
) -> list[CrossFit]:
    """Fit every candidate once without each part and once on everything, on all cores."""

    def fit(task: _Task) -> tuple[FittedModel | None, Floats | None]:
        learner, parameters = task.candidate
        if task.held_out is None:
            return learner.fit(examples, parameters), None
        kept = np.setdiff1d(np.arange(len(examples)), task.held_out, assume_unique=True)
        model = learner.fit(examples.take(kept), parameters)
        return None, model.scores(examples.matrix[task.held_out])

    held_out: list[Indices | None] = [*parts, None]
    tasks = [_Task(candidate, part) for candidate in candidates for part in held_out]
    results = run_all(fit, tasks, progress)
    fitted = []
    for position, candidate in enumerate(candidates):
        own = results[position * len(held_out) : (position + 1) * len(held_out)]
        scores = np.empty((len(examples), len(examples.choices)))
        for part, (_, found) in zip(parts, own[:-1], strict=True):
            assert found is not None
            scores[part] = found
        model, _ = own[-1]
        assert model is not None
        fitted.append(CrossFit(candidate, scores, model))
    return fitted
