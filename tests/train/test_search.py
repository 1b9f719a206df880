"""Parameter grids and running through them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from autoheur.errors import InputError
from autoheur.learning import Examples, Forest
from autoheur.train.search import candidates, label, run_all


class Named:
    """A learner that is only asked for its name and grid."""

    description = ""

    def __init__(self, name: str, grid: Mapping[str, Sequence[Any]]) -> None:
        self.name = name
        self.grid = grid

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> Forest:
        raise NotImplementedError


TREE = Named("tree", {"depth": (1, 2), "leaf": (3, 4)})
OTHER = Named("other", {"rate": (0.5,)})


def test_the_first_parameter_varies_slowest() -> None:
    found = [label(candidate) for candidate in candidates([TREE, OTHER], {})]
    assert found == [
        "tree depth=1 leaf=3", "tree depth=1 leaf=4", "tree depth=2 leaf=3", "tree depth=2 leaf=4", "other rate=0.5",
    ]  # fmt: skip


def test_overrides_replace_values_in_place() -> None:
    found = [dict(parameters) for _, parameters in candidates([TREE, OTHER], {"leaf": [9], "rate": [1, 2]})]
    assert found == [{"depth": 1, "leaf": 9}, {"depth": 2, "leaf": 9}, {"rate": 1}, {"rate": 2}]


def test_an_unknown_parameter_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"no parameter 'dept' \(parameters of tree: depth, leaf; other: rate\)"):
        candidates([TREE, OTHER], {"dept": [1]})


def test_a_parameter_without_values_is_an_error() -> None:
    with pytest.raises(InputError, match="'leaf' has no value"):
        candidates([TREE], {"leaf": []})


def test_results_come_in_the_order_of_candidates_and_each_is_reported() -> None:
    tasks = candidates([TREE], {"depth": [1, 2, 3], "leaf": [1, 2, 3]})
    later = threading.Event()
    reports: list[tuple[int, int, str]] = []

    def work(task: Any) -> str:
        if task is tasks[0]:
            later.wait(0.2)  # others overtake it where there is more than one core
        else:
            later.set()
        return label(task)

    results = run_all(work, tasks, lambda *report: reports.append(report), label)
    assert results == [label(task) for task in tasks]
    assert reports == [(done, 9, label(task)) for done, task in enumerate(tasks, 1)]


def test_an_error_in_a_candidate_is_the_callers() -> None:
    def work(task: Any) -> None:
        raise InputError("min_samples_leaf must be positive")

    with pytest.raises(InputError, match="must be positive"):
        run_all(work, candidates([TREE], {}))
