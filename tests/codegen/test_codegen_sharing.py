"""Common sub-expressions of derived features: computed once, with the same results and failures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest

from autoheur.codegen import compile_artifact, generate
from autoheur.codegen.nodes import Derive
from autoheur.codegen.sharing import share
from autoheur.formula import parse
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.types import Feature

RAW = ["m", "k", "shared_1"]


def identifiers() -> Callable[[str], str]:
    numbers = itertools.count()
    return lambda name: f"{name}__{next(numbers)}"


def shared(*texts: str) -> dict[str, str]:
    derives = [Derive(f"d{number}", parse(text)) for number, text in enumerate(texts)]
    sharing = share(derives, RAW, identifiers())
    return {derive.variable: derive.formula.text for derive in sharing.derives}


def test_what_occurs_twice_gets_a_variable_before_its_first_use() -> None:
    # The name shared_1 is a raw feature's, so another one is taken.
    found = shared("1 + abs(m * k - 7)", "abs(m * k - 7) * 3")
    assert list(found) == ["shared_1__0", "d0", "d1"]
    assert found == {"shared_1__0": "abs(m * k - 7)", "d0": "1 + shared_2", "d1": "shared_2 * 3"}


def test_a_feature_that_another_contains_serves_itself() -> None:
    assert shared("2 * abs(m * k - 7)", "abs(m * k - 7)") == {"d1": "abs(m * k - 7)", "d0": "2 * shared_2"}


def test_small_and_single_expressions_stay_where_they_are() -> None:
    texts = ("m * k + 1", "m * k + 2", "abs(m - k) * 5 + k")
    assert list(shared(*texts).values()) == list(texts)


@pytest.mark.parametrize(
    ("texts", "moved"),
    [
        (("log2(m * k - 9) if m > 0 else 0", "log2(m * k - 9) if k > 0 else 1"), False),
        (("log2(m * k - 9) if m > 0 else 0", "log2(m * k - 9) + k"), True),
        (("m > 1 and k / (m * k - 9) > 1", "m > 2 and k / (m * k - 9) > 1"), False),
        (("m > 1 and k / (m * k - 9) > 1", "k / (m * k - 9) > 1"), True),
        (("abs(m * k - 9) if m > 0 else 0", "abs(m * k - 9) if k > 0 else 1"), True),
        (("(m * k - 9) % 4 + k if m > 0 else 0", "(m * k - 9) % 4 + k if k > 0 else 1"), True),
    ],
)
def test_what_can_fail_leaves_a_branch_only_if_it_is_computed_outside_of_one_too(
    texts: Sequence[str], moved: bool
) -> None:
    assert (len(shared(*texts)) > len(texts) or any("shared_2" in text for text in shared(*texts).values())) == moved


def artifact(*formulas: str) -> Artifact:
    raw = [Feature("m", integer=True), Feature("k", integer=True), Feature("shared_1", integer=True)]
    derived = [Feature(f"d{number}", formula=text) for number, text in enumerate(formulas)]
    trees = [Tree([n, -1, -1], [1.5, 0, 0], [1, 0, 0], [2, 0, 0], [[], [1.0], [2.0 + n]]) for n in range(len(derived))]
    model = Forest([Input(feature.name) for feature in derived], [0.0], trees, "row", "float64", "score")
    return Artifact("op", "test", [*raw, *derived], ["a", "b"], model, Policy(0.0, guard=False))


def test_a_division_by_zero_in_a_branch_not_taken_stays_without_effect() -> None:
    made = compile_artifact(artifact("k / (m - 3 + 0) if m > 3 else 0", "k / (m - 3 + 0) if m > 5 else 1"))
    assert made.decide({"m": 3, "k": 2, "shared_1": 9}) == ("a", "decided", 2.0)


def test_generated_code_has_the_variable_once_and_scores_as_before() -> None:
    formulas = ("abs(m * k - shared_1) + 1", "abs(m * k - shared_1) / 4", "min(abs(m * k - shared_1), 2)")
    source = generate(artifact(*formulas))
    assert source.count("abs(m * k - shared_1)") == 1
    for m, k, third in itertools.product((1, 2, 9), (0, 4), (1, 8)):
        expected = 0.0
        for number, value in enumerate((abs(m * k - third) + 1, abs(m * k - third) / 4, min(abs(m * k - third), 2))):
            expected += 1.0 if value <= 1.5 else 2.0 + number
        problem = {"m": m, "k": k, "shared_1": third}
        assert compile_artifact(artifact(*formulas)).scores(problem) == (expected, expected)
