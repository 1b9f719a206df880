"""The documentation cannot drift: hooks, examples and links are compared with the code."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from autoheur import formula
from autoheur.cli.main import COMMANDS
from autoheur.hookspecs import Hooks

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
PLUGINS = (ROOT / "docs" / "plugins.md").read_text()


def test_every_hook_is_documented_with_its_exact_arguments() -> None:
    documented = set(re.findall(r"^\| `(autoheur_\w+\([^)]*\))`", PLUGINS, re.M))
    hooks = {
        f"{name}({', '.join(list(inspect.signature(function).parameters)[1:])})"
        for name, function in vars(Hooks).items()
        if name.startswith("autoheur_")
    }
    assert documented == hooks


def test_every_hooks_docstring_has_an_example_that_is_python() -> None:
    for name, function in vars(Hooks).items():
        if name.startswith("autoheur_"):
            _, _, example = inspect.cleandoc(function.__doc__ or "").partition("Example::\n")
            code = inspect.cleandoc("\n" + example)
            assert f"def {name}(" in code
            compile(code, name, "exec")


def test_the_example_plugin_in_the_documentation_is_the_one_in_the_repository() -> None:
    source = (ROOT / "examples" / "top_k" / "autoheur_top_k.py").read_text()
    assert f"```python\n{source}```" in PLUGINS


def test_the_site_in_the_documentation_is_that_of_the_example() -> None:
    source = (ROOT / "examples" / "decompose_mm" / "autoheur_decompose_mm.py").read_text()
    (block,) = re.findall(r"```python\n(def _tensors.*?)```", (ROOT / "docs" / "inductor.md").read_text(), re.S)
    assert block in source
    assert "DECOMPOSE = Site(" in block
    assert "def autoheur_sites" in block


def test_the_formula_functions_are_all_named() -> None:
    for name in formula.FUNCTIONS:
        assert f"`{name}`" in PLUGINS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_documentation_exist(page: Path) -> None:
    text = page.read_text()
    shell = "\n".join(re.findall(r"^```(?:sh|console|bash)\n(.*?)^```", text, re.M | re.S))
    quoted = re.findall(r"`autoheur ([a-z][a-z-]+)", text)
    for command in [*quoted, *re.findall(r"^(?:\$ )?autoheur ([a-z][a-z-]+)", shell, re.M)]:
        assert command in COMMANDS, command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_in_the_repository_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_command_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    for command in COMMANDS:
        assert re.search(rf"`autoheur {command}\b|autoheur {command} ", readme), command
