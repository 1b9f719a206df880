"""Whatever a plugin does, the registry stands, and errors say who is to blame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from autoheur.cli.plugins import plugin_rows
from autoheur.errors import PluginError
from autoheur.heuristic.installed import Store
from autoheur.hookspecs import hookimpl
from autoheur.plugins import Source
from autoheur.registry import Registry
from autoheur.types import Feature, Operator, Provenance


class Panic(BaseException):
    """As native extensions raise it."""


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def raising(error: BaseException) -> Callable[[], Any]:
    def hook() -> Any:
        raise error

    return hook


def registry(folder: Path, **hooks: Callable[..., Any]) -> Registry:
    """One good operator, and a plugin ``bad`` that has these hooks beside its own operator's."""
    modules = []
    for name, more in (("good", {}), ("bad", hooks)):
        module = ModuleType(name)
        own: dict[str, Callable[..., Any]] = {
            "autoheur_operator": lambda name=name: Operator(name),
            "autoheur_features": lambda: [Feature("m")],
            "autoheur_choices": lambda: ["a", "b"],
        }
        for hook, function in {**own, **more}.items():
            setattr(module, hook, hookimpl(function))
        modules.append(Source(Provenance(name, f"dist-{name}", "1"), module))
    return Registry(modules, Store(folder / "artifacts"))


@pytest.mark.parametrize("error", [SystemExit(3), Panic("p"), GeneratorExit(), Mute()], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("hook", ["autoheur_operator", "autoheur_heuristics", "autoheur_learners"])
def test_no_exception_takes_the_other_plugins_along(tmp_path: Path, hook: str, error: BaseException) -> None:
    made = registry(tmp_path, **{hook: raising(error)})
    plugin_rows(made)
    assert made.heuristics("bad") == []
    assert "good" in made.operators
    bad = next(plugin for plugin in made.plugins if plugin.name == "bad")
    if hook != "autoheur_heuristics":
        assert bad.error is not None
        assert type(error).__name__ in bad.error


WRONG: tuple[Any, ...] = (3, "dist", ["x"], None)
OPERATORS = [Operator("bad", overrides=WRONG[0]), Operator("bad", overrides=WRONG[1]), *map(Operator, WRONG[2:])]


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_an_operator_with_wrong_fields_is_a_broken_plugin(tmp_path: Path, operator: Operator) -> None:
    made = registry(tmp_path, autoheur_operator=lambda: operator)
    assert list(made.operators) == ["good"]
    assert [plugin.name for plugin in made.plugins if plugin.error] == ["bad"]


@pytest.mark.parametrize("hook", ["autoheur_features", "autoheur_choices"])
def test_an_operator_that_fails_is_named_in_the_error(tmp_path: Path, hook: str) -> None:
    made = registry(tmp_path, **{hook: raising(ZeroDivisionError("oh"))}).operator("bad")
    with pytest.raises(PluginError, match=rf"bad \(dist-bad 1\): {hook} failed: ZeroDivisionError: oh"):
        made.features if hook == "autoheur_features" else made.choices()


@pytest.mark.parametrize("value", [1.5, object(), [Feature(3)]], ids=["number", "object", "name"])  # type: ignore[arg-type]
def test_features_of_a_wrong_type_are_an_error_of_the_plugin(tmp_path: Path, value: object) -> None:
    with pytest.raises(PluginError, match="autoheur_features"):
        _ = registry(tmp_path, autoheur_features=lambda: value).operator("bad").features


def test_what_is_no_learner_is_an_error_of_the_plugin(tmp_path: Path) -> None:
    made = registry(tmp_path, autoheur_learners=lambda: [Path("x")])
    assert made.learners == {}
    assert "which lacks" in str(next(plugin.error for plugin in made.plugins if plugin.name == "bad"))


def test_the_error_of_a_plugin_is_one_line_that_can_be_printed(tmp_path: Path) -> None:
    made = registry(tmp_path, autoheur_operator=raising(ValueError("one\n  two \ud83d")))
    error = next(plugin.error for plugin in made.plugins if plugin.name == "bad")
    assert error == "ValueError: one two \\ud83d"
