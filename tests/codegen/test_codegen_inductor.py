"""The ``inductor`` target, asked through PyTorch's own controller."""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from autoheur.codegen import compile_artifact, generate
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.artifact import Artifact, Precondition, Seen
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.types import Feature

torch = pytest.importorskip("torch")
pytest.importorskip("torch._inductor.autoheuristic.learned_heuristic_controller")

from torch._inductor.autoheuristic import artifacts as torch_artifacts  # noqa: E402
from torch._inductor.autoheuristic.autoheuristic_utils import AHContext, AHMetadata  # noqa: E402
from torch._inductor.autoheuristic.learned_heuristic_controller import LearnedHeuristicController  # noqa: E402

FEATURES = [
    *(Feature("m", integer=True), Feature("k", integer=True), Feature("mat1_dtype", "categorical")),
    *(Feature("prepadded_mat1", "categorical"), Feature("m/k", formula="m / k")),
]
INPUTS = [
    *(Input("m"), Input("m/k"), Input("mat1_dtype", "torch.float16"), Input("prepadded_mat1", "True")),
    Input(choice="pad"),
]
# pad: 1.0, or 1.8 where m > 600; orig: 1.0, or 1.4 for float16, or 1.7 where m / k > 8 besides.
TREE = Tree(
    feature=[4, 2, 0, -1, 1, -1, -1, -1, -1],
    threshold=[0.5, 0.5, 600.5, 0.0, 8.0, 0.0, 0.0, 0.0, 0.0],
    left=[1, 3, 5, 0, 7, 0, 0, 0, 0],
    right=[2, 4, 6, 0, 8, 0, 0, 0, 0],
    value=[[], [], [], [1.0], [], [1.0], [1.8], [1.4], [1.7]],
)
A100 = Fingerprint("cuda", "NVIDIA A100", "8.0", sm_count=108, shared_memory=166912)
ARTIFACT = Artifact(
    operator="pad_mm",
    name="aaa test",
    features=FEATURES,
    choices=["orig", "pad"],
    model=Forest(INPUTS, [0.0], [TREE]),
    policy=Policy(1.3, guard=True),
    precondition=Precondition(A100, "m >= 16"),
    seen={"k": Seen(0.0, 4096.0)},
)
PROBLEMS: list[dict[str, Any]] = [
    {"m": m, "k": k, "mat1_dtype": dtype, "prepadded_mat1": True}
    for m in (8, 16, 600, 601, 9000)
    for k in (0, 64, 75, 5000)
    for dtype in (torch.float16, torch.float32)
]


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Puts generated modules where PyTorch looks first, and takes them away afterwards."""
    before = (LearnedHeuristicController.heuristics_initialized, LearnedHeuristicController.existing_heuristics)
    path, modules = list(torch_artifacts.__path__), set(sys.modules)

    def reset() -> None:
        LearnedHeuristicController.heuristics_initialized = False
        LearnedHeuristicController.existing_heuristics = defaultdict(list)

    def install(*found: Artifact) -> None:
        for position, artifact in enumerate(found):
            (tmp_path / f"_generated_{position}.py").write_text(generate(artifact, "inductor"), encoding="utf-8")
        importlib.invalidate_caches()
        reset()

    torch_artifacts.__path__.insert(0, str(tmp_path))
    yield install
    torch_artifacts.__path__[:] = path
    LearnedHeuristicController.heuristics_initialized, LearnedHeuristicController.existing_heuristics = before
    for name in set(sys.modules) - modules:
        if name.startswith(torch_artifacts.__name__ + "._generated_"):
            del sys.modules[name]


def controller(
    problem: Mapping[str, Any], choices: tuple[str, ...] = ("orig", "pad"), memory: int = 166912, name: str = "pad_mm"
) -> Any:
    context = AHContext()
    for feature, value in problem.items():
        context.add_feature(feature, value, is_categorical=not isinstance(value, int | float))
    return LearnedHeuristicController(AHMetadata(memory, (8, 0), list(choices), name), context)


def test_torch_gets_the_same_decisions_as_the_python_target(installed: Callable[..., None]) -> None:
    installed(ARTIFACT)
    decide = compile_artifact(ARTIFACT).decide
    answers = [decide(problem) for problem in PROBLEMS]
    assert {reason for _, reason, _ in answers} == {"decided", "below_threshold", "out_of_range", "precondition"}
    assert {choice for choice, _, _ in answers} == {"orig", "pad", None}
    assert [controller(problem).get_decision() for problem in PROBLEMS] == [choice for choice, _, _ in answers]


def test_torch_gets_the_same_rankings_where_the_heuristic_applies(installed: Callable[..., None]) -> None:
    installed(ARTIFACT)
    compiled = compile_artifact(ARTIFACT)
    for problem in PROBLEMS:
        applies = compiled.decide(problem)[1] in ("decided", "below_threshold")
        assert controller(problem).get_decisions_ranked(2) == (compiled.rank(problem) if applies else None)


def test_an_ensemble_answers_through_torch_as_well(installed: Callable[..., None]) -> None:
    step = Tree([0, -1, -1], [600.5, 0.0, 0.0], [1, 0, 0], [2, 0, 0], [[], [0.0], [0.001]])
    ensemble = attrs.evolve(ARTIFACT, model=attrs.evolve(ARTIFACT.model, trees=[TREE, *[step] * 400]))
    assert "_add_up" in generate(ensemble, "inductor")
    installed(ensemble)
    decide = compile_artifact(ensemble).decide
    decisions = [decide(problem)[0] for problem in PROBLEMS]
    assert [controller(problem).get_decision() for problem in PROBLEMS] == decisions
    assert len(set(decisions)) > 1


def test_a_choice_that_is_not_available_is_not_decided(installed: Callable[..., None]) -> None:
    installed(ARTIFACT)
    problem = {"m": 9000, "k": 4096, "mat1_dtype": torch.float32, "prepadded_mat1": False}
    assert controller(problem).get_decision() == "pad"
    assert controller(problem, choices=("orig", "other")).get_decision() is None


def test_torch_asks_about_choices_by_name_and_their_features_are_in_the_code(installed: Callable[..., None]) -> None:
    """Torch hands names over; those that training saw come with their features, others have no score and stay."""
    tree = Tree([0, -1, -1], [32.5, 0, 0], [1, 0, 0], [2, 0, 0], [[], [1.0], [9.0]])
    installed(
        attrs.evolve(
            ARTIFACT,
            features=[Feature("m", integer=True), Feature("block", of="choice")],
            choices=["small", "large"],
            choice_features={"block": [16, 64]},
            model=Forest([Input("block")], [0.0], [tree]),
            seen={},
        )
    )
    assert controller({"m": 640}, choices=("small", "large")).get_decision() == "large"
    assert controller({"m": 640}, choices=("small", "large", "never seen")).get_decision() is None
    assert controller({"m": 640}, choices=("small", "large")).get_decisions_ranked(2) == ["large", "small"]


def test_every_artifact_gives_torch_one_heuristic_of_its_operator(installed: Callable[..., None]) -> None:
    installed(ARTIFACT, attrs.evolve(ARTIFACT, name="another", operator="somewhere else"))
    asked = controller(PROBLEMS[0])
    ours = [h for h in asked.get_heuristics("pad_mm") if "_generated_" in type(h).__module__]
    assert [type(heuristic).__name__ for heuristic in ours] == ["AaaTest"]
    assert [type(h).__name__ for h in asked.get_heuristics("somewhere else")] == ["Another"]
    assert ours[0].get_confidence_threshold() == 1.3


@pytest.mark.parametrize(
    ("device", "memory", "capability", "meets"),
    [
        (A100, 166912, (8, 0), True),
        (A100, 166911, (8, 0), False),
        (A100, 166912, (9, 0), False),
        (Fingerprint("cuda", capability="8.0"), 1, (8, 0), True),
        (Fingerprint("cuda", shared_memory=166912), 166912, (7, 5), True),
        (Fingerprint(), 1, (0, 0), True),
        (Fingerprint("cpu"), None, (0, 0), True),
        (Fingerprint("cpu"), 166912, (8, 0), False),
        (Fingerprint("cuda", capability="gfx942"), 166912, (9, 4), False),
    ],
)
def test_the_precondition_checks_what_torch_tells_of_the_device(
    device: Fingerprint, memory: int, capability: tuple[int, int], meets: bool
) -> None:
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(generate(attrs.evolve(ARTIFACT, precondition=Precondition(device)), "inductor"), namespace)
    heuristic = namespace["AaaTest"]()
    for name, expected in (("pad_mm", meets), ("mm", False)):
        assert heuristic.check_precondition(AHMetadata(memory, capability, [], name), AHContext()) is expected
