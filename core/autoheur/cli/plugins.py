"""``autoheur list``, ``autoheur show`` and ``autoheur check``."""

from __future__ import annotations

from typing import Any

import click

import autoheur
from autoheur import checks
from autoheur.cli.output import console, json_option, print_json, print_table, table
from autoheur.heuristic.artifact import of_choices
from autoheur.operators import OperatorPlugin
from autoheur.plugins import Plugin
from autoheur.registry import Registry, default_registry
from autoheur.types import Feature, Provenance


@click.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the plugins: operators, learners and what else is installed.

    Status: "shipped" brings what it should; "stub" is an operator without a learned heuristic yet; "installed" is known
    from installed artifacts alone; "error" is out of use, wholly or in part. Origin: "shipped" comes with autoheur,
    "third-party" from another distribution, "installed" was installed by you.
    """
    rows = plugin_rows(default_registry())
    if as_json:
        print_json({"plugins": rows})
        return
    result = table("name", "kind", "status", "origin", "heuristics", "distribution", "version", "hooks")
    for row in rows:
        heuristics = ", ".join(f"{h['name']} [{h['device']}]" for h in row["heuristics"])
        details = row["error"] or ", ".join(hook.removeprefix("autoheur_") for hook in row["hooks"])
        result.add_row(
            row["name"],
            row["kind"],
            row["status"],
            row["origin"],
            _escape(heuristics or "-"),
            row["distribution"],
            row["version"],
            _escape(details),
            style="red" if row["error"] else None,
        )
    print_table(result)
    if any(row["status"] == "stub" for row in rows):
        console().print("stub: no learned heuristic yet; train one (autoheur train) and install it (autoheur install)")
    if any(row["error"] for row in rows):
        console().print("error: autoheur check says what is wrong, one line each")


@click.command()
@click.argument("name", required=False)
@json_option
@click.pass_context
def check(context: click.Context, name: str | None, as_json: bool) -> None:
    """Check plugins and artifacts without a device; exit status 1 if anything is wrong.

    NAME is a plugin, an operator or a distribution (default: everything). Asks an operator for its features, formulas,
    choices and a few problems, generates code from the artifacts, and looks at learners and sites.
    """
    import attrs

    found = checks.check(default_registry(), name)
    if as_json:
        print_json({"plugins": [attrs.asdict(entry) for entry in found]})
    else:
        result = table("plugin", "distribution", "version", "result")
        for entry in found:
            for line in entry.faults or ("fine",):
                row = (entry.name, entry.distribution, entry.version, _escape(line))
                result.add_row(*row, style="red" if entry.faults else None)
        print_table(result)
    context.exit(1 if any(entry.faults for entry in found) else 0)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def plugin_rows(registry: Registry) -> list[dict[str, Any]]:
    """One row per operator, per learner and per other plugin, as ``autoheur list --json`` prints them."""
    learners = registry.learners  # before the plugins: asking for learners is what finds broken ones
    rows = []
    for plugin in registry.plugins:
        own = [learner for learner, source in learners.values() if source is plugin]
        if plugin.usable and plugin.operator:
            added = [_operator_row(registry, plugin)]
        elif plugin.usable and own:
            added = [_row(plugin, learner.name, "learner", "shipped", learner.description) for learner in own]
        else:
            name = plugin.operator.name if plugin.operator else plugin.name
            added = [_row(plugin, name, _kind(plugin), "shipped")]
        if faults := checks.quick_faults(registry, plugin):
            for row in added:
                row["status"], row["error"] = "error", "; ".join(faults)
        rows += added
    rows += _installed_rows(registry)
    return rows


def _kind(plugin: Plugin) -> str:
    if plugin.operator or "autoheur_operator" in plugin.hooks:
        return "operator"
    if "autoheur_learners" in plugin.hooks:
        return "learner"
    return "heuristics" if "autoheur_heuristics" in plugin.hooks else "extension"


def _operator_row(registry: Registry, plugin: Plugin) -> dict[str, Any]:
    assert plugin.operator is not None
    name = plugin.operator.name
    row = _row(plugin, name, "operator", "stub", plugin.operator.description)
    _add_heuristics(row, registry, name)
    if any(heuristic["tier"] in ("third-party", "shipped") for heuristic in row["heuristics"]):
        row["status"] = "shipped"
    return row


def _add_heuristics(row: dict[str, Any], registry: Registry, operator: str) -> None:
    row["heuristics"] = heuristic_rows(registry, operator)
    row["devices"] = sorted({heuristic["device"] for heuristic in row["heuristics"]})


def _origin(provenance: Provenance) -> str:
    """Who brings a plugin. What ships with autoheur shares its prefix and its version."""
    if provenance.distribution == "-":
        return "installed"
    ours = provenance.distribution.startswith("autoheur-") and provenance.version == autoheur.__version__
    return "shipped" if ours else "third-party"


def _row(plugin: Plugin, name: str, kind: str, status: str, description: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "status": status,
        "origin": _origin(plugin.provenance),
        "description": description,
        "heuristics": [],
        "devices": [],
        "plugin": plugin.name,
        "distribution": plugin.provenance.distribution,
        "version": plugin.provenance.version,
        "hooks": list(plugin.hooks),
        "error": plugin.error,
    }


def _installed_rows(registry: Registry) -> list[dict[str, Any]]:
    """Operators known from installed artifacts alone, and installed files that are broken."""
    rows = []
    for name in registry.operator_names():
        if name not in registry.operators:
            row = _plain_row(name, "operator", "installed", "known from installed artifacts")
            _add_heuristics(row, registry, name)
            rows.append(row)
    # A file that cannot be read names no operator; loading any operator reads all installed files.
    broken = registry.broken_heuristics("")
    for path, error in {entry.path: entry.error for entry in broken if entry.tier == "installed"}.items():
        rows.append({**_plain_row(path.stem, "artifact", "error"), "error": error})
    return rows


def _plain_row(name: str, kind: str, status: str, description: str = "") -> dict[str, Any]:
    return _row(Plugin(Provenance(name, "-", "-")), name, kind, status, description)


def heuristic_rows(registry: Registry, operator: str) -> list[dict[str, Any]]:
    """The usable heuristics of an operator, in order of precedence."""
    return [
        {
            "name": heuristic.name,
            "device": heuristic.device.label(),
            "fingerprint": heuristic.device.to_dict(),
            "tier": heuristic.tier,
            "learner": heuristic.artifact.provenance.get("learner"),
            "provenance": str(heuristic.provenance),
        }
        for heuristic in registry.heuristics(operator)
    ]


@click.command()
@click.argument("operator")
@json_option
def show(operator: str, as_json: bool) -> None:
    """Show an operator: its features with kinds and formulas, choices, precondition and heuristics."""
    registry = default_registry()
    plugin = registry.operator(operator)
    heuristics = heuristic_rows(registry, operator)
    if as_json:
        print_json(_describe(plugin, heuristics))
        return
    out = console()
    out.print(f"[bold]{operator}[/bold]: {plugin.operator.description}")
    choices = plugin.choices()
    names = ", ".join(choice.name for choice in choices) or "those of each problem"
    out.print(f"from {plugin.provenance}; choices {names}; default {plugin.operator.default_choice}", markup=False)
    belongs_to_choice = of_choices(plugin.features)
    features = table("feature", "of", "kind", "raw or formula", "description")
    for feature in plugin.features:
        features.add_row(
            _escape(feature.name),
            feature.of if not feature.derived else "both" if feature.name in belongs_to_choice else "problem",
            _kind_of(feature),
            _escape(feature.formula or "raw"),
            _escape(feature.description),
        )
    print_table(features)
    out.print()
    if plugin.raw_choice_features and choices:
        listed = table("choice", *(f">{_escape(feature.name)}" for feature in plugin.raw_choice_features))
        for choice in choices:
            listed.add_row(
                _escape(choice.name), *(_escape(str(choice.features[f.name])) for f in plugin.raw_choice_features)
            )
        print_table(listed)
        out.print()
    listed = table("heuristic", "device", "precondition", "learner", "from")
    for heuristic, row in zip(registry.heuristics(operator), heuristics, strict=True):
        condition = heuristic.artifact.precondition.formula or "-"
        listed.add_row(row["name"], row["device"], condition, str(row["learner"] or "-"), row["provenance"])
    if heuristics:
        print_table(listed)
    else:
        out.print("no learned heuristic: train one (autoheur train) and install it (autoheur install)")


def _kind_of(feature: Feature) -> str:
    return "integer" if feature.integer else feature.kind


def _describe(plugin: OperatorPlugin, heuristics: list[dict[str, Any]]) -> dict[str, Any]:
    import attrs

    choices = plugin.choices()
    return {
        "name": plugin.name,
        "description": plugin.operator.description,
        "distribution": plugin.provenance.distribution,
        "version": plugin.provenance.version,
        "choices": [choice.name for choice in choices],
        "choice_features": {choice.name: dict(choice.features) for choice in choices if choice.features},
        "default_choice": plugin.operator.default_choice,
        "features": [{**attrs.asdict(feature), "derived": feature.derived} for feature in plugin.features],
        "heuristics": [
            {**row, "precondition": heuristic.artifact.precondition.formula}
            for heuristic, row in zip(default_registry().heuristics(plugin.name), heuristics, strict=True)
        ],
    }
