"""``autoheur explain``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autoheur.cli.data import PATH, strict_option
from autoheur.cli.heuristics import choices_option, find_artifact, parse_problem
from autoheur.cli.output import console, json_option, print_json, print_table, status_console, table
from autoheur.errors import describe
from autoheur.heuristic.artifact import Artifact
from autoheur.registry import Registry, default_registry
from autoheur.types import Problem, Reason, Value

if TYPE_CHECKING:
    from autoheur.train.explain import DecisionPath, Explanation, FeatureValue, Neighbour

MOST_CHOICES = 20
"""The best-scored choices that are shown."""

MOST_CONDITIONS = 40
"""Paths of up to so many conditions in all are told in full; of more, what they test how often."""


@click.command()
@click.argument("artifact")
@click.argument("values", nargs=-1, metavar="NAME=VALUE...")
@click.option(
    "--data", multiple=True, type=PATH, help="Show the nearest problems measured in this dataset; repeatable."
)
@choices_option
@click.option("--nearest", type=click.IntRange(min=1), default=5, show_default=True, help="How many of them.")
@strict_option
@json_option
def explain(
    artifact: str,
    values: tuple[str, ...],
    data: tuple[Path, ...],
    choices: tuple[str, ...],
    nearest: int,
    strict: bool,
    as_json: bool,
) -> None:
    """Explain how ARTIFACT, a file or a known heuristic's name, decides one problem.

    Shown are the choices with their scores, every feature with what training saw of it, the paths through the model's
    trees, and with --data what was measured near by. The device is not looked at.
    """
    from autoheur.dataset.files import read
    from autoheur.train.explain import explain as explain_problem

    registry = default_registry()
    found = find_artifact(artifact, registry)
    problem = parse_problem(found.operator, values, found.raw_features)
    datasets = [read(path, strict=strict) for path in data]
    explanation = explain_problem(found, problem, datasets, nearest, _offered(registry, found, problem, choices))
    if as_json:
        print_json(_to_json(found, explanation))
        return
    out = console()
    decision = explanation.decision
    out.print(f"[bold]{', '.join(decision.shortlist) if not decision.unsure else 'unsure'}[/bold]", end="")
    out.print(f"  ({_reason(found, explanation)})", markup=False)
    _print_choices(explanation)
    _print_features(explanation.features)
    _print_paths(found, explanation)
    if data:
        _print_neighbours(explanation.neighbours)


def _offered(
    registry: Registry, artifact: Artifact, problem: Problem, choices: Sequence[str]
) -> Mapping[str, Mapping[str, Value]] | None:
    """What the artifact is to choose from; ``None`` (what training saw) where the operator's plugin cannot say."""
    if choices:
        return registry.offered(artifact, problem, choices)
    try:
        return registry.offered(artifact, problem)
    except Exception as error:
        status_console().print(f"the choices are those that training saw: {describe(error)}", markup=False)
        return None


def _reason(artifact: Artifact, explanation: Explanation) -> str:
    policy, decision = artifact.policy, explanation.decision
    reason = decision.reason.value
    what = {
        "ratio": "best score over second best",
        "difference": "best score minus second best",
        "score": "best score",
    }[artifact.model.statistic]
    if decision.reason is Reason.SHORTLISTED:
        kept, offered = len(decision.shortlist), len(explanation.choices)
        return f"{reason}: {kept} of {offered} choices, up to a {artifact.model.statistic} of {policy.threshold:.6g}"
    if decision.reason in (Reason.DECIDED, Reason.BELOW_THRESHOLD):
        comparison = ">" if decision.reason is Reason.DECIDED else "not >"
        return f"{reason}: {what} {decision.confidence:.6g}, {comparison} {policy.threshold:.6g}"
    if decision.reason is Reason.PRECONDITION and artifact.precondition.formula is not None:
        return f"{reason}: not {artifact.precondition.formula}"
    return reason


def _print_choices(explanation: Explanation) -> None:
    if not explanation.scores:
        console().print("\nno scores: a feature cannot be computed", markup=False)
        return
    votes = explanation.votes
    trees = len({path.tree for path in explanation.paths})
    shown = explanation.choices[:MOST_CHOICES]
    features = [each.feature.name for each in shown[0].features]
    rows = table(
        "choice", ">score", *([f">best of {trees} trees in"] if trees > 1 else []), "", *(f">{f}" for f in features)
    )
    for choice in shown:
        rows.add_row(
            choice.name,
            "none" if choice.score is None else f"{choice.score:.6g}",
            *([str(votes.get(choice.name, 0))] if trees > 1 else []),
            "left" if choice.kept else "",
            *(f"{_shown(each.value)}{' outside' if each.inside is False else ''}" for each in choice.features),
        )
    console().print()
    print_table(rows)
    if more := len(explanation.choices) - len(shown):
        console().print(f"\nand {more} more in the output of --json", markup=False)


