"""The path of a question for any site: shortlists, modes, determinism, unknown devices, faults of the site."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import attrs
import pytest

import autoheur
from autoheur import fingerprint
from autoheur.dataset.files import read
from autoheur.heuristic import artifact as artifacts
from autoheur.heuristic.artifact import Artifact, Precondition
from autoheur.heuristic.model import Forest, Policy, Tree
from autoheur.hookspecs import hookimpl
from autoheur.inductor import observed, torch_seams
from autoheur.plugins import Source
from autoheur.site import Question, Seam, Site
from autoheur.types import Feature, Operator, Provenance, Reason

torch = pytest.importorskip("torch")

KERNELS = ("small", "large", "library")
SCORES: dict[tuple[str, ...], list[float]] = {
    ("large",): [0.0, 1.0, 0.0],
    ("small", "library"): [1.0, 0.0, 0.95],
    KERNELS: [1.0, 1.0, 1.0],
}
"""What is left on the shortlist -> scores for which it is."""


def kernels_to_benchmark(tensor: Any, kernels: tuple[str, ...]) -> tuple[str, ...]:
    return kernels


def is_open(tensor: Any) -> bool:
    return not torch._inductor.config.deterministic


def key(tensor: Any) -> str:
    return "key"


def report(times: list[float]) -> None:
    """Torch calls it with what it measured."""


@pytest.fixture
def torchs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Stands in for a module of torch: it benchmarks what its function returns."""
    import torch._inductor.compile_fx  # attached to at once

    module = ModuleType("stand_in")
    for function in (kernels_to_benchmark, is_open, key, report):
        setattr(module, function.__name__, function)
    monkeypatch.setitem(sys.modules, "stand_in", module)
    yield module
    autoheur.disable()
    torch._dynamo.utils.counters.clear()


def seam(attribute: str, *parameters: str) -> Seam:
    return Seam("stand_in", attribute, parameters, "a test")


SITE = Site(
    name="kernels",
    operators=("kernel",),
    seam=seam("kernels_to_benchmark", "tensor", "kernels"),
    tensors=lambda tensor, kernels: (tensor,),
    question=lambda operands, tensor, kernels: Question("kernel", choices=kernels) if operands[0].shape[0] else None,
    answer=lambda choice, tensor, kernels: (choice,),
    narrow=lambda decision, torchs, tensor, kernels: torchs(tensor, decision.shortlist),
    meaning=" or ".join,
    gate=seam("is_open", "tensor"),
    keys=(seam("key", "tensor"),),
    measured=((seam("report", "times"), lambda times: dict(zip(KERNELS, times, strict=True))),),
)


@attrs.define
class Plugins:
    """The operator ``kernel`` and a site, and an artifact with a given answer."""

    bench: Any

    def registry(self, *sites: Any, left: tuple[str, ...] | None = ("large",), default: str | None = None) -> Any:
        plugin = ModuleType("kernel")
        vars(plugin).update(
            autoheur_operator=hookimpl(lambda: Operator("kernel", default_choice=default)),
            autoheur_features=hookimpl(lambda: [Feature("rows", integer=True)]),
            autoheur_choices=hookimpl(lambda: KERNELS),
            autoheur_extract=hookimpl(lambda operands: {"rows": operands[0].shape[0]}),
            autoheur_sites=hookimpl(lambda: list(sites or [SITE])),
        )
        if left is not None:
            leaf = Tree([-1], [0.0], [0], [0], [SCORES[left]])
            artifact = Artifact(
                operator="kernel",
                name="constant",
                features=[Feature("rows", integer=True)],
                choices=list(KERNELS),
                model=Forest([], [0.0] * 3, [leaf], layout="vector", statistic="difference"),
                policy=Policy(0.1, guard=False),
                precondition=Precondition(fingerprint.cpu()),
            )
            artifacts.write(artifact, self.bench.folder / "new.json")
            self.bench.store.install(self.bench.folder / "new.json")
        self.bench.sources = [source for source in self.bench.sources if source.provenance.plugin != "kernel"]
        self.bench.sources.append(Source(Provenance("kernel", "vendor-kernel", "1"), plugin))
        return self.bench.registry()


@pytest.fixture
def plugins(bench: Any) -> Plugins:
    return Plugins(bench)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("left", [("large",), ("small", "library")])
def test_only_what_is_left_is_benchmarked(plugins: Plugins, torchs: Any, left: tuple[str, ...]) -> None:
    with autoheur.enabled(registry=plugins.registry(left=left)):
        assert torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS) == left
    (record,) = autoheur.last_decisions()
    assert record.decision.shortlist == left
    assert record.problem == {"rows": 5}
    if len(left) == 1:
        assert (record.reason, record.taken, record.by) == (Reason.DECIDED, "large", "heuristic")
    else:
        assert (record.reason, record.taken, record.by) == (Reason.SHORTLISTED, "small or library", "inductor")
    name = "large" if len(left) == 1 else "shortlist"
    assert torch._dynamo.utils.counters["autoheur"][f"kernel.{name}"] == 1


