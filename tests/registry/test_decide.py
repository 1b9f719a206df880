"""Decisions through the registry: precedence, devices, names, reasons, and faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import attrs
import pytest

from autoheur.errors import InputError, PluginError
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic import artifact as artifacts
from autoheur.heuristic.artifact import Artifact, Precondition, Seen
from autoheur.heuristic.installed import Store
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.hookspecs import hookimpl
from autoheur.plugins import Source
from autoheur.registry import Registry
from autoheur.types import Feature, Operator, Provenance, Reason

FEATURES = [Feature("rows", integer=True), Feature("dtype", "categorical"), Feature("double", formula="rows * 2")]
GPU = Fingerprint("cuda", "Example GPU", capability="8.0", shared_memory=1024)
OTHER = Fingerprint("cuda", "Other GPU", capability="9.0", shared_memory=1024)


def learned(name: str, choice: str, device: Fingerprint = GPU) -> Artifact:
    """Takes ``choice`` where rows * 2 > 20 and is unsure elsewhere."""
    high = [3.0, 1.0] if choice == "slow" else [1.0, 3.0]
    tree = Tree([0, -1, -1], [20.0, 0.0, 0.0], [1, 0, 0], [2, 0, 0], [[], [1.0, 1.0], high])
    return Artifact(
        operator="sort_rows",
        name=name,
        features=FEATURES,
        choices=["slow", "fast"],
        model=Forest([Input("double")], [0.0, 0.0], [tree], layout="vector"),
        policy=Policy(2.0),
        precondition=Precondition(device, "rows != 13"),
        seen={"rows": Seen(1.0, 1000.0), "dtype": Seen(categories=["torch.float16"])},
    )


def module(**hooks: Callable[..., Any]) -> ModuleType:
    """A plugin module with these hooks."""
    result = ModuleType("plugin")
    vars(result).update({name: hookimpl(function) for name, function in hooks.items()})
    return result


def plugin(files: list[Path], **changes: Any) -> ModuleType:
    hooks: dict[str, Any] = {
        "autoheur_operator": lambda: Operator("sort_rows"),
        "autoheur_features": lambda: FEATURES,
        "autoheur_choices": lambda: ["slow", "fast"],
        "autoheur_heuristics": lambda: files,
        **changes,
    }
    return module(**hooks)


Build = Callable[..., Registry]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """A registry of one operator plugin with the given shipped and installed artifacts, and further plugins."""

    def make(*shipped: Artifact, installed: tuple[Artifact, ...] = (), others: Mapping[str, object] = {}) -> Registry:
        store = Store(tmp_path / "store")
        files = []
        for artifact in (*shipped, *installed):
            path = tmp_path / f"{artifact.name}.json"
            artifacts.write(artifact, path)
            if artifact in installed:
                store.install(path)
            else:
                files.append(path)
        sources = [Source(Provenance("sort_rows", "sorters", "3.1"), plugin(files))]
        sources += [Source(Provenance(name, f"{name}-dist", "0.1"), module) for name, module in others.items()]
        return Registry(sources, store)

    return make


def problem(rows: object = 50, dtype: object = "torch.float16") -> Any:
    return {"rows": rows, "dtype": dtype}


def test_a_decision_carries_choice_reason_confidence_and_provenance(build: Build) -> None:
    decision = build(learned("shipped", "fast")).decide("sort_rows", problem(), GPU)
    assert (decision.choice, decision.reason, decision.confidence) == ("fast", Reason.DECIDED, 3.0)
    assert decision.heuristic == "shipped"
    assert decision.provenance == Provenance("sort_rows", "sorters", "3.1")
    assert not decision.unsure


@pytest.mark.parametrize(
    ("rows", "dtype", "reason"),
    [
        (5, "torch.float16", Reason.BELOW_THRESHOLD),
        (13, "torch.float16", Reason.PRECONDITION),
        (1001, "torch.float16", Reason.OUT_OF_RANGE),
        (0, "torch.float16", Reason.OUT_OF_RANGE),
        (50, "torch.float32", Reason.OUT_OF_RANGE),
    ],
)
def test_every_doubt_is_unsure_with_its_reason(build: Build, rows: int, dtype: str, reason: Reason) -> None:
    decision = build(learned("shipped", "fast")).decide("sort_rows", problem(rows, dtype), GPU)
    assert decision.choice is None
    assert decision.reason is reason


def test_another_device_gets_no_answer_and_the_detail_says_which_would(build: Build) -> None:
    decision = build(learned("shipped", "fast")).decide("sort_rows", problem(), OTHER)
    assert decision.reason is Reason.NO_HEURISTIC
    assert decision.detail == "no heuristic for Other GPU (there are some for Example GPU)"


def test_installed_beats_third_party_beats_shipped(build: Build, tmp_path: Path) -> None:
    vendor_file = tmp_path / "vendor.json"
    artifacts.write(learned("vendor", "slow"), vendor_file)
    vendor = module(autoheur_heuristics=lambda operator: [vendor_file])
    shipped = learned("shipped", "fast")
    assert build(shipped).decide("sort_rows", problem(), GPU).heuristic == "shipped"
    assert build(shipped, others={"vendor": vendor}).decide("sort_rows", problem(), GPU).heuristic == "vendor"
    both = build(shipped, installed=(learned("mine", "fast"),), others={"vendor": vendor})
    assert both.decide("sort_rows", problem(), GPU).heuristic == "mine"
    assert [h.tier for h in both.heuristics("sort_rows")] == ["installed", "third-party", "shipped"]


def test_within_a_tier_the_more_specific_device_wins(build: Build) -> None:
    registry = build(learned("any", "slow", Fingerprint("cuda")), learned("exact", "fast", GPU))
    assert registry.decide("sort_rows", problem(), GPU).heuristic == "exact"
    assert registry.decide("sort_rows", problem(), OTHER).heuristic == "any"


@pytest.mark.parametrize("given", [{"rows": 1}, {"rows": 1, "dtype": "x", "cols": 2}, {}, {"rows": 1, "dtpye": "x"}])
def test_missing_and_unknown_names_are_one_error_with_the_expected_ones(build: Build, given: dict[str, Any]) -> None:
    for registry in (build(learned("shipped", "fast")), build()):
        with pytest.raises(InputError) as error:
            registry.decide("sort_rows", given, GPU)
        assert "(expected exactly: rows, dtype)" in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("given", [None, ["rows", "dtype"], "rows"])
def test_what_is_no_mapping_is_no_problem(build: Build, given: Any) -> None:
    for registry in (build(learned("shipped", "fast")), build()):
        with pytest.raises(InputError, match="a problem is a mapping of raw features to values, not "):
            registry.decide("sort_rows", given, GPU)


def test_a_name_that_is_no_text_is_an_unknown_one(build: Build) -> None:
    for registry in (build(learned("shipped", "fast")), build()):
        with pytest.raises(InputError, match=r"missing dtype; unknown 7 \(expected exactly: rows, dtype\)"):
            registry.decide("sort_rows", {"rows": 1, 7: "x"}, GPU)  # type: ignore[dict-item]


def test_a_value_of_a_wrong_type_is_an_error_that_names_the_feature(build: Build) -> None:
    with pytest.raises(InputError, match="rows must be a number, not 'many'"):
        build(learned("shipped", "fast")).decide("sort_rows", problem("many"), GPU)


def test_an_unknown_operator_lists_the_known_ones(build: Build) -> None:
    with pytest.raises(InputError, match="no operator 'sortrows' \\(known: sort_rows\\)"):
        build().decide("sortrows", problem(), GPU)


def test_an_installed_artifact_needs_no_plugin(build: Build) -> None:
    artifact = attrs.evolve(learned("alone", "fast"), operator="unheard_of")
    registry = build(installed=(artifact,))
    assert registry.decide("unheard_of", problem(), GPU).choice == "fast"
    assert registry.operator_names() == ["sort_rows", "unheard_of"]


def test_a_broken_artifact_is_ignored_reported_and_logged_once(
    build: Build, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = build(learned("shipped", "fast"), installed=(learned("mine", "slow"),))
    (tmp_path / "store" / "mine.json").write_text('{"format": "autoheur.artifact"')
    assert registry.decide("sort_rows", problem(), GPU).heuristic == "shipped"
    registry.decide("sort_rows", problem(), OTHER)
    assert [entry.path.name for entry in registry.broken_heuristics("sort_rows")] == ["mine.json"]
    assert len([record for record in caplog.records if "mine.json" in record.message]) == 1


def test_a_renewed_registry_sees_what_was_installed_meanwhile(build: Build, tmp_path: Path) -> None:
    registry = build(learned("shipped", "fast"))
    assert registry.decide("sort_rows", problem(), GPU).heuristic == "shipped"
    path = tmp_path / "new.json"
    artifacts.write(learned("new", "slow"), path)
    Store(tmp_path / "store").install(path)
    assert registry.is_stale()
    renewed = registry.renewed()
    assert renewed.decide("sort_rows", problem(), GPU).heuristic == "new"
    assert registry.decide("sort_rows", problem(), GPU).heuristic == "shipped"
    assert not renewed.is_stale()


def test_what_a_plugin_returns_is_held_to_the_contract() -> None:
    def registry(**changes: Any) -> Registry:
        return Registry([Source(Provenance("p", "d", "1"), plugin([], **changes))], Store(Path("nowhere")))

    with pytest.raises(PluginError, match=r"must return autoheur\.plugin\.Feature"):
        _ = registry(autoheur_features=lambda: ["rows"]).operator("sort_rows").features
    with pytest.raises(PluginError, match="names a feature twice"):
        _ = registry(autoheur_features=lambda: [Feature("a"), Feature("a")]).operator("sort_rows").features
    with pytest.raises(PluginError, match=r"autoheur_extract returned 3, not a Mapping"):
        registry(autoheur_extract=lambda: 3).operator("sort_rows").extract([], {})
    with pytest.raises(PluginError, match="does not implement autoheur_benchmark"):
        registry().operator("sort_rows").benchmark(problem(), "cpu")
    broken = registry(autoheur_operator=lambda: "sort_rows")
    assert "not an autoheur.plugin.Operator" in str(broken.plugins[0].error)


def test_a_plugin_whose_heuristics_hook_fails_has_none_and_the_others_answer(build: Build) -> None:
    def fail(operator: str) -> None:
        raise RuntimeError("disk on fire")

    vendor = module(autoheur_heuristics=fail)
    registry = build(learned("shipped", "fast"), others={"vendor": vendor})
    assert registry.decide("sort_rows", problem(), GPU).heuristic == "shipped"


def test_of_two_learners_with_one_name_the_first_stays_and_the_second_is_an_error(build: Build) -> None:
    class Named:
        name, description, statistic, fit = "same", "", "ratio", None
        grid: ClassVar[dict[str, list[int]]] = {}

    first = module(autoheur_learners=lambda: [Named()])
    second = module(autoheur_learners=lambda: [Named()])
    registry = build(others={"a": first, "b": second})
    assert registry.learners["same"][1].name == "a"
    assert "comes from a (a-dist 0.1) already" in str(registry.plugins[2].error)
    with pytest.raises(InputError, match="no learner 'other' \\(known: same\\)"):
        registry.learner("other")