def _print_features(features: tuple[FeatureValue, ...]) -> None:
    rows = table("feature", ">value", "seen in training", "")
    for each in features:
        rows.add_row(each.feature.name, _shown(each.value), _seen(each), "outside" if each.inside is False else "")
    console().print()
    print_table(rows)


def _seen(each: FeatureValue) -> str:
    if each.seen is None:
        return ""
    if each.seen.categories is not None:
        return ", ".join(each.seen.categories)
    return f"{_shown(each.seen.low)} to {_shown(each.seen.high)}"


def _shown(value: Value | None) -> str:
    return f"{value:.10g}" if isinstance(value, float) else "?" if value is None else str(value)


def _print_paths(artifact: Artifact, explanation: Explanation) -> None:
    out = console()
    paths = explanation.paths
    if sum(len(path.conditions) for path in paths) > MOST_CONDITIONS:
        rows = table("tested", ">times")
        for feature, count in explanation.tested.items():
            rows.add_row(feature, str(count))
        out.print()
        print_table(rows)
        out.print("\nthe path through every tree is in the output of --json", markup=False)
        return
    for path in paths:
        where = f"tree {path.tree + 1}" if len(artifact.model.trees) > 1 else "the tree"
        outputs = ", ".join(f"{output:.6g}" for output in path.outputs.values())
        out.print(f"\n{where}{f', for {path.choice}' if path.choice else ''}: {outputs}", markup=False)
        for condition in path.conditions:
            out.print(f"  {condition}", markup=False)


def _print_neighbours(neighbours: tuple[Neighbour, ...]) -> None:
    choices = list(dict.fromkeys(choice for neighbour in neighbours for choice in neighbour.times_ms))
    rows = table(">distance", *(f">{choice} ms" for choice in choices), "best", "where it differs")
    for neighbour in neighbours:
        times = (neighbour.times_ms.get(choice) for choice in choices)
        differences = " ".join(f"{name}={_shown(value)}" for name, value in neighbour.differences.items())
        rows.add_row(
            f"{neighbour.distance:.3f}",
            *("failed" if time_ms is None else f"{time_ms:.6g}" for time_ms in times),
            neighbour.best or "-",
            differences or "nowhere",
        )
    console().print()
    print_table(rows)


def _to_json(artifact: Artifact, explanation: Explanation) -> dict[str, Any]:
    return {
        **explanation.decision.to_dict(),
        "statistic": artifact.model.statistic,
        "threshold": artifact.policy.threshold,
        "scores": explanation.scores,
        "votes": explanation.votes,
        "features": list(map(_feature_to_json, explanation.features)),
        "choices": [
            {
                "name": choice.name,
                "score": choice.score,
                "kept": choice.kept,
                "features": list(map(_feature_to_json, choice.features)),
            }
            for choice in explanation.choices
        ],
        "paths": list(map(_path_to_json, explanation.paths)),
        "nearest": list(_nearest_to_json(explanation)),
    }


def _feature_to_json(each: FeatureValue) -> dict[str, Any]:
    seen, shown = each.seen, None
    if seen is not None:
        shown = {"low": seen.low, "high": seen.high} if seen.categories is None else {"categories": seen.categories}
    return {
        "name": each.feature.name,
        "value": each.value,
        "formula": each.feature.formula,
        "seen": shown,
        "inside": each.inside,
    }


def _path_to_json(path: DecisionPath) -> dict[str, Any]:
    return {
        "tree": path.tree,
        "choice": path.choice,
        "conditions": [
            {"feature": each.feature, "value": each.value, "limit": each.limit, "holds": each.holds}
            for each in path.conditions
        ],
        "outputs": list(path.outputs.values()),
    }


def _nearest_to_json(explanation: Explanation) -> Iterator[dict[str, Any]]:
    asked = {each.feature.name: each.value for each in explanation.features if not each.feature.derived}
    for neighbour in explanation.neighbours:
        yield {
            "dataset": neighbour.dataset,
            "distance": neighbour.distance,
            "problem": asked | neighbour.differences,
            "times_ms": neighbour.times_ms,
            "best": neighbour.best,
        }