def test_a_shortlist_is_left_to_torch_where_a_site_has_no_use_for_it(plugins: Plugins, torchs: Any) -> None:
    registry = plugins.registry(attrs.evolve(SITE, narrow=None), left=("small", "library"))
    with autoheur.enabled(registry=registry):
        assert torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS) == KERNELS
    (record,) = autoheur.last_decisions()
    assert (record.reason, record.taken) == (Reason.SHORTLISTED, "small or large or library")


def test_what_is_not_offered_is_not_answered(plugins: Plugins, torchs: Any) -> None:
    with autoheur.enabled(registry=plugins.registry()):
        assert torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS[::2]) == KERNELS[::2]
        assert torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS[:1]) == KERNELS[:1]
    first, second = autoheur.last_decisions()
    assert set(first.decision.shortlist) <= {"small", "library"}
    assert second.reason is Reason.ONLY_CHOICE


def test_where_there_is_no_question_torch_answers_and_nothing_is_recorded(plugins: Plugins, torchs: Any) -> None:
    registry = plugins.registry(attrs.evolve(SITE, tensors=lambda tensor, kernels: None))
    for each, shape in ((plugins.registry(), (0, 7)), (registry, (5, 7))):
        with autoheur.enabled(registry=each):
            assert torchs.kernels_to_benchmark(torch.ones(shape), KERNELS) == KERNELS
        assert autoheur.last_decisions() == []


@pytest.mark.parametrize("default", [None, "library"])
@pytest.mark.parametrize("left", [KERNELS, ("small", "library"), ("large",), None])
def test_under_deterministic_compilation_there_is_one_answer(
    plugins: Plugins, torchs: Any, left: tuple[str, ...] | None, default: str | None
) -> None:
    registry = plugins.registry(left=left, default=default)
    with autoheur.enabled(registry=registry), torch._inductor.config.patch(deterministic=True):
        assert torchs.is_open(torch.ones(5, 7))
        answer = torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS)
    expected = "large" if left == ("large",) else default or "small"  # without a default: the first that is offered
    assert answer == (expected,)
    (record,) = autoheur.last_decisions()
    assert record.by == ("heuristic" if left == ("large",) else "default")


@pytest.mark.parametrize("mode", ["collect", "shadow"])
def test_what_torch_measures_is_kept_under_keys_of_our_own(plugins: Plugins, torchs: Any, mode: str) -> None:
    keys = []

    def measures(tensor: Any, kernels: tuple[str, ...]) -> tuple[str, ...]:
        keys.append(torchs.key(tensor))
        torchs.report([3.0, 1.0, 2.0])
        return ("large",)

    torchs.kernels_to_benchmark = measures
    with autoheur.enabled(mode, plugins.registry()):
        assert torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS) == ("large",)
        torchs.key(torch.ones(1))
    assert keys[0].startswith("autoheur ")
    assert keys[0].endswith(": key")
    dataset = read(next(observed.measurements_folder().glob("kernel-*.txt")))
    assert dataset.problems["rows"].to_list() == [5]
    assert dataset.rows["time_ms"].to_list() == [3.0, 1.0, 2.0]
    comparisons = [json.loads(path.read_text()) for path in observed.comparisons_folder().glob("*.jsonl")]
    found = [(row["choice"], row["inductor"]) for row in comparisons]
    assert found == ([("large", "large")] if mode == "shadow" else [])


def test_a_default_that_is_not_offered_is_not_taken(plugins: Plugins, torchs: Any) -> None:
    registry = plugins.registry(left=KERNELS, default="library")
    with autoheur.enabled(registry=registry), torch._inductor.config.patch(deterministic=True):
        assert torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS[:2]) == ("small",)


@pytest.mark.parametrize("distributed", [False, True])
def test_the_clock_decides_nothing_among_several_processes(plugins: Plugins, torchs: Any, distributed: bool) -> None:
    if distributed:
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        with autoheur.enabled(registry=plugins.registry(), time_budget=1e-9):
            answers = [torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS) for _ in range(5)]
    finally:
        if distributed:
            torch.distributed.destroy_process_group()
    assert answers == [("large",) if distributed else KERNELS] * 5


def test_a_device_that_cannot_be_described_has_no_heuristic(plugins: Plugins, torchs: Any) -> None:
    with autoheur.enabled(registry=plugins.registry()):
        assert torchs.kernels_to_benchmark(torch.ones(5, 7, device="meta"), KERNELS) == KERNELS
    (record,) = autoheur.last_decisions()
    assert (record.device, record.reason, record.problem) == (None, Reason.NO_HEURISTIC, {})
    assert record.to_dict()["device"] is None


def test_a_size_of_which_nothing_is_known_is_not_taken_for_a_number(plugins: Plugins, torchs: Any) -> None:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    with pytest.raises(ValueError, match="nothing is known of the size u0"):
        torch_seams.hint(ShapeEnv().create_unbacked_symint())


