"""Parameter grids, and running through them on all cores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from autoheur.errors import AutoheurError, InputError, PluginError
from autoheur.train.learner import Learner

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


def run_all(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    progress: Progress | None = None,
    describe: Callable[[Task], str] = str,
) -> list[Result]:
    """Run ``work`` on every task, on all cores; results come in the order of the tasks.

    ``describe`` names a task for ``progress``. Threads by default, since fitting releases the interpreter lock;
    ``joblib.parallel_config`` chooses another backend, for example Ray's.

    Raises:
        PluginError: the work on a task failed, for example because a learner cannot do with a parameter or the data.
    """

    def guarded(task: Task) -> Result:
        try:
            return work(task)
        except AutoheurError:
            raise
        except Exception as error:
            raise PluginError(
                f"{describe(task)} failed: {' '.join(f'{type(error).__name__}: {error}'.split())}"
            ) from error

    results: list[Result] = []
    backend, _ = get_active_backend(prefer="threads")
    # Not every backend can hand results over one by one; progress then comes in the end.
    return_as = "generator" if backend.supports_return_generator else "list"
    jobs = Parallel(n_jobs=-1, prefer="threads", return_as=return_as)
    finished: Iterable[Any] = jobs(delayed(guarded)(task) for task in tasks)
    for task, result in zip(tasks, finished, strict=True):
        results.append(result)
        if progress is not None:
            progress(len(results), len(tasks), describe(task))
    return results
