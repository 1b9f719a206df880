"""A learner that fails, or returns what cannot be used, is named with its parameters and left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pytest

from autoheur.dataset.dataset import Dataset
from autoheur.errors import AutoheurError, InputError, PluginError
from autoheur.heuristic.model import Input, Tree
from autoheur.learning import Examples, Forest
from autoheur.train.search import fit, run_all
from autoheur.train.training import TrainRequest, train
from autoheur.types import Feature
from autoheur_learners.regression_tree import RegressionTree


def test_a_failing_task_is_named_in_one_line_and_the_others_go_on() -> None:
    def work(task: int) -> int:
        if task == 2:
            raise OverflowError("too\nlarge")
        return task

    first, second, third = run_all(work, [1, 2, 3], name=lambda task: f"tree depth={task}")
    assert (first, third) == (1, 3)
    assert isinstance(second, PluginError)
    assert str(second) == "tree depth=2 failed: OverflowError: too large"


def test_an_error_made_for_the_user_stays_as_it_is() -> None:
    def work(task: int) -> int:
        raise InputError("no such parameter")

    with pytest.raises(AutoheurError, match=r"^no such parameter$"):
        run_all(work, [1])


class Returns:
    """A learner that returns what it was made with, whatever the examples."""

    name = "returns"
    description = ""
    grid: Mapping[str, Sequence[Any]] = {"size": (1,)}

    def __init__(self, returned: Any) -> None:
        self.returned = returned

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> Forest:
        if isinstance(self.returned, Exception):
            raise self.returned
        return self.returned  # type: ignore[no-any-return]


GOOD = Forest([Input("m")], [0.0, 0.0], [Tree([-1], [0.0], [0], [0], [[1.0, 2.0]])], "vector")


def changed(**changes: Any) -> Forest:
    return attrs.evolve(GOOD, **changes)


def tree(**changes: Any) -> Forest:
    return changed(trees=[attrs.evolve(GOOD.trees[0], **changes)])


BAD = [
    (None, "a NoneType, not a Forest"),
    (changed(layout="rows"), "there is no layout 'rows'"),
    (changed(statistic="product"), "there is no statistic 'product'"),
    (changed(precision="float16"), "there is no precision 'float16'"),
    (changed(inputs=[Input("depth")]), r"its input Input\(feature='depth'.* is none of the examples'"),
    (changed(base=[0.0]), "the model's base has 1 values, not 2"),
    (changed(base=[0.0, float("nan")]), "the model's scores are not all finite numbers"),
    (tree(value=[[1.0]]), "tree 0, leaf 0: 1 values, not 2"),
    (tree(feature=[3], left=[1], right=[2]), "tree 0, node 0: no model input 3"),
    (tree(value=[None]), "its trees are not made of lists of numbers"),
]


@pytest.mark.parametrize(("returned", "message"), BAD, ids=[message for _, message in BAD])
def test_what_a_learner_returns_is_checked(returned: Any, message: str) -> None:
    times = np.array([[1.0, 2.0], [2.0, 1.0]])
    examples = Examples((Input("m"),), ("a", "b"), np.array([[1.0], [2.0]]), times)
    assert fit((Returns(GOOD), {}), examples) is GOOD
    with pytest.raises(PluginError, match=r"^returns size=1: what the learner returned cannot be used: " + message):
        fit((Returns(returned), {"size": 1}), examples)


@pytest.mark.parametrize("protocol", ["calibrated", "autoheuristic"])
@pytest.mark.parametrize("returned", [None, RuntimeError("no idea")], ids=["returns", "raises"])
def test_a_bad_learner_is_named_and_left_out(
    make_dataset: Callable[..., Dataset], features: Sequence[Feature], protocol: str, returned: Any
) -> None:
    rows = [(m, 1, "x", c, 1.0 + (c == "pad") * m / 50) for m in range(1, 99) for c in ("orig", "pad") for _ in "123"]

    def trained(*learners: Any) -> Any:
        return train(
            TrainRequest(
                operator="toy", features=features, train=[make_dataset(rows)], learners=learners, protocol=protocol
            )
        )

    result = trained(Returns(returned), RegressionTree())
    assert {row.learner for row in result.rows} == {"regression_tree"}
    [note] = [note for note in result.notes if note.startswith("returns size=1")]
    assert note.endswith("it is left out")
    with pytest.raises(PluginError, match=r"^returns size=1"):
        trained(Returns(returned))
