"""``autoheur explain``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autoheur.cli.data import PATH, strict_option
from autoheur.cli.heuristics import find_artifact, parse_problem
from autoheur.cli.output import console, json_option, print_json, print_table, table
from autoheur.heuristic.artifact import Artifact
from autoheur.registry import default_registry
from autoheur.types import Value

if TYPE_CHECKING:
    from autoheur.train.explain import Explanation, FeatureValue, Neighbour, Way

MOST_CONDITIONS = 40
"""Ways of up to so many conditions in all are told in full; of more, what is asked about how often."""


@click.command()
@click.argument("artifact")
@click.argument("values", nargs=-1, metavar="NAME=VALUE...")
@click.option(
    "--data", multiple=True, type=PATH, help="Show the nearest problems measured in this dataset; repeatable."
)
@click.option("--nearest", type=click.IntRange(min=1), default=5, show_default=True, help="How many of them.")
@strict_option
@json_option
def explain(
    artifact: str, values: tuple[str, ...], data: tuple[Path, ...], nearest: int, strict: bool, as_json: bool
) -> None:
    """Explain how ARTIFACT, a file or a known heuristic's name, decides one problem.

    Shown are the scores and the threshold, every feature with what training saw of it, the way through the model's
    trees, and with --data what was measured near by. The device is not looked at.
    """
    from autoheur.dataset.files import read
    from autoheur.train.explain import explain as explain_problem

    found = find_artifact(artifact, default_registry())
    problem = parse_problem(found.operator, values, found.raw_features)
    explanation = explain_problem(found, problem, [read(path, strict=strict) for path in data], nearest)
    if as_json:
        print_json(_to_json(found, explanation))
        return
    out = console()
    out.print(f"[bold]{explanation.choice or 'unsure'}[/bold]", end="")
    out.print(f"  ({_reason(found, explanation)})", markup=False)
    _print_scores(explanation)
    _print_features(explanation.features)
    _print_ways(found, explanation)
    if data:
        _print_neighbours(explanation.neighbours)


def _reason(artifact: Artifact, explanation: Explanation) -> str:
    policy = artifact.policy
    what = {
        "ratio": "best score over second best",
        "difference": "best score minus second best",
        "score": "best score",
    }[artifact.model.statistic]
    if explanation.reason in ("decided", "below_threshold"):
        comparison = ">" if explanation.reason == "decided" else "not >"
        return f"{explanation.reason}: {what} {explanation.confidence:.6g}, {comparison} {policy.threshold:.6g}"
    if explanation.reason == "precondition" and artifact.precondition.formula is not None:
        return f"{explanation.reason}: not {artifact.precondition.formula}"
    return explanation.reason


def _print_scores(explanation: Explanation) -> None:
    if not explanation.scores:
        console().print("\nno scores: a derived feature cannot be computed", markup=False)
        return
    votes = explanation.votes
    trees = len({way.tree for way in explanation.ways})
    rows = table("choice", ">score", *([f">best of {trees} trees in"] if trees > 1 else []))
    for choice, score in sorted(explanation.scores.items(), key=lambda item: -item[1]):
        rows.add_row(choice, f"{score:.6g}", *([str(votes[choice])] if trees > 1 else []))
    console().print()
    print_table(rows)


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


def _print_ways(artifact: Artifact, explanation: Explanation) -> None:
    out = console()
    ways = explanation.ways
    if sum(len(way.conditions) for way in ways) > MOST_CONDITIONS:
        rows = table("asked about", ">times")
        for feature, count in explanation.asked.items():
            rows.add_row(feature, str(count))
        out.print()
        print_table(rows)
        out.print("\nthe way through every tree is in the output of --json", markup=False)
        return
    for way in ways:
        where = f"tree {way.tree + 1}" if len(artifact.model.trees) > 1 else "the tree"
        outputs = ", ".join(f"{output:.6g}" for output in way.outputs)
        out.print(f"\n{where}{f', for {way.choice}' if way.choice else ''}: {outputs}", markup=False)
        for condition in way.conditions:
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
        "operator": artifact.operator,
        "heuristic": artifact.name,
        "decision": explanation.choice or "unsure",
        "choice": explanation.choice,
        "reason": explanation.reason,
        "statistic": artifact.model.statistic,
        "confidence": explanation.confidence if math.isfinite(explanation.confidence) else None,
        "threshold": artifact.policy.threshold,
        "scores": explanation.scores,
        "votes": explanation.votes,
        "features": [
            {
                "name": each.feature.name,
                "value": each.value,
                "formula": each.feature.formula,
                "seen": None
                if each.seen is None
                else {"low": each.seen.low, "high": each.seen.high}
                if each.seen.categories is None
                else {"categories": each.seen.categories},
                "inside": each.inside,
            }
            for each in explanation.features
        ],
        "ways": list(map(_way_to_json, explanation.ways)),
        "nearest": list(_nearest_to_json(explanation)),
    }


def _way_to_json(way: Way) -> dict[str, Any]:
    return {
        "tree": way.tree,
        "choice": way.choice,
        "conditions": [
            {"feature": each.feature, "value": each.value, "limit": each.limit, "holds": each.holds}
            for each in way.conditions
        ],
        "outputs": list(way.outputs),
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
