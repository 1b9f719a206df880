"""Random forests against the reference interpreter, in both forms of generated code."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from autoheur.codegen import compile_artifact, generate, lowering, trees
from autoheur.codegen.thresholds import float64_limit
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.model import Forest, Input, Policy, Tree
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
    "tiles": lambda p: float(math.ceil(p["m"] / p["b"])),
    "same": lambda p: p["type"] == p["kind"],
}
COLUMNS = [
    *(Input(name) for name in ("m", "x", "m*x", "steps")),
    *(Input("kind", text) for text in ("a", "b", "never")),
    *(Input("odd", text) for text in ("False", "True", "maybe")),
]
CHOICE_FEATURES = [
    Feature("b", of="choice"),
    Feature("type", "categorical", of="choice"),
    Feature("tiles", formula="ceil(m / b)"),
    Feature("same", "categorical", formula="type == kind"),
]
CHOICE_COLUMNS = [Input("b"), Input("tiles"), Input("type", "a"), Input("type", "never"), Input("same", "True")]

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
    """Models of all choices at once, of one choice by its name, and of one choice by its features."""
    form = draw(st.sampled_from(["vector", "names", "features"]))
    choices = [f"choice {index}" for index in range(draw(st.integers(2, 4)))]
    inputs, features = list(COLUMNS), list(FEATURES)
    if form == "names":
        inputs += [Input(choice=choice) for choice in choices]
    elif form == "features":
        inputs += CHOICE_COLUMNS
        features += CHOICE_FEATURES
    width = len(choices) if form == "vector" else 1
    forest = Forest(
        inputs=inputs,
        base=[draw(LEAVES) for _ in range(width)],
        trees=draw(st.lists(random_trees(len(inputs), width, depth=4), max_size=4)),
        layout="vector" if form == "vector" else "row",
        precision=draw(st.sampled_from(["float32", "float64"])),
        statistic=draw(st.sampled_from(["ratio", "difference", "score"])),
    )
    artifact = Artifact(
        "op", "random", features, choices, forest, Policy(draw(st.sampled_from([0.0, 1.0, 1.5])), False)
    )
    if form != "features":
        return artifact
    values: list[dict[str, Value]] = draw(st.lists(CHOICES, min_size=len(choices), max_size=len(choices)))
    return attrs.evolve(artifact, choice_features={name: [each[name] for each in values] for name in ("b", "type")})


CHOICES: st.SearchStrategy[dict[str, Value]] = st.fixed_dictionaries(
    {"b": st.sampled_from([0.5, 1.0, 4.0, 64.0]), "type": st.sampled_from(["a", "t", "u"])}
)
PROBLEMS = st.fixed_dictionaries(
    {
        "m": st.one_of(st.integers(0, 8), st.sampled_from([2**25 + 1, 2**25 + 2])),
        "x": st.one_of(NUMBERS, NUMBERS.map(float64_limit), st.floats(-1e6, 1e6)),
        "kind": st.sampled_from(["a", "b", "c"]),
    }
)
FORMS = st.sampled_from([lowering.MAX_STATEMENTS, 0])
OFFERED = st.lists(st.tuples(st.sampled_from([f"choice {i}" for i in range(7)]), CHOICES), min_size=1, max_size=6)


@settings(max_examples=200, deadline=None)
@given(
    *(random_artifacts(), st.lists(PROBLEMS, min_size=1, max_size=6), OFFERED, FORMS),
    st.sampled_from([2, trees.MAX_HEIGHT]),
)
def test_generated_code_does_what_the_reference_interpreter_does(
    reference: Any,
    artifact: Artifact,
    problems: list[dict[str, Value]],
    pairs: list[tuple[str, dict[str, Value]]],
    statements: int,
    height: int,
) -> None:
    """For the choices that training saw, and for a choice of some of them with others."""
    with mock.patch.object(lowering, "MAX_STATEMENTS", statements), mock.patch.object(trees, "MAX_HEIGHT", height):
        compiled = compile_artifact(artifact)
    offered = dict(pairs)
    for problem in problems:
        expected = reference.scores(artifact, problem, DERIVED)
        assert compiled.scores(problem) == expected
        order = sorted(range(len(expected)), key=lambda index: (-expected[index], index))
        assert compiled.rank(problem) == [artifact.choices[index] for index in order]
        names, reason, statistic = compiled.shortlist(problem)
        wanted = reference.shortlist(artifact, artifact.choices, expected)
        assert (names, reason, repr(statistic)) == (*wanted[:2], repr(wanted[2]))
        assert compiled.decide(problem)[0] == (names[0] if len(names) == 1 else None)

        scores = reference.scores(artifact, problem, DERIVED, offered)
        names, reason, statistic = compiled.shortlist(problem, offered if compiled.open else tuple(offered))
        wanted = reference.shortlist(artifact, tuple(offered), scores)
        assert (names, reason, repr(statistic)) == (*wanted[:2], repr(wanted[2]))


@settings(max_examples=30, deadline=None)
@given(random_artifacts(), FORMS)
def test_generated_code_is_formatted(format_source: Callable[[str], str], artifact: Artifact, statements: int) -> None:
    with mock.patch.object(lowering, "MAX_STATEMENTS", statements):
        for target in ("python", "inductor"):
            source = generate(artifact, target)
            assert format_source(source) == source
            assert generate(artifact, target) == source
