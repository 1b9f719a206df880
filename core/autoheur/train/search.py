"""Candidates: learners with parameters, fitted and checked, on all cores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, get_args

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from autoheur.errors import AutoheurError, InputError, PluginError, describe
from autoheur.heuristic.model import Forest, Input, Statistic, flaw
from autoheur.learning import Examples, Learner, row_inputs

Progress = Callable[[int, int, str], None]
"""Called with the number of tasks done, their total, and the name of the one just done."""

Task = TypeVar("Task")
Result = TypeVar("Result")

Candidate = tuple[Learner, Mapping[str, Any]]


def candidates(
    learners: Sequence[Learner], overrides: Mapping[str, Sequence[Any]], one_each: bool = False
) -> list[Candidate]:
    """Every learner with every combination of its parameters, the first parameter varying slowest.

    ``overrides`` replaces the values of a parameter in the grid of every learner that has it. With ``one_each`` only
    the first value is taken of the parameters that it does not replace.

    Raises:
        InputError: no learner has a parameter that is overridden, or one is given no value.
    """
    known = {name: None for learner in learners for name in learner.grid}
    for name, values in overrides.items():
        if name not in known:
            owners = "; ".join(f"{learner.name}: {', '.join(learner.grid)}" for learner in learners)
            raise InputError(f"grid: no parameter {name!r} (parameters of {owners})")
        if not values:
            raise InputError(f"grid: parameter {name!r} has no value")
    found: list[Candidate] = []
    for learner in learners:
        grid = {name: overrides.get(name, values[:1] if one_each else values) for name, values in learner.grid.items()}
        found += ((learner, dict(zip(grid, values, strict=True))) for values in itertools.product(*grid.values()))
    return found


def label(candidate: Candidate) -> str:
    """How a candidate is called in progress and messages."""
    learner, parameters = candidate
    return f"{learner.name} " + " ".join(f"{name}={value}" for name, value in parameters.items())


def fit(candidate: Candidate, examples: Examples) -> Forest:
    """Fit one candidate, and check what comes back.

    Raises:
        InputError: a parameter that the learner does not have, or a value out of its range.
        PluginError: the learner returned something else than a forest over the inputs of the examples.
    """
    learner, parameters = candidate
    forest = learner.fit(examples, parameters)
    found = _flaw(forest, examples)
    if found:
        raise PluginError(f"{label(candidate)}: what the learner returned cannot be used: {found}")
    return forest


def _flaw(forest: Any, examples: Examples) -> str | None:
    if not isinstance(forest, Forest):
        return f"a {type(forest).__name__}, not a Forest"
    if forest.layout not in ("row", "vector"):
        return f"there is no layout {forest.layout!r}"
    if forest.statistic not in get_args(Statistic):
        return f"there is no statistic {forest.statistic!r}"
    if forest.precision not in ("float32", "float64"):
        return f"there is no precision {forest.precision!r}"
    if forest.layout == "vector" and examples.pair_inputs:
        return "a forest of layout 'vector', but choices have features here"
    known = set(examples.inputs if forest.layout == "vector" else row_inputs(examples))
    known |= {Input(choice=choice) for choice in examples.choices}
    unknown = next((column for column in forest.inputs if column not in known), None)
    if unknown is not None:
        return f"its input {unknown} is none of the examples'"
    try:
        return flaw(forest, len(examples.choices))
    except (TypeError, ValueError, IndexError) as error:
        return f"its trees are not made of lists of numbers ({describe(error)})"


def run_all(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    progress: Progress | None = None,
    name: Callable[[Task], str] = str,
) -> list[Result | PluginError]:
    """Run ``work`` on every task, on all cores; results come in the order of the tasks.

    Where the work on a task fails, for example because a learner cannot do with a parameter or the data, the error
    takes the place of the result and names the task. ``name`` names a task, also for ``progress``. Threads by default,
    since fitting releases the interpreter lock; ``joblib.parallel_config`` chooses another backend, for example Ray's.

    Raises:
        InputError: what the work raises for the user.
    """

    def guarded(task: Task) -> Result | PluginError:
        try:
            return work(task)
        except PluginError as error:
            return error
        except AutoheurError:
            raise
        except Exception as error:
            return PluginError(f"{name(task)} failed: {describe(error)}")

    results: list[Result | PluginError] = []
    backend, _ = get_active_backend(prefer="threads")
    # Not every backend can hand results over one by one; progress then comes in the end.
    return_as = "generator" if backend.supports_return_generator else "list"
    jobs = Parallel(n_jobs=-1, prefer="threads", return_as=return_as)
    finished: Iterable[Any] = jobs(delayed(guarded)(task) for task in tasks)
    for task, result in zip(tasks, finished, strict=True):
        results.append(result)
        if progress is not None:
            progress(len(results), len(tasks), name(task))
    return results
