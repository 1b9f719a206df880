"""A learner that fails is one error that names it and its parameters."""

from __future__ import annotations

import pytest

from autoheur.errors import AutoheurError, InputError, PluginError
from autoheur.train.search import run_all


def test_a_failing_task_is_named_in_one_line() -> None:
    def work(task: int) -> int:
        if task == 2:
            raise OverflowError("too\nlarge")
        return task

    with pytest.raises(PluginError, match=r"^tree depth=2 failed: OverflowError: too large$"):
        run_all(work, [1, 2, 3], describe=lambda task: f"tree depth={task}")


def test_an_error_made_for_the_user_stays_as_it_is() -> None:
    def work(task: int) -> int:
        raise InputError("no such parameter")

    with pytest.raises(AutoheurError, match=r"^no such parameter$"):
        run_all(work, [1])
