"""Names from data end up as strings, identifiers of our own making, or harmless comments; never as code."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from autoheur.codegen import TARGETS, compile_artifact, generate, lowering
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.artifact import Artifact, Precondition, Seen
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.types import Feature, Value

HOSTILE = [
    '"); import os #',
    "'); import os #",
    "\n    import os\n",
    "\r\nimport os\x0cimport os",
    "back\\",
    'ends with "',
    '"""; import os; """',
    "naïve ☃ \U0001f600",
    "\u202e\u2028import os",
    "\ud800",
    "",
    " ",
    "None",
    "class",
    "float",
    "problem",
    "_evaluate",
    "__import__('os').system('true')",
    "coding: utf-7",
    "fmt: off",
    "{0} %s $x",
    "x" * 500,
    "ﬁ",
    "\0",
]


def artifact_with(name: str, with_choice_features: bool = False) -> Artifact:
    """An artifact in which everything that is a name is ``name``, or starts with it where names must differ."""
    features = [
        Feature(name),
        Feature(name + "2", "categorical"),
        Feature("m"),
        Feature(name + "3", formula="m * 2"),
        Feature(name + "4", "categorical", formula="m > 2"),
    ]
    if with_choice_features:
        features += [Feature(name + "5", "categorical", of="choice"), Feature("b", of="choice")]
        features += [Feature(name + "6", formula="m * b")]
    choices = [name, name + "2"]
    inputs = [
        *(Input(name), Input(name + "2", name), Input(name + "3"), Input(name + "4", "True")),
        Input(name + "5", name) if with_choice_features else Input(choice=name),
    ]
    trees = [
        Tree([column, -1, -1], [0.5, 0.0, 0.0], [1, 0, 0], [2, 0, 0], [[], [1.0], [1.0 + column + step]])
        for step, column in enumerate([0, 1, 2, 3, 4])
    ]
    return Artifact(
        operator=name,
        name=name,
        features=features,
        choices=choices,
        model=Forest(inputs, [0.0], trees),
        policy=Policy(1.0, guard=True),
        choice_features={name + "5": [name, "other"], "b": [1.0, 2.0]} if with_choice_features else {},
        precondition=Precondition(Fingerprint("cuda", capability=name), "m != 7 and m < 100"),
        seen={name + "2": Seen(categories=[name, name + "b"]), name: Seen(0.0, 9.0)},
        provenance={"learner": name, "dataset": name},
    )


EXPECTED_IMPORTS = {
    "python": {"math", "collections.abc", "typing"},
    "inductor": {
        *("math", "collections.abc", "typing", "torch._inductor.autoheuristic.autoheuristic_utils"),
        "torch._inductor.autoheuristic.learnedheuristic_interface",
    },
}
EXPECTED_CALLS = {
    *("float", "str", "sorted", "range", "len", "tuple", "dict", "zip", "found.values", "kept.append"),
    *("_ratio", "_evaluate", "_add_up", "shortlist", "decide", "rank", "context.get_value"),
    *("offered.items", "found.get", "CHOICES.get"),
}


@pytest.mark.parametrize("statements", [lowering.MAX_STATEMENTS, 0])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("with_choice_features", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_only_ever_a_string(
    name: str, with_choice_features: bool, target: str, statements: int, format_source: Callable[[str], str]
) -> None:
    with mock.patch.object(lowering, "MAX_STATEMENTS", statements):
        source = generate(artifact_with(name, with_choice_features), target)
    assert source.isascii()
    assert format_source(source) == source
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {n.module if isinstance(n, ast.ImportFrom) else n.names[0].name for n in imports}
    assert imported <= EXPECTED_IMPORTS[target]
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    if target == "inductor":
        calls.discard("str")
    assert calls <= EXPECTED_CALLS
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert {name, name + "2"} <= strings
    # The same names, innocent: the same code but for strings and identifiers.
    kinds = [type(node) for node in ast.walk(tree)]
    with mock.patch.object(lowering, "MAX_STATEMENTS", statements):
        innocent = ast.parse(generate(artifact_with("innocent", with_choice_features), target))
    assert kinds == [type(node) for node in ast.walk(innocent)]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_works_as_any_other(name: str) -> None:
    compiled = compile_artifact(artifact_with(name))
    problem: dict[str, Value] = {name: 1.0, name + "2": name, "m": 3}
    assert compiled.scores(problem) == compile_artifact(artifact_with("innocent")).scores(
        {"innocent": 1.0, "innocent2": "innocent", "m": 3}
    )
    assert compiled.decide(problem)[0] == name
    assert compiled.rank(problem) == [name, name + "2"]
    assert compiled.decide({**problem, name: 10.0})[1] == "out_of_range"
    assert compiled.decide({**problem, name + "2": "other"})[1] == "out_of_range"
    assert compiled.decide({**problem, "m": 7})[1] == "precondition"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_generated_file_can_be_imported(name: str, tmp_path: Path) -> None:
    """Among the names is an encoding declaration, which Python would obey in the first two lines of a file."""
    path = tmp_path / "generated.py"
    path.write_text(generate(artifact_with(name)), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("generated", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (name, name + "2") == module.CHOICES
    assert name in module.RAW_FEATURES
