"""Cross-fitting: every problem is scored by a model that has not seen it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from autoheur.errors import InputError, PluginError
from autoheur.heuristic import reference
from autoheur.heuristic.model import Forest
from autoheur.learning import Examples, Floats, Mask, Positions
from autoheur.train.examples import questions
from autoheur.train.search import Candidate, Progress, fit, label, run_all

FEW = 1000
"""With fewer problems than this there are ten folds instead of five: there, every problem fitted counts."""


def folds(examples: Examples, seed: int) -> list[Positions]:
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


def first_of_each(examples: Examples) -> Mask:
    """Whether a problem (P) is the first of its kind here: twice the same is no more evidence than once."""
    _, first = np.unique(examples.matrix, axis=0, return_index=True)
    found = np.zeros(len(examples), bool)
    found[first] = True
    return found


def score(forest: Forest, examples: Examples, known: Sequence[str]) -> Floats:
    """Score every choice that counts (P x C); ``known`` are the choices that the forest was fitted to."""
    return reference.score(forest, questions(examples), known)


@attrs.frozen(eq=False)
class CrossFit:
    """One candidate, cross-fitted: ``scores`` (P x C) are out of fold, ``forest`` is fitted to all P problems."""

    candidate: Candidate
    scores: Floats
    forest: Forest


@attrs.frozen(eq=False)
class _Task:
    candidate: Candidate
    held_out: Positions | None

    def __str__(self) -> str:
        return label(self.candidate)


def cross_fit(
    examples: Examples, candidates: Sequence[Candidate], parts: Sequence[Positions], progress: Progress | None = None
) -> tuple[list[CrossFit], list[str]]:
    """Fit every candidate once without each part and once on everything, on all cores.

    Returns those that could be fitted, and for each of the others one line that says why not.

    Raises:
        PluginError: none could be fitted.
    """

    def run(task: _Task) -> tuple[Forest, Floats | None]:
        if task.held_out is None:
            return fit(task.candidate, examples), None
        kept = np.setdiff1d(np.arange(len(examples)), task.held_out, assume_unique=True)
        forest = fit(task.candidate, examples.take(kept))
        return forest, score(forest, examples.take(task.held_out), examples.choices)

    held_out: list[Positions | None] = [*parts, None]
    tasks = [_Task(candidate, part) for candidate in candidates for part in held_out]
    results = run_all(run, tasks, progress)
    fitted: list[CrossFit] = []
    failed: list[PluginError] = []
    for position, candidate in enumerate(candidates):
        own = results[position * len(held_out) : (position + 1) * len(held_out)]
        broken = [result for result in own if isinstance(result, PluginError)]
        if broken:
            failed.append(broken[0])
            continue
        scores = np.empty((len(examples), len(examples.choices)))
        *out_of_fold, whole = (result for result in own if not isinstance(result, PluginError))
        for part, (_, found) in zip(parts, out_of_fold, strict=True):
            assert found is not None
            scores[part] = found
        fitted.append(CrossFit(candidate, scores, whole[0]))
    if not fitted:
        raise failed[0]
    return fitted, [f"{error}; it is left out" for error in failed]
