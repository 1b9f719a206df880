"""What was offered is the universe of a decision: nothing else is answered, and what nobody can score stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

import autoheur
from autoheur import fingerprint
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic import artifact as artifacts
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.installed import Store
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.hookspecs import hookimpl
from autoheur.plugins import Source
from autoheur.registry import Registry
from autoheur.types import Choice, Feature, Operator, Problem, Provenance, Reason, Value

FEATURES = [Feature("rows", integer=True), Feature("block", integer=True, of="choice")]
BLOCKS = [Choice(f"block={size}", {"block": size}) for size in (16, 32, 64)]
HERE = Fingerprint("cpu", "this one")


def learned() -> Artifact:
    """Of blocks up to 16 the score is 1, up to 32 it is 2, above it is 8."""
    tree = Tree([0, 0, -1, -1, -1], [32.5, 16.5, 0, 0, 0], [1, 2, 0, 0, 0], [4, 3, 0, 0, 0], [[], [], [1], [2], [8]])
    model = Forest([Input("block")], [0.0], [tree])
    table: dict[str, list[Value]] = {"block": [16, 32]}
    return Artifact(
        "sort_rows",
        "blocks",
        FEATURES,
        ["block=16", "block=32"],
        model,
        Policy(3.0, guard=False),
        choice_features=table,
    )


def registry(folder: Path, choices: Callable[..., Any] | None = None, **hooks: Callable[..., Any]) -> Registry:
    path = folder / "blocks.json"
    artifacts.write(learned(), path)
    module = ModuleType("plugin")
    implemented = {
        "autoheur_operator": lambda: Operator("sort_rows"),
        "autoheur_features": lambda: FEATURES,
        "autoheur_choices": choices or (lambda: BLOCKS),
        "autoheur_heuristics": lambda: [path],
        **hooks,
    }
    vars(module).update({name: hookimpl(function) for name, function in implemented.items()})
    return Registry([Source(Provenance("sort_rows", "sorters", "3.1"), module)], Store(folder / "store"))


def test_without_choices_the_operator_enumerates_them_for_the_problem(tmp_path: Path) -> None:
    def choices(operator: str, problem: Problem | None) -> Sequence[Choice]:
        assert operator == "sort_rows"
        return BLOCKS if problem is None or int(problem["rows"]) > 100 else BLOCKS[:2]

    made = registry(tmp_path, choices)
    assert made.decide("sort_rows", {"rows": 500}, HERE).choice == "block=64"  # which training never saw
    few = made.decide("sort_rows", {"rows": 50}, HERE)
    assert (few.shortlist, few.reason) == (("block=32", "block=16"), Reason.BELOW_THRESHOLD)
    assert few.confidence == 2.0


def test_a_shortlist_is_neither_decided_nor_unsure(tmp_path: Path) -> None:
    made = registry(tmp_path)
    four = [*BLOCKS, Choice("block=128", {"block": 128})]
    decision = made.decide("sort_rows", {"rows": 1}, HERE, four)
    assert decision.shortlist == ("block=64", "block=128")
    assert (decision.choice, decision.unsure, decision.reason) == (None, False, Reason.SHORTLISTED)
    assert decision.to_dict()["decision"] == "shortlist"


def test_names_get_the_features_that_training_or_the_plugin_knows(tmp_path: Path) -> None:
    made = registry(tmp_path, autoheur_choice_features=lambda name: {"block": int(name.removeprefix("block="))})
    decision = made.decide("sort_rows", {"rows": 1}, HERE, ["block=16", "block=256"])
    assert (decision.choice, decision.confidence) == ("block=256", 8.0)


def test_a_choice_of_which_nobody_knows_features_stays(tmp_path: Path) -> None:
    decision = registry(tmp_path).decide("sort_rows", {"rows": 1}, HERE, [*BLOCKS, "another"])
    assert decision.shortlist == ("block=64", "another")
    assert decision.reason is Reason.SHORTLISTED


@pytest.mark.parametrize("device", [HERE, Fingerprint("cuda", "unknown to all")])
def test_the_only_choice_is_the_answer_whoever_is_asked(tmp_path: Path, device: Fingerprint) -> None:
    decision = registry(tmp_path).decide("sort_rows", {"rows": 1}, device, ["anything"])
    assert (decision.choice, decision.reason, decision.heuristic) == ("anything", Reason.ONLY_CHOICE, None)


@pytest.mark.parametrize(("choices", "message"), [([], "no choices are offered"), (["a", "b", "a"], "offered twice")])
def test_what_cannot_be_chosen_from_is_an_error(tmp_path: Path, choices: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        registry(tmp_path).decide("sort_rows", {"rows": 1}, HERE, choices)


def test_a_plugin_that_cannot_enumerate_leaves_everything_open(tmp_path: Path) -> None:
    def fail() -> None:
        raise RuntimeError("no idea")

    for choices, detail in ((fail, "no idea"), (lambda: None, "autoheur_choices"), (lambda: [3, 4], "3")):
        decision = registry(tmp_path, choices).decide("sort_rows", {"rows": 1}, HERE)
        assert (decision.shortlist, decision.unsure, decision.reason) == ((), True, Reason.PLUGIN_ERROR)
        assert detail in decision.detail


def test_padding_is_never_answered_where_there_is_nothing_to_pad() -> None:
    """Of 400 problems the shipped heuristic used to pad 272 for which that was not possible."""
    operator = autoheur.default_registry().operator("pad_mm")
    device = fingerprint.KNOWN["a100"]
    sample = operator.problems(Random(0), device)
    nothing = {f"{dim}_padded_length": 0 for dim in "mkn"}
    for _ in range(400):
        decision = autoheur.default_registry().decide("pad_mm", {**next(sample), **nothing}, device)
        assert (decision.choice, decision.reason) == ("orig", Reason.ONLY_CHOICE)
