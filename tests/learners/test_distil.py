"""Any model becomes a forest: the learner in the documentation is one that is none itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autoheur.learning import Examples, Floats, choice_rows, distil

PLUGINS = Path(__file__).resolve().parents[2] / "docs" / "plugins.md"

MakeExamples = Callable[..., Examples]


@pytest.fixture
def documented() -> Any:
    """The learner that docs/plugins.md shows."""
    [code] = [block for block in re.findall(r"```python\n(.*?)```", PLUGINS.read_text(), re.S) if "distil" in block]
    scope: dict[str, Any] = {}
    exec(code, scope)
    return scope["NearestNeighbours"]()


@pytest.mark.parametrize("choices", [("orig", "pad"), ("a", "b", "c")])
def test_the_learner_in_the_documentation_learns(
    documented: Any, make_examples: MakeExamples, score: Callable[..., Floats], choices: tuple[str, ...]
) -> None:
    examples = make_examples(choices)
    forest = documented.fit(examples, {name: values[0] for name, values in documented.grid.items()})
    taken = np.where(np.isfinite(examples.times), score(forest, examples), -np.inf).argmax(axis=1)
    lost = examples.times[np.arange(len(taken)), taken] / np.nanmin(examples.times, axis=1)
    assert (lost < 1.05).mean() > 0.6
    assert len(forest.trees) == 1


def test_choices_with_features_are_distilled_row_by_row(make_examples: MakeExamples) -> None:
    from autoheur.learning import Input

    plain = make_examples(("a", "b", "c"))
    _, problem, choice = choice_rows(plain, np.float64)
    pairs = np.column_stack([2.0**choice, plain.matrix[problem, 0] * choice])
    examples = Examples(plain.inputs, plain.choices, plain.matrix, plain.times, (Input("block"), Input("work")), pairs)
    forest = distil(lambda rows: rows[:, 3] * 10, examples, "difference", max_leaf_nodes=8)
    assert (forest.layout, forest.statistic) == ("row", "difference")
    assert {forest.inputs[node] for node in forest.trees[0].feature if node >= 0} == {Input("block")}
    assert sorted(value[0] for value in forest.trees[0].value if value) == pytest.approx([10, 20, 40])
