"""The operator addmm, as autoheur sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from autoheur.plugin import Feature, Operator, Problem, hookimpl
from autoheur_addmm import features
from autoheur_pad_mm.features import choices

if TYPE_CHECKING:
    from autoheur.plugin import Fingerprint
    from autoheur.site import Site


@hookimpl
def autoheur_operator() -> Operator:
    return Operator("addmm", "Pad the operands of aten.addmm to aligned sizes, or not", default_choice="orig")


@hookimpl
def autoheur_features() -> Sequence[Feature]:
    return features.FEATURES


# The function itself, not one that calls it: this is on the way of every decision.
autoheur_extract = hookimpl(features.extract)


@hookimpl
def autoheur_choices(problem: Problem | None) -> Sequence[str]:
    return choices(problem)


@hookimpl
def autoheur_benchmark(problem: Problem, device: str) -> Mapping[str, Callable[[], object]]:
    from autoheur_addmm.benchmark import prepare

    return prepare(problem, device)


@hookimpl
def autoheur_problems(random: Random, device: Fingerprint) -> Iterator[Problem]:
    from autoheur_addmm.problems import sample

    return sample(random, device)


@hookimpl
def autoheur_heuristics() -> Sequence[Path]:
    return sorted(Path(__file__).with_name("heuristics").glob("*.json"))


@hookimpl
def autoheur_sites() -> Sequence[Site]:
    from autoheur_pad_mm.site import PADDING

    return [PADDING]
