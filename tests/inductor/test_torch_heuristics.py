"""PyTorch's own heuristics, converted: they answer as torch's classes do, come last, and keep to their device."""

from __future__ import annotations

import random
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from autoheur import fingerprint
from autoheur.errors import ArtifactError
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.installed import Store
from autoheur.plugins import entry_point_sources
from autoheur.registry import Registry
from autoheur.types import Operand, Problem
from autoheur_pad_mm import torch_heuristics

torch = pytest.importorskip("torch")

DEVICES = {
    "a100": Fingerprint("cuda", "NVIDIA A100-SXM4-80GB", "8.0", sm_count=108, memory_gib=80, shared_memory=166912),
    "h200": Fingerprint("cuda", "NVIDIA H200", "9.0", sm_count=132, memory_gib=140, shared_memory=232448),
    "h100": Fingerprint("cuda", "NVIDIA H100 80GB HBM3", "9.0", sm_count=132, memory_gib=80, shared_memory=232448),
}


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The installed plugins, less what pad_mm ships: its heuristics take precedence over torch's."""
    import autoheur_pad_mm.plugin as plugin

    monkeypatch.setenv("AUTOHEUR_PLUGINS", "pad_mm,torch")
    registry = Registry(store=Store(tmp_path))
    own = next(entry for entry in registry.plugins if entry.module is plugin)
    own.hooks = tuple(hook for hook in own.hooks if hook != "autoheur_heuristics")
    return registry


def problems(count: int) -> list[Problem]:
    """Sizes and layouts on both sides of the comparisons in torch's trees."""
    from autoheur_pad_mm.features import extract

    generator = random.Random(0)
    made: list[Problem] = []
    while len(made) < count:
        m, k, n = (max(1, int(2 ** generator.uniform(9, 15.5))) for _ in range(3))
        dtype = generator.choice(("torch.float16", "torch.bfloat16", "torch.float32"))
        strides = [(k, 1) if generator.random() < 0.5 else (1, m), (n, 1) if generator.random() < 0.5 else (1, k)]
        flags = {name: generator.random() < 0.5 for name in ("prepadded_mat1", "prepadded_mat2", "using_tf32")}
        problem = extract([Operand((m, k), strides[0], dtype), Operand((k, n), strides[1], dtype)], flags)
        if any(problem[f"{dim}_padded_length"] for dim in "mkn"):
            made.append(problem)
    return made


def torchs_answer(problem: Problem, device: Fingerprint) -> str | None:
    """What torch's AutoHeuristic would choose on the device."""
    from torch._inductor.autoheuristic import autoheuristic_utils as utils
    from torch._inductor.autoheuristic.learned_heuristic_controller import LearnedHeuristicController

    context = utils.AHContext()
    for name, value in problem.items():
        context.add_feature(name, value)
    assert device.capability
    major, minor = map(int, device.capability.split("."))
    described = utils.AHMetadata(device.shared_memory, (major, minor), ["orig", "pad"], "pad_mm")
    if not utils.pad_mm_precondition(described, context):
        return None
    context.apply_operations(utils.pad_mm_operations())
    return LearnedHeuristicController(described, context).get_decision()


@pytest.mark.parametrize("name", ["a100", "h200"])
def test_they_answer_as_torch_does(registry: Registry, name: str) -> None:
    answers = []
    for problem in problems(1500):
        decision = registry.decide("pad_mm", problem, DEVICES[name])
        assert decision.choice == torchs_answer(problem, DEVICES[name]), problem
        answers.append(decision.choice)
    assert {*answers} == {"orig", "pad", None}


def test_the_one_for_h200_does_not_answer_on_h100(registry: Registry) -> None:
    assert registry.selected("pad_mm", DEVICES["h100"]) is None
    selected = registry.selected("pad_mm", DEVICES["h200"])
    assert selected is not None
    assert (selected.name, selected.tier, selected.provenance.plugin) == ("torch-PadMMH200", "fallback", "torch")
    assert selected.artifact.provenance["converted_from"] == "_PadMMH200.py"


def test_they_come_last_and_the_list_shows_them(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from autoheur.cli.plugins import heuristic_rows

    bench.put("pad_mm", "pad", fingerprint.KNOWN["a100"])
    monkeypatch.delenv("AUTOHEUR_PLUGINS", raising=False)
    rows = heuristic_rows(Registry(store=bench.store), "pad_mm")
    tiers = [row["tier"] for row in rows]
    assert [tiers[0], *tiers[-2:]] == ["installed", "fallback", "fallback"]
    provenances = {row["provenance"] for row in rows if row["tier"] == "fallback"}
    assert provenances == {f"torch (autoheur-pad-mm {metadata.version('autoheur-pad-mm')})"}
    assert Registry(store=bench.store).heuristics("bmm") == []


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, True),
        ({"AUTOHEUR_DISABLE": "a, torch"}, False),
        ({"AUTOHEUR_PLUGINS": "pad_mm"}, False),
        ({"AUTOHEUR_PLUGINS": "pad_mm,torch"}, True),
    ],
)
def test_they_can_be_switched_off_like_a_plugin(environment: dict[str, str], wanted: bool) -> None:
    assert ("torch" in {source.provenance.plugin for source in entry_point_sources(environment)}) == wanted


def test_no_torch_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert torch_heuristics.files() == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<= 652.0", "< 652.0"),
        ("return [(1.000, 0)]", "return [(1.000, 2)]"),
        ("return [(1.000, 0)]", "import os"),
        ("class PadMMA100", "x = ("),
        ("def get_confidence_threshold", "def other"),
    ],
)
def test_a_file_of_another_form_is_refused_and_never_executed(tmp_path: Path, old: str, new: str) -> None:
    source = next(path for path in torch_heuristics.files() if "A100" in path.name)
    copy = tmp_path / source.name
    shutil.copy(source, copy)
    torch_heuristics.read(copy)
    assert old in copy.read_text()
    copy.write_text(copy.read_text().replace(old, new, 1))
    with pytest.raises(ArtifactError, match=f"{source.stem}[.]py: not a heuristic in the form that torch generates"):
        torch_heuristics.read(copy)
