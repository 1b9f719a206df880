"""Every fault of a plugin is one line that names the hook; a plugin without faults has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from autoheur.checks import check
from autoheur.errors import InputError
from autoheur.heuristic.installed import Store
from autoheur.plugin import Choice, Feature, Operator, hookimpl
from autoheur.plugins import Source
from autoheur.registry import Registry
from autoheur.types import Provenance


def faults(folder: Path, **hooks: Callable[..., Any]) -> tuple[str, ...]:
    """What is wrong with an operator that has these hooks instead of good ones."""
    module = ModuleType("made")
    own: dict[str, Callable[..., Any]] = {
        "autoheur_operator": lambda: Operator("made", default_choice="a"),
        "autoheur_features": lambda: [Feature("m", integer=True), Feature("kind", "categorical")],
        "autoheur_choices": lambda: ["a", "b"],
        "autoheur_problems": lambda: [{"m": 1, "kind": "x"}],
    }
    for hook, function in {**own, **hooks}.items():
        setattr(module, hook, hookimpl(function))
    registry = Registry([Source(Provenance("made", "dist", "1"), module)], Store(folder / "artifacts"))
    (entry,) = check(registry, "dist")
    return entry.faults


def raising() -> Any:
    raise ZeroDivisionError("oh")


def test_a_good_operator_has_no_faults(tmp_path: Path) -> None:
    assert faults(tmp_path) == ()


BLOCK = [Feature("m", integer=True), Feature("block", integer=True, of="choice")]


def test_choices_with_features_have_no_faults(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        autoheur_features=lambda: BLOCK,
        autoheur_choices=lambda: [Choice("a", {"block": 1}), Choice("b", {"block": 2})],
        autoheur_choice_features=lambda name: {"block": "ab".index(name) + 1},
        autoheur_problems=lambda: [{"m": 1}],
    )
    assert found == ()


@pytest.mark.parametrize(
    ("hook", "returned", "fault"),
    [
        ("features", [Feature("m"), Feature("d", formula="m +")], "cannot be parsed"),
        ("features", [Feature("m"), Feature("d", formula="k + 1")], "'k', which is not a raw feature"),
        ("features", [Feature("m"), Feature("d", "categorical", formula="m + 1")], "yields"),
        ("choices", "ab", "autoheur_choices returned the text 'ab'"),
        ("choices", ["a", "a"], "returned a choice twice"),
        ("choices", ["a", 3], "neither a name nor"),
        ("choices", ["b", "c"], "default choice 'a' is none of the choices"),
        ("choices", [Choice("a", {"x": 1}), Choice("b", {"x": 1})], "unknown x"),
        ("choices", 3, "not a Sequence"),
        ("problems", [{"m": 1}], "missing kind"),
        ("problems", [{"m": "one", "kind": "x"}], "m must be a number"),
        ("problems", [{"m": 1.5, "kind": "x"}], "m must be a whole number"),
        ("precondition", "m >", "cannot be parsed"),
        ("precondition", 3, "not a str"),
        ("heuristics", "heuristics.json", "not a sequence of paths"),
        ("heuristics", [3], "neither a path nor"),
        ("learners", "tree", "returned the text 'tree'"),
        ("sites", 3, "not a Sequence"),
        ("sites", [object()], "not an autoheur.site.Site"),
    ],
)
def test_what_a_hook_returns_is_held_to_the_contract(tmp_path: Path, hook: str, returned: Any, fault: str) -> None:
    found = faults(tmp_path, **{f"autoheur_{hook}": lambda: returned})
    assert len(found) >= 1
    assert any(fault in line for line in found), found
    assert any(f"autoheur_{hook}" in line for line in found), found


@pytest.mark.parametrize("hook", ["features", "choices", "problems", "precondition", "heuristics", "learners", "sites"])
def test_a_hook_that_raises_is_one_fault(tmp_path: Path, hook: str) -> None:
    found = faults(tmp_path, **{f"autoheur_{hook}": raising})
    assert len(found) == 1, found
    assert "ZeroDivisionError: oh" in found[0]


def test_features_by_name_that_contradict_the_choices_are_a_fault(tmp_path: Path) -> None:
    (found,) = faults(
        tmp_path,
        autoheur_features=lambda: BLOCK,
        autoheur_choices=lambda: [Choice("a", {"block": 1}), Choice("b", {"block": 2})],
        autoheur_choice_features=lambda: {"block": 1},
        autoheur_problems=lambda: [{"m": 1}],
    )
    assert found == "autoheur_choice_features: 'b' has {'block': 1} by its name, but {'block': 2} in autoheur_choices"


def test_a_name_that_nothing_has_is_an_error_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no plugin, operator or distribution 'x' \\(known: none\\)"):
        check(Registry([], Store(tmp_path)), "x")