def fails(*_: Any, **__: Any) -> Any:
    raise LookupError("out of luck")


def exits(*_: Any, **__: Any) -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize("fault", [fails, exits])
@pytest.mark.parametrize("function", ["tensors", "question", "answer", "meaning", "narrow"])
@pytest.mark.parametrize("deterministic", [False, True])
def test_a_fault_of_a_site_is_one_warning_and_torch_answers(
    plugins: Plugins, torchs: Any, function: str, fault: Any, deterministic: bool, caplog: pytest.LogCaptureFixture
) -> None:
    left = {"narrow": ("small", "library"), "meaning": KERNELS}.get(function, ("large",))
    registry = plugins.registry(attrs.evolve(SITE, **{function: fault}), left=left, default="library")
    with autoheur.enabled(registry=registry), torch._inductor.config.patch(deterministic=deterministic):
        answers = {torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS) for _ in range(3)}
    takes_default = deterministic and function != "answer"
    assert answers == {("library",) if takes_default else KERNELS}
    if not (deterministic and function in ("narrow", "meaning")):  # of which no use is made then
        (message,) = warnings(caplog)
        assert message.startswith("kernels: ")
        assert ("out of luck" if fault is fails else "SystemExit: 3") in message


def test_what_torchs_own_function_raises_is_passed_on(plugins: Plugins, torchs: Any) -> None:
    torchs.kernels_to_benchmark = lambda tensor, kernels: {}[kernels]
    with autoheur.enabled(registry=plugins.registry(left=KERNELS)), pytest.raises(KeyError):
        torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS)


MISSING = {
    "module": attrs.evolve(SITE, name="other", seam=Seam("no_such_module", "decide")),
    "attribute": attrs.evolve(SITE, name="other", seam=seam("no_such_function")),
    "parameters": attrs.evolve(SITE, name="other", seam=seam("report", "times", "devices")),
    "helper": attrs.evolve(SITE, name="other", seam=seam("report", "times"), helpers=(seam("no_such_helper"),)),
}


@pytest.mark.parametrize("missing", MISSING)
def test_a_site_that_torch_has_no_place_for_is_left_out_and_the_others_go_on(
    plugins: Plugins, torchs: Any, missing: str, caplog: pytest.LogCaptureFixture
) -> None:
    registry = plugins.registry(MISSING[missing], SITE)
    for _ in range(2):
        with autoheur.enabled(registry=registry):
            assert torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS) == ("large",)
    (message,) = warnings(caplog)
    assert message.startswith("the site other of kernel (vendor-kernel 1) is left out: torch ")
    lacking = (*MISSING[missing].helpers, MISSING[missing].seam)[0]
    assert f"lacks {lacking.name} (" in message


def test_of_two_sites_at_one_place_the_first_is_asked(
    plugins: Plugins, torchs: Any, caplog: pytest.LogCaptureFixture
) -> None:
    second = attrs.evolve(SITE, name="second", answer=fails)
    registry = plugins.registry(SITE, second)
    with autoheur.enabled(registry=registry):
        assert torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS) == ("large",)
    (fault,) = [entry.fault for entry in registry.sites if entry.fault]
    assert fault == "stand_in.kernels_to_benchmark is asked at by the site kernels of kernel (vendor-kernel 1) already"


def test_a_registry_without_the_site_is_not_asked_by_it(plugins: Plugins, torchs: Any) -> None:
    """Functions of torch are replaced for the whole process; sessions differ."""
    with autoheur.enabled(registry=plugins.registry()):
        plugins.bench.sources.pop()
        with autoheur.enabled(registry=plugins.bench.registry()):
            assert torchs.kernels_to_benchmark(torch.ones(5, 7), KERNELS) == KERNELS
            assert autoheur.last_decisions() == []


def test_nothing_stays_replaced(plugins: Plugins, torchs: Any) -> None:
    with autoheur.enabled(registry=plugins.registry()):
        assert {name.rpartition(".")[2] for name in torch_seams.replaced() if name.startswith("stand_in")} == {
            "kernels_to_benchmark",
            "is_open",
            "key",
            "report",
        }
    assert (torchs.kernels_to_benchmark, torchs.is_open) == (kernels_to_benchmark, is_open)
    assert (torchs.key, torchs.report) == (key, report)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"name": 3}, "must be <class 'str'>"),
        ({"operators": "kernel"}, "must be <class 'tuple'>"),
        ({"operators": ()}, "operators"),
        ({"seam": "torch.f"}, "must be <class 'autoheur.site.Seam'>"),
        ({"answer": "pad"}, "must be callable"),
        ({"keys": [seam("key")]}, "must be <class 'tuple'>"),
    ],
)
def test_a_site_of_wrong_parts_cannot_be_made(changes: dict[str, Any], error: str) -> None:
    with pytest.raises((TypeError, ValueError, attrs.exceptions.NotCallableError), match=error):
        attrs.evolve(SITE, **changes)
