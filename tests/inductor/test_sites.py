"""A site of somebody else's, as an installed distribution, steers a real decision of Inductor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autoheur import fingerprint
from autoheur.heuristic import artifact as artifacts
from autoheur.heuristic.artifact import Artifact, Precondition
from autoheur.heuristic.installed import Store
from autoheur.heuristic.model import Forest, Policy, Tree
from autoheur.types import Feature

torch = pytest.importorskip("torch")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "decompose_mm"

SCRIPT = """
import json, sys
import torch
from torch._dynamo.utils import counters

torch._inductor.config.post_grad_fusion_options = {"decompose_mm_pass": {}}
report = {}
for rows in (1, 4):
    torch._dynamo.reset()
    counters.clear()
    a, b = torch.randn(rows, 64), torch.randn(64, 32)
    torch.testing.assert_close(torch.compile(lambda a, b: a @ b)(a, b), a @ b)
    report[rows] = {
        "decomposed": counters["inductor"]["decompose_mm"],
        "asked": dict(counters["autoheur"]),
        "hit": counters["aot_autograd"]["autograd_cache_hit"],
    }
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example's distribution, beside the environment's own."""
    folder = tmp_path_factory.mktemp("decompose")
    project = folder / "project"
    project.mkdir()
    for path in EXAMPLE.glob("*.*"):
        (project / path.name).write_text(path.read_text())
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--target", str(folder / "site"), str(project)], check=True)
    return folder / "site"


class Machine:
    """A user's folders, and Python with the example installed in it."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.folder, self.target = folder, target

    def install(self, choice: str) -> None:
        """Install a heuristic that always takes a choice."""
        leaf = Tree([-1], [0.0], [0], [0], [[float(choice == name) for name in ("decompose", "keep")]])
        artifact = Artifact(
            operator="decompose_mm",
            name="always",
            features=[Feature(name, integer=True) for name in "mkn"] + [Feature("dtype", "categorical")],
            choices=["decompose", "keep"],
            model=Forest([], [0.0, 0.0], [leaf], layout="vector", statistic="difference"),
            policy=Policy(0.1, guard=False),
            precondition=Precondition(fingerprint.cpu()),
        )
        artifacts.write(artifact, self.folder / "new.json")
        Store(self.folder / "home" / "artifacts").install(self.folder / "new.json")

    def python(self, *arguments: str, **environment: str) -> str:
        settings = {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self.target), os.environ.get("PYTHONPATH")])),
            "AUTOHEUR_HOME": str(self.folder / "home"),
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "cache"),
        }
        result = subprocess.run(
            [sys.executable, *arguments], env={**os.environ, **settings, **environment}, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def compile(self, **environment: str) -> dict[str, Any]:
        """What became of products of one and of four rows, each compared with eager, by rows."""
        answer: dict[str, Any] = json.loads(self.python("-c", SCRIPT, **environment).splitlines()[-1])
        return answer


@pytest.fixture
def machine(tmp_path: Path, target: Path) -> Machine:
    return Machine(tmp_path, target)


def test_the_graph_follows_the_heuristic_and_no_cache_answers_for_another(machine: Machine) -> None:
    plain = machine.compile()
    assert [plain[rows]["decomposed"] for rows in "14"] == [1, 0], "Inductor's own rule: one row"
    for choice, decomposed in (("keep", 0), ("decompose", 1)):
        machine.install(choice)
        for hit in (0, 1):  # the second time, the graph comes from the cache, and nobody is asked
            found = machine.compile(AUTOHEUR="1")
            asked = {} if hit else {f"decompose_mm.{choice}": 1, "reason.decided": 1}
            for rows in "14":
                assert found[rows] == {"decomposed": decomposed, "asked": asked, "hit": hit}, choice
    again = machine.compile()
    assert [again[rows]["hit"] for rows in "14"] == [1, 1], "switched off, the first graphs are found again"


def test_unsure_leaves_it_to_inductor_and_deterministic_compilation_takes_the_default(machine: Machine) -> None:
    found = machine.compile(AUTOHEUR="1")
    assert [found[rows]["decomposed"] for rows in "14"] == [1, 0]
    assert found["1"]["asked"] == {"decompose_mm.unsure": 1, "reason.no_heuristic": 1}
    fixed = SCRIPT.replace("report = {}", "report = {}\ntorch.use_deterministic_algorithms(True)")
    answer = json.loads(machine.python("-c", fixed, AUTOHEUR="1").splitlines()[-1])
    assert [answer[rows]["decomposed"] for rows in "14"] == [0, 0], "the operator's default is to keep products"


def test_the_doctor_lists_it_and_check_finds_nothing_wrong(machine: Machine) -> None:
    found = json.loads(machine.python("-m", "autoheur.cli.main", "doctor", "--json"))
    site = next(row for row in found["sites"] if row["name"] == "decompose_mm")
    assert (site["distribution"], site["operators"]) == ("autoheur-decompose-mm-example", ["decompose_mm"])
    assert (site["available"], site["problem"]) == (True, None)
    assert "padding" in [row["name"] for row in found["sites"]]
    checked = json.loads(machine.python("-m", "autoheur.cli.main", "check", "decompose_mm", "--json"))
    assert [plugin["faults"] for plugin in checked["plugins"]] == [[]]


def test_it_is_measured_and_learned_like_any_operator(machine: Machine) -> None:
    data, artifact = str(machine.folder / "d.parquet"), str(machine.folder / "h.json")
    command = ("-m", "autoheur.cli.main")
    machine.python(*command, "collect", "decompose_mm", "--device", "cpu", "--problems", "20", "--out", data)
    machine.python(*command, "train", data, "--out", artifact)
    decided = machine.python(*command, "decide", "decompose_mm", "m=1", "k=64", "n=32", "dtype=torch.float32", "--json")
    assert json.loads(decided)["operator"] == "decompose_mm"
