"""Plugins of third parties, as real installed distributions: good, broken, and contradicting ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{distribution}"
version = "{version}"

[project.entry-points.autoheur]
{entry_point} = "{module}"

[tool.hatch.build.targets.wheel]
only-include = ["{module}.py"]
"""

OPERATOR = """\
from autoheur.plugin import Feature, Operator, hookimpl

@hookimpl
def autoheur_operator():
    return Operator({operator!r}, overrides={overrides!r})

@hookimpl
def autoheur_features():
    return [Feature("rows", integer=True)]

@hookimpl
def autoheur_choices():
    return ["slow", "fast"]
"""

Runner = Callable[..., subprocess.CompletedProcess[str]]


class Site:
    """A folder of installed distributions beside the environment's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = folder / "site"

    def install(self, distribution: str, source: str, entry_point: str = "extra", version: str = "1.2") -> None:
        module = distribution.replace("-", "_")
        project = self.folder / distribution
        project.mkdir()
        (project / f"{module}.py").write_text(source)
        (project / "pyproject.toml").write_text(
            PYPROJECT.format(distribution=distribution, version=version, entry_point=entry_point, module=module)
        )
        self.install_project(project)

    def install_project(self, project: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*command, "--no-index", "--target", str(self.target), str(project)], check=True)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, [str(self.target), os.environ.get("PYTHONPATH")]))
        return subprocess.run(
            [sys.executable, "-m", "autoheur.cli.main", *arguments],
            env={**os.environ, "PYTHONPATH": path, "AUTOHEUR_HOME": str(self.folder / "home"), **environment},
            capture_output=True,
            text=True,
        )

    def rows(self, **environment: str) -> dict[str, dict[str, Any]]:
        result = self.run("list", "--json", **environment)
        assert result.returncode == 0, result.stderr
        return {row["name"]: row for row in json.loads(result.stdout)["plugins"]}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_third_party_operator_is_listed_with_its_distribution_and_version(site: Site) -> None:
    site.install("vendor-ops", OPERATOR.format(operator="sort_rows", overrides=()), entry_point="sort_rows")
    row = site.rows()["sort_rows"]
    assert (row["kind"], row["status"], row["distribution"], row["version"]) == (
        "operator",
        "stub",
        "vendor-ops",
        "1.2",
    )
    assert row["origin"] == "third-party"
    shown = site.run("show", "sort_rows", "--json")
    assert json.loads(shown.stdout)["choices"] == ["slow", "fast"]


def test_a_plugin_that_fails_to_import_is_a_row_with_its_error_and_the_others_load(site: Site) -> None:
    site.install("broken-import", "raise RuntimeError('no such device')", entry_point="aaa_first")
    site.install("broken-exit", "import sys; sys.exit(3)", entry_point="aab_second")
    rows = site.rows()
    assert rows["aaa_first"]["status"] == "error"
    assert rows["aaa_first"]["error"] == "RuntimeError: no such device"
    assert rows["aaa_first"]["distribution"] == "broken-import"
    assert rows["aab_second"]["error"] == "SystemExit: 3"
    assert rows["pad_mm"]["status"] == "shipped"
    assert site.run("list").returncode == 0


def test_a_misspelt_hook_is_an_error_that_names_it_and_is_not_blamed_on_others(site: Site) -> None:
    source = OPERATOR.format(operator="sort_rows", overrides=()) + "\n@hookimpl\ndef autoheur_choises(): return []\n"
    site.install("misspelt", source, entry_point="aaa")
    rows = site.rows()
    assert "autoheur_choises: did you mean autoheur_choices?" in rows["aaa"]["error"]
    assert rows["bmm"]["error"] is None
    result = site.run("show", "aaa")
    assert result.returncode == 2
    assert "autoheur_choises" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_two_plugins_that_claim_one_operator_are_an_error_naming_both(site: Site) -> None:
    site.install("other-pad-mm", OPERATOR.format(operator="pad_mm", overrides=()), entry_point="other")
    result = site.run("show", "pad_mm")
    assert result.returncode == 2
    assert "autoheur-pad-mm" in result.stderr
    assert "other-pad-mm 1.2" in result.stderr
    assert site.run("show", "pad_mm", AUTOHEUR_DISABLE="other-pad-mm").returncode == 0


def test_a_declared_override_wins(site: Site) -> None:
    site.install("better-pad-mm", OPERATOR.format(operator="pad_mm", overrides=("autoheur-pad-mm",)), entry_point="z")
    shown = json.loads(site.run("show", "pad_mm", "--json").stdout)
    assert shown["distribution"] == "better-pad-mm"
    assert shown["choices"] == ["slow", "fast"]


def test_the_environment_blocks_and_selects_plugins(site: Site) -> None:
    assert "bmm" not in site.rows(AUTOHEUR_DISABLE="bmm, autoheur-learners")
    assert set(site.rows(AUTOHEUR_PLUGINS="pad_mm")) == {"pad_mm"}


def test_a_plugin_without_hooks_says_how_to_mark_them(site: Site) -> None:
    site.install("unmarked", "def autoheur_operator(): return None\n", entry_point="unmarked")
    assert "hookimpl" in site.rows()["unmarked"]["error"]


def test_wrappers_of_a_plugin_without_operator_apply_to_every_operator(site: Site, tmp_path: Path) -> None:
    site.install(
        "stamper",
        "from autoheur.plugin import hookimpl\n"
        "@hookimpl(wrapper=True)\n"
        "def autoheur_codegen(operator, target):\n"
        "    source = yield\n"
        "    return f'# stamped {operator} {target}\\n{source}'\n",
    )
    names = [h["name"] for h in site.rows()["pad_mm"]["heuristics"]]
    assert site.rows()["extra"]["kind"] == "extension"
    generated = site.run("codegen", names[0])
    assert generated.stdout.startswith("# stamped pad_mm python\n")


def test_a_plugin_without_operator_adds_a_target_of_code_for_every_operator(site: Site) -> None:
    site.install(
        "cpp-target",
        "from autoheur.plugin import hookimpl\n"
        "@hookimpl\n"
        "def autoheur_codegen(operator, target):\n"
        "    return f'// {operator}' if target == 'cpp' else None\n",
    )
    name = site.rows()["pad_mm"]["heuristics"][0]["name"]
    script = (
        "from autoheur.registry import default_registry as r; h = r().heuristics('pad_mm')[0].artifact; "
        "print(r().codegen(h, 'cpp')); print(r().codegen(h, 'python')[:3])"
    )
    generated = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(site.target), "AUTOHEUR_HOME": str(site.folder / "home")},
        capture_output=True,
        text=True,
    )
    assert generated.stdout.startswith("// pad_mm\n"), (name, generated.stderr)
    assert generated.stdout.splitlines()[1].strip() != "//"


def test_check_says_what_is_wrong_and_whose_it_is(site: Site) -> None:
    assert site.run("check").returncode == 0
    source = OPERATOR.format(operator="sort_rows", overrides=()).replace("integer=True)]", 'formula="rows +")]')
    site.install("bad-formula", source, entry_point="sort_rows")
    result = site.run("check", "bad-formula", "--json")
    assert result.returncode == 1
    (entry,) = json.loads(result.stdout)["plugins"]
    assert (entry["name"], entry["distribution"]) == ("sort_rows", "bad-formula")
    assert "cannot be parsed" in entry["faults"][0]
    assert site.rows()["sort_rows"]["status"] == "error"
    assert site.run("check", "pad_mm").returncode == 0
    unknown = site.run("check", "nothing")
    assert unknown.returncode == 2
    assert "there is no plugin, operator or distribution 'nothing'" in unknown.stderr


def test_a_broken_artifact_is_blamed_on_the_distribution_that_brings_it(site: Site) -> None:
    site.install(
        "broken-heuristics",
        "import pathlib\n"
        "from autoheur.plugin import hookimpl\n"
        "@hookimpl\n"
        "def autoheur_heuristics():\n"
        "    path = pathlib.Path(__file__).with_name('broken.json')\n"
        "    path.write_text('{')\n"
        "    return [path]\n",
        entry_point="vendor",
    )
    rows = site.rows()
    assert [name for name, row in rows.items() if row["error"]] == ["vendor"]
    assert "broken.json" in rows["vendor"]["error"]


def test_a_vendor_can_bring_heuristics_for_an_operator_of_others(site: Site, tmp_path: Path) -> None:
    shipped = json.loads(site.run("artifacts", "--json").stdout)["artifacts"][0]
    artifact = json.loads(Path(shipped["path"]).read_text())
    artifact["name"] = "vendor_gpu"
    artifact["precondition"]["device"] = {"kind": "cuda", "name": "Vendor GPU"}
    text = json.dumps(artifact)
    site.install(
        "vendor-heuristics",
        "import tempfile, pathlib\n"
        "from autoheur.plugin import hookimpl\n"
        f"TEXT = {text!r}\n"
        "@hookimpl\n"
        "def autoheur_heuristics(operator):\n"
        "    if operator != 'pad_mm': return None\n"
        "    path = pathlib.Path(tempfile.mkdtemp()) / 'vendor_gpu.json'\n"
        "    path.write_text(TEXT)\n"
        "    return [path]\n",
    )
    heuristics = site.rows()["pad_mm"]["heuristics"]
    assert heuristics[0]["name"] == "vendor_gpu"
    assert heuristics[0]["tier"] == "third-party"
    assert "vendor-heuristics 1.2" in heuristics[0]["provenance"]


def test_the_example_plugin_of_the_documentation_measures_trains_and_decides(site: Site, tmp_path: Path) -> None:
    project = tmp_path / "example"
    project.mkdir()
    example = Path(__file__).parents[2] / "examples" / "top_k"
    for file in ("pyproject.toml", "autoheur_top_k.py"):
        (project / file).write_text((example / file).read_text())
    site.install_project(project)
    data, artifact = str(tmp_path / "d.parquet"), str(tmp_path / "h.json")
    for command in (
        ["collect", "top_k", "--device", "cpu", "--problems", "60", "--out", data],
        ["train", data, "--out", artifact],
        ["install", artifact],
    ):
        result = site.run(*command)
        assert result.returncode == 0, result.stderr
    decided = site.run("decide", "top_k", "rows=64", "columns=4096", "k=8", "--json")
    assert json.loads(decided.stdout)["reason"] in ("decided", "below_threshold")
