"""Large, deep and malformed models: code stays small, compiles, or is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from autoheur.codegen import compile_artifact, generate
from autoheur.errors import InputError
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.types import Feature

NAMES = ("m", "k", "n", "x")
FEATURES = [Feature(name) for name in NAMES]


def random_tree(leaves: int, source: random.Random, inputs: int) -> Tree:
    """Grow by splitting the shallowest leaf."""
    tree = Tree([-1], [0.0], [0], [0], [[source.random()]])
    frontier = [0]
    while len(frontier) < leaves:
        node = frontier.pop(0)
        tree.feature[node] = source.randrange(inputs)
        tree.threshold[node] = source.random() * 1000
        for side in (tree.left, tree.right):
            side[node] = len(tree.feature)
            frontier.append(side[node])
            tree.feature.append(-1)
            tree.threshold.append(0.0)
            tree.left.append(0)
            tree.right.append(0)
            tree.value.append([source.random()])
    return tree


def chain(length: int) -> Tree:
    """``x <= 0``, else ``x <= 1``, else …: a tree as deep as it has tests; every other one turns left."""
    tree = Tree([], [], [], [], [])
    for step in range(length):
        leaf, onward = 2 * step + 1, 2 * step + 2
        upward = step % 2 == 0
        tree.feature.extend([3, -1])
        tree.threshold.extend([float(step) if upward else float(2 * length - step), 0.0])
        tree.left.extend([leaf if upward else onward, 0])
        tree.right.extend([onward if upward else leaf, 0])
        tree.value.extend([[], [float(step)]])
    for column, last in ((tree.feature, -1), (tree.left, 0), (tree.right, 0)):
        column.append(last)
    tree.threshold.append(0.0)
    tree.value.append([-1.0])
    return tree


def artifact_of(trees: list[Tree], choices: int = 2) -> Artifact:
    labels = [f"choice_{index}" for index in range(choices)]
    inputs = [*(Input(name) for name in NAMES), *(Input(choice=label) for label in labels)]
    return Artifact("op", "test", FEATURES, labels, Forest(inputs, [0.5], trees), Policy(1.0, guard=False))


def problems(count: int) -> list[dict[str, float]]:
    source = random.Random(5)
    return [{name: source.random() * 1000 for name in NAMES} for _ in range(count)]


def test_an_ensemble_of_200_trees_stays_below_500_kb_and_is_not_copied_per_choice(
    reference: Any, format_source: Callable[[str], str]
) -> None:
    source = random.Random(0)
    artifact = artifact_of([random_tree(31, source, len(NAMES) + 54) for _ in range(200)], choices=54)
    text = generate(artifact)
    assert len(text) < 500_000
    assert format_source(text) == text
    compiled = compile_artifact(artifact)
    for problem in problems(3):
        assert compiled.scores(problem) == reference.scores(artifact, problem)


def test_a_tree_for_many_choices_is_written_once_and_parts_only_where_choices_do(reference: Any) -> None:
    source = random.Random(1)
    artifact = artifact_of([random_tree(32, source, len(NAMES) + 54)], choices=54)
    text = generate(artifact)
    assert text.count("    if ") < 40
    compiled = compile_artifact(artifact)
    for problem in problems(20):
        assert compiled.scores(problem) == reference.scores(artifact, problem)


def test_a_pair_of_trees_reads_as_nested_conditions_without_the_choice(reference: Any) -> None:
    tree = Tree([4, 0, 1, -1, -1, -1, -1], [0.5, 652.5, 7.5, 0, 0, 0, 0], [1, 3, 5, 0, 0, 0, 0], [2, 4, 6, 0, 0, 0, 0],
                [[], [], [], [1.0], [2.0], [1.5], [1.5]])  # fmt: skip
    artifact = attrs.evolve(artifact_of([tree]), features=[Feature("m", integer=True), *FEATURES[1:]])
    text = generate(artifact)
    assert "if m <= 652:" in text
    assert "k" not in text.split("def _evaluate")[1].split("\n", 2)[2].replace("checked", "")  # equal branches: no test
    assert "choice =" not in text.replace("==", "=").replace("!=", "=")
    for m in (652, 653):
        problem = {"m": m, "k": 1, "n": 1, "x": 1}
        assert compile_artifact(artifact).scores(problem) == reference.scores(artifact, problem)


@pytest.mark.parametrize("depth", [20, 300, 3000])
def test_a_tree_of_any_depth_compiles(depth: int, reference: Any, format_source: Callable[[str], str]) -> None:
    artifact = artifact_of([chain(depth), chain(7)])
    text = generate(artifact)
    assert format_source(text) == text
    compiled = compile_artifact(artifact)
    for x in (-1.0, 0.0, 5.5, depth / 2, depth - 0.5, depth + 1.0, 3.0 * depth):
        problem = {"m": 1, "k": 1, "n": 1, "x": x}
        assert compiled.scores(problem) == reference.scores(artifact, problem)


def test_a_node_with_two_parents_is_refused() -> None:
    """Sixty such nodes would otherwise be two to the sixty branches."""
    count = 60
    nodes = range(count)
    tree = Tree(
        feature=[*([0] * count), -1],
        threshold=[float(node) for node in nodes] + [0.0],
        left=[node + 1 for node in nodes] + [0],
        right=[node + 1 for node in nodes] + [0],
        value=[*([[]] * count), [1.0]],
    )
    with pytest.raises(InputError, match="tree 0: a node has two parents; train it again"):
        generate(artifact_of([tree]))


@pytest.mark.parametrize("leaf", [float("nan"), float("inf"), 1.7e308])
def test_scores_that_could_be_infinite_or_nan_are_refused(leaf: float) -> None:
    trees = [Tree([-1], [0.0], [0], [0], [[leaf]]) for _ in range(2)]
    with pytest.raises(InputError, match="not all finite"):
        generate(artifact_of(trees))


def test_a_threshold_that_is_not_a_number_is_refused() -> None:
    tree = Tree([0, -1, -1], [float("nan"), 0, 0], [1, 0, 0], [2, 0, 0], [[], [1.0], [2.0]])
    with pytest.raises(InputError, match="the threshold is not a number"):
        generate(artifact_of([tree]))
