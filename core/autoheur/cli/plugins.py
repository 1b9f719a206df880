"""``autoheur list`` and ``autoheur show``."""

from __future__ import annotations

from typing import Any

import click

from autoheur.cli.output import console, json_option, print_json, print_table, table
from autoheur.operators import OperatorPlugin
from autoheur.plugins import Plugin
from autoheur.registry import Registry, default_registry
from autoheur.types import Feature, Provenance


@click.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the plugins: operators, learners and what else is installed."""
    rows = plugin_rows(default_registry())
    if as_json:
        print_json({"plugins": rows})
        return
    result = table("name", "kind", "status", "heuristics", "distribution", "version", "hooks")
    for row in rows:
        heuristics = ", ".join(f"{h['name']} [{h['device']}]" for h in row["heuristics"])
        details = row["error"] or ", ".join(hook.removeprefix("autoheur_") for hook in row["hooks"])
        result.add_row(
            row["name"],
            row["kind"],
            row["status"],
            _escape(heuristics or "-"),
            row["distribution"],
            row["version"],
            _escape(details),
            style="red" if row["error"] else None,
        )
    print_table(result)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def plugin_rows(registry: Registry) -> list[dict[str, Any]]:
    """One row per operator, per learner and per other plugin, as ``autoheur list --json`` prints them."""
    learners = registry.learners  # before the plugins: asking for learners is what finds broken ones
    rows = []
    for plugin in registry.plugins:
        own = [learner for learner, source in learners.values() if source is plugin]
        if plugin.usable and own:
            rows += [_row(plugin, learner.name, "learner", "shipped", learner.description) for learner in own]
        elif plugin.operator and plugin.operator.name in registry.operators and plugin.usable:
            rows.append(_operator_row(registry, plugin))
        else:
            name = plugin.operator.name if plugin.operator else plugin.name
            rows.append(_row(plugin, name, _kind(plugin), "error" if plugin.error else "shipped"))
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
    broken = [entry.error for entry in registry.broken_heuristics(name) if entry.tier != "installed"]
    if broken:
        row["status"] = "error"
        row["error"] = "; ".join(broken)
    return row


def _add_heuristics(row: dict[str, Any], registry: Registry, operator: str) -> None:
    row["heuristics"] = heuristic_rows(registry, operator)
    row["devices"] = sorted({heuristic["device"] for heuristic in row["heuristics"]})


def _row(plugin: Plugin, name: str, kind: str, status: str, description: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "status": status,
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
    # Who cannot be read belongs to no operator; any operator's load sees all installed files.
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
    out.print(
        f"from {plugin.provenance}; choices {', '.join(plugin.choices())}; default {plugin.operator.default_choice}"
    )
    features = table("feature", "kind", "raw or formula", "description")
    for feature in plugin.features:
        features.add_row(
            _escape(feature.name), _kind_of(feature), _escape(feature.formula or "raw"), _escape(feature.description)
        )
    print_table(features)
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

    return {
        "name": plugin.name,
        "description": plugin.operator.description,
        "distribution": plugin.provenance.distribution,
        "version": plugin.provenance.version,
        "choices": list(plugin.choices()),
        "default_choice": plugin.operator.default_choice,
        "features": [{**attrs.asdict(feature), "derived": feature.derived} for feature in plugin.features],
        "heuristics": [
            {**row, "precondition": heuristic.artifact.precondition.formula}
            for heuristic, row in zip(default_registry().heuristics(plugin.name), heuristics, strict=True)
        ],
    }
