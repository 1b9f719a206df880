"""Random forests against the reference interpreter, in both forms of generated code."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from autoheur.codegen import compile_artifact, generate, lowering, trees
from autoheur.codegen.thresholds import float64_limit
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.train.figures import decide_all
from autoheur.types import Feature, Value

FEATURES = [
    Feature("m", integer=True),
    Feature("x"),
    Feature("kind", "categorical"),
    Feature("m*x", formula="m * x"),
    Feature("odd", "categorical", formula="m % 2 == 1"),
    Feature("steps", formula="floor(x) + ceil(m / 3)"),
]
DERIVED: Mapping[str, Callable[[Mapping[str, Any]], Value]] = {
    "m*x": lambda p: p["m"] * p["x"],
    "odd": lambda p: p["m"] % 2 == 1,
    "steps": lambda p: float(math.floor(p["x"])) + math.ceil(p["m"] / 3),
}
COLUMNS = [
    *(Input(name) for name in ("m", "x", "m*x", "steps")),
    *(Input("kind", text) for text in ("a", "b", "never")),
    *(Input("odd", text) for text in ("False", "True", "maybe")),
]

# Few distinct numbers, so that problems meet thresholds, leaves tie, and branches become equal.
NUMBERS = st.sampled_from([-2.0, -0.5, -0.0, 0.0, 0.1, 0.5, 1.0, 1.1, 2.5, 3.0, 7.0, 2.0**25 + 1, 1e300])
LEAVES = st.sampled_from([-1.5, 0.0, 0.1, 0.2, 0.3, 1.0, 1e-17, 1e16])


@st.composite
def random_trees(draw: st.DrawFn, inputs: int, width: int, depth: int) -> Tree:
    tree = Tree([], [], [], [], [])

    def grow(remaining: int) -> int:
        node = len(tree.feature)
        leaf = remaining == 0 or draw(st.integers(0, 4)) == 0
        tree.feature.append(-1 if leaf else draw(st.integers(0, inputs - 1)))
        tree.threshold.append(0.0 if leaf else draw(NUMBERS))
        tree.value.append([draw(LEAVES) for _ in range(width)] if leaf else [])
        tree.left.append(0)
        tree.right.append(0)
        if not leaf:
            tree.left[node] = grow(remaining - 1)
            tree.right[node] = grow(remaining - 1)
        return node

    grow(depth)
    return tree


@st.composite
def random_artifacts(draw: st.DrawFn) -> Artifact:
    choices = [f"choice {index}" for index in range(draw(st.integers(2, 4)))]
    layout: Literal["row", "vector"] = draw(st.sampled_from(["row", "vector"]))
    inputs = [*COLUMNS, *(Input(choice=choice) for choice in choices)] if layout == "row" else COLUMNS
    width = 1 if layout == "row" else len(choices)
    forest = Forest(
        inputs=list(inputs),
        base=[draw(LEAVES) for _ in range(width)],
        trees=draw(st.lists(random_trees(len(inputs), width, depth=4), max_size=4)),
        layout=layout,
        precision=draw(st.sampled_from(["float32", "float64"])),
    )
    policy = Policy(
        draw(st.sampled_from(["ratio", "difference", "score"])), draw(st.sampled_from([0.0, 1.0, 1.5])), False
    )
    return Artifact("op", "random", FEATURES, choices, forest, policy)


PROBLEMS = st.fixed_dictionaries(
    {
        "m": st.one_of(st.integers(0, 8), st.sampled_from([2**25 + 1, 2**25 + 2])),
        "x": st.one_of(NUMBERS, NUMBERS.map(float64_limit), st.floats(-1e6, 1e6)),
        "kind": st.sampled_from(["a", "b", "c"]),
    }
)
FORMS = st.sampled_from([lowering.MAX_STATEMENTS, 0])


@settings(max_examples=150, deadline=None)
@given(random_artifacts(), st.lists(PROBLEMS, min_size=1, max_size=8), FORMS, st.sampled_from([2, trees.MAX_HEIGHT]))
def test_generated_code_does_what_the_docstrings_of_forest_and_policy_say(
    reference: Any, artifact: Artifact, problems: list[dict[str, Value]], statements: int, height: int
) -> None:
    with mock.patch.object(lowering, "MAX_STATEMENTS", statements), mock.patch.object(trees, "MAX_HEIGHT", height):
        compiled = compile_artifact(artifact)
    for problem in problems:
        expected = reference.scores(artifact, problem, DERIVED)
        assert compiled.scores(problem) == expected
        order = sorted(range(len(expected)), key=lambda index: (-expected[index], index))
        assert compiled.rank(problem) == [artifact.choices[index] for index in order]
        choice, reason, statistic = compiled.decide(problem)
        wanted = reference.decide(artifact.policy, artifact.choices, expected)
        assert (choice, reason, repr(statistic)) == (*wanted[:2], repr(wanted[2]))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([-1.5, -1.0, 0.0, 0.5, 1.0, 2.0]), min_size=2, max_size=4), random_artifacts())
def test_training_and_generated_code_share_the_policy(scores: list[float], artifact: Artifact) -> None:
    """Evaluation while training counts exactly the decisions that generated code makes."""
    choices = [f"choice {index}" for index in range(len(scores))]
    artifact = Artifact("op", "constant", [], choices, Forest([], scores, [], "vector"), artifact.policy)
    choice, _, statistic = compile_artifact(artifact).decide({})
    counted = decide_all(np.array([scores]), np.ones((1, len(scores)), bool), artifact.policy)
    assert (choice is not None) == bool(counted.decided[0])
    assert choice in (None, choices[int(counted.choice[0])])
    if choice is not None:
        assert statistic == counted.confidence[0]


@settings(max_examples=30, deadline=None)
@given(random_artifacts(), FORMS)
def test_generated_code_is_formatted(format_source: Callable[[str], str], artifact: Artifact, statements: int) -> None:
    with mock.patch.object(lowering, "MAX_STATEMENTS", statements):
        for target in ("python", "inductor"):
            source = generate(artifact, target)
            assert format_source(source) == source
            assert generate(artifact, target) == source
