"""Artifacts that hold together field by field, yet could not be used: refused on reading."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autoheur.errors import ArtifactError
from autoheur.heuristic import artifact as artifacts
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.types import Feature


def plain() -> dict[str, Any]:
    tree = Tree([0, -1, -1], [0.5, 0.0, 0.0], [1, 0, 0], [2, 0, 0], [[], [1.0], [2.0]])
    artifact = Artifact(
        operator="example",
        name="example",
        features=[Feature("m", integer=True), Feature("half", formula="m / 2")],
        choices=["a", "b"],
        model=Forest([Input("half")], [0.0], [tree]),
        policy=Policy(0.1),
    )
    return dict(json.loads(artifacts.to_json(artifact)))


def refused(data: dict[str, Any], match: str) -> None:
    with pytest.raises(ArtifactError, match=match):
        artifacts.from_json(json.dumps(data))


def test_the_example_itself_is_good() -> None:
    artifacts.from_json(json.dumps(plain()))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"deep": [float("-inf")]}])
def test_provenance_that_could_not_be_written_again(value: object) -> None:
    refused({**plain(), "provenance": {"metric": value}}, "provenance")


@pytest.mark.parametrize("operator", ["~", "-", "not "])
def test_a_formula_nested_beyond_what_python_can_print(operator: str) -> None:
    data = plain()
    data["features"][1]["formula"] = "~" + operator * 900 + "m"
    refused(data, "feature 'half': formula")


def test_a_node_with_two_parents() -> None:
    data = plain()
    data["model"]["trees"][0]["right"][0] = 1
    refused(data, "two parents")


def test_a_derived_feature_that_is_called_whole_and_is_not() -> None:
    data = plain()
    data["features"][1]["integer"] = True
    refused(data, "whole numbers")
