"""``autoheur codegen``, ``decide``, ``install``, ``uninstall`` and ``artifacts``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from autoheur import fingerprint
from autoheur.cli.output import console, json_option, print_json, print_table, table
from autoheur.errors import InputError
from autoheur.files import write_text
from autoheur.heuristic import artifact as artifact_files
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.installed import Store
from autoheur.registry import Registry, default_registry
from autoheur.types import Feature, Value


def find_artifact(text: str, registry: Registry) -> Artifact:
    """Read an artifact by file, or else take the installed or shipped heuristic of that name.

    Raises:
        InputError: neither; the message lists the names there are.
    """
    if Path(text).exists() or text.endswith(".json"):
        return artifact_files.read(text)
    known = {h.name: h.artifact for name in registry.operator_names() for h in reversed(registry.heuristics(name))}
    if text not in known:
        raise InputError(f"{text}: no such file, and no heuristic of that name (known: {', '.join(known) or 'none'})")
    return known[text]


choices_option = click.option(
    "--choice",
    "choices",
    multiple=True,
    help="A choice to decide between [default: all possible]; repeatable.",
)


@click.command()
@click.argument("artifact")
@click.option("--target", default="python", show_default=True, help="python (standalone) or inductor (torch's format).")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead of stdout.")
def codegen(artifact: str, target: str, out: Path | None) -> None:
    """Generate code from ARTIFACT: a file, or the name of an installed or shipped heuristic."""
    registry = default_registry()
    source = registry.codegen(find_artifact(artifact, registry), target)
    if out is None:
        print(source, end="")
    else:
        write_text(out, source)


@click.command()
@click.argument("operator")
@click.argument("values", nargs=-1, metavar="NAME=VALUE...")
@click.option(
    "--device", help="A device: 'current', a100, h100, h200, JSON, or field=value,… [default: this machine's]."
)
@choices_option
@json_option
def decide(operator: str, values: tuple[str, ...], device: str | None, choices: tuple[str, ...], as_json: bool) -> None:
    """Make one decision for OPERATOR and say why. Name every raw feature (autoheur show OPERATOR lists them)."""
    registry = default_registry()
    where = fingerprint.parse(device) if device else fingerprint.current()
    problem = parse_problem(operator, values, registry.raw_features(operator))
    decision = registry.decide(operator, problem, where, choices or None)
    if as_json:
        print_json({**decision.to_dict(), "device": where.label()})
        return
    out = console()
    out.print(f"[bold]{', '.join(decision.shortlist) if not decision.unsure else 'unsure'}[/bold]", end="")
    explanation = decision.reason.value
    if decision.heuristic:
        explanation += (
            f": confidence {decision.confidence:.6g}, heuristic {decision.heuristic} of {decision.provenance}"
        )
    if decision.detail:
        explanation += f": {decision.detail}"
    out.print(f"  ({explanation})", markup=False)


def parse_problem(operator: str, values: Sequence[str], features: Sequence[Feature]) -> dict[str, Value]:
    """Read ``name=value`` arguments into a problem, with each value in the type of its feature.

    Raises:
        InputError: an argument without ``=``, a name given twice, or a value that is no number where one is needed.
    """
    kinds = {feature.name: feature for feature in features}
    problem: dict[str, Value] = {}
    for text in values:
        # A feature's own name may contain "=": prefer the longest known name.
        known = [name for name in kinds if text.startswith(f"{name}=")]
        name = max(known, key=len) if known else text.partition("=")[0]
        if "=" not in text:
            raise InputError(f"{operator}: {text!r} is not name=value")
        if name in problem:
            raise InputError(f"{operator}: {name} is given twice")
        value = text[len(name) + 1 :]
        feature = kinds.get(name)
        problem[name] = _number(operator, feature, value) if feature and feature.kind == "numerical" else value
    return problem


def _number(operator: str, feature: Feature, text: str) -> float:
    try:
        value: float = int(text) if feature.integer else float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        what = "a whole number" if feature.integer else "a number"
        raise InputError(f"{operator}: feature {feature.name} must be {what}, not {text!r}")
    return value


@click.command()
@click.argument("artifact", type=click.Path(path_type=Path))
@json_option
def install(artifact: Path, as_json: bool) -> None:
    """Install the file ARTIFACT for this user; it then takes precedence over what plugins ship."""
    installed, path = Store.default().install(artifact)
    if as_json:
        print_json({"name": installed.name, "operator": installed.operator, "path": str(path)})
    else:
        console().print(f"installed {installed.name} for {installed.operator}: {path}", markup=False)


@click.command()
@click.argument("name")
@json_option
def uninstall(name: str, as_json: bool) -> None:
    """Remove the installed artifact NAME."""
    path = Store.default().uninstall(name)
    if as_json:
        print_json({"name": name, "path": str(path)})
    else:
        console().print(f"removed {path}", markup=False)


@click.command()
@json_option
def artifacts(as_json: bool) -> None:
    """List the heuristics known here, installed and shipped, in order of precedence per operator."""
    registry = default_registry()
    rows = [
        {
            "operator": operator,
            "name": heuristic.name,
            "device": heuristic.device.label(),
            "tier": heuristic.tier,
            "provenance": str(heuristic.provenance),
            "path": str(heuristic.path),
            "error": None,
        }
        for operator in registry.operator_names()
        for heuristic in registry.heuristics(operator)
    ]
    broken = {
        entry.path: entry for operator in registry.operator_names() for entry in registry.broken_heuristics(operator)
    }
    rows += [
        {
            "operator": None,
            "name": path.stem,
            "device": None,
            "tier": "broken",
            "provenance": str(entry.provenance),
            "path": str(path),
            "error": entry.error,
        }
        for path, entry in broken.items()
    ]
    if as_json:
        print_json({"artifacts": rows})
        return
    result = table("operator", "name", "device", "from", "file")
    for row in rows:
        result.add_row(
            row["operator"] or "-",
            row["name"],
            row["device"] or "-",
            str(row["error"] or row["provenance"]),
            row["path"],
        )
    print_table(result)
