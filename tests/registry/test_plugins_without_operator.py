"""What a plugin without an operator of its own brings, and in which order it is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from autoheur import fingerprint
from autoheur.heuristic.installed import Store
from autoheur.plugin import Artifact, Feature, Forest, Input, Operator, Policy, Precondition, Tree, hookimpl
from autoheur.plugins import Source
from autoheur.registry import Registry
from autoheur.types import Provenance

ARTIFACT = Artifact(
    operator="made",
    name="one",
    features=[Feature("m", integer=True)],
    choices=["a", "b"],
    model=Forest([Input("m")], [0.0, 0.0], [Tree([-1], [0.0], [0], [0], [[1.0, 0.0]])], layout="vector"),
    policy=Policy(0.1, guard=False),
    precondition=Precondition(fingerprint.cpu()),
)


def source(name: str, distribution: str, **hooks: Callable[..., Any]) -> Source:
    module = ModuleType(name)
    for hook, function in hooks.items():
        setattr(module, f"autoheur_{hook}", hookimpl(function))
    return Source(Provenance(name, distribution, "1"), module)


def operator(distribution: str = "own", overrides: tuple[str, ...] = (), **hooks: Callable[..., Any]) -> Source:
    return source(
        "made",
        distribution,
        operator=lambda: Operator("made", overrides=overrides),
        features=lambda: [Feature("m", integer=True)],
        choices=lambda: ["a", "b"],
        **hooks,
    )


def bringing(name: str, artifact: str = "") -> Callable[..., Any]:
    return lambda: [attrs.evolve(ARTIFACT, name=artifact or name)]


def test_artifacts_rank_by_who_brings_them(tmp_path: Path) -> None:
    registry = Registry(
        [
            source("beside", "own", heuristics=bringing("beside")),
            operator(heuristics=bringing("own")),
            source("vendor", "other", heuristics=bringing("vendor")),
        ],
        Store(tmp_path),
    )
    found = [(heuristic.name, heuristic.tier) for heuristic in registry.heuristics("made")]
    assert found == [("vendor", "third-party"), ("own", "shipped"), ("beside", "fallback")]


def test_what_an_overridden_distribution_brings_is_out_too(tmp_path: Path) -> None:
    sources = [
        operator(),
        operator("better", ("own",)),
        source("beside", "own", heuristics=bringing("beside")),
    ]
    registry = Registry(sources, Store(tmp_path))
    assert registry.operators["made"].provenance.distribution == "better"
    assert registry.heuristics("made") == []


def test_an_artifact_that_contradicts_itself_is_broken_and_names_its_plugin(tmp_path: Path) -> None:
    bad = attrs.evolve(ARTIFACT, choices=["a", "a"])
    registry = Registry([operator(), source("vendor", "other", heuristics=lambda: [bad])], Store(tmp_path))
    assert registry.heuristics("made") == []
    (broken,) = registry.broken_heuristics("made")
    assert broken.provenance.distribution == "other"
    assert "a choice is listed twice" in broken.error


def test_the_operators_own_generator_of_code_is_asked_first(tmp_path: Path) -> None:
    everyone = source("zzz", "other", codegen=lambda target: f"other {target}")
    own = operator(codegen=lambda target: "own cpp" if target == "cpp" else None)
    for sources in ([everyone, own], [own, everyone]):
        registry = Registry(sources, Store(tmp_path))
        assert registry.codegen(ARTIFACT, "cpp") == "own cpp"
        assert registry.codegen(ARTIFACT, "hip") == "other hip"
