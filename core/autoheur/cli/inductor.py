"""``autoheur doctor`` and ``autoheur shadow-report``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from autoheur.cli.output import console, json_option, number, print_json, print_table, table
from autoheur.registry import default_registry


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Examine this machine: versions, devices, what torch offers, sites, what is enabled, folders, heuristics."""
    from autoheur.inductor.doctor import examine

    found = examine(default_registry())
    if as_json:
        print_json(found)
        return
    out = console()
    versions = (f"{name} {version or 'not installed'}" for name, version in found["versions"].items())
    out.print("; ".join(versions), markup=False)
    _print_enabled(found)
    for row in found["devices"]:
        fields = ", ".join(f"{name} {value}" for name, value in row.items() if name != "label")
        out.print(f"device: {row['label']} ({fields})", markup=False)
    for name, path in found["folders"].items():
        out.print(f"{name.replace('_', ' ')}: {path}", markup=False)
    out.print()
    if found["torch"]["seams"]:
        seams = table("in torch", "for", "state")
        for row in found["torch"]["seams"]:
            missing = "missing" if row["needed"] else "missing, not needed to decide"
            state = "found" if row["found"] else f"{missing}: {row['detail']}"
            seams.add_row(row["name"].removeprefix("torch._inductor."), row["purpose"], escape(state))
        print_table(seams)
        out.print()
    _print_sites(found["sites"])
    _print_heuristics(found["heuristics"])
    for line in found["problems"]:
        out.print(f"problem: {line}", markup=False)


def _print_enabled(found: dict[str, Any]) -> None:
    enabled, torch = found["enabled"], found["torch"]
    settings = " ".join(f"{name}={value}" for name, value in enabled["environment"].items())
    autoload = "AUTOHEUR=1 works" if enabled["autoload"] else "AUTOHEUR=1 has no effect: torch's autoload is off"
    state = f"enabled, mode {enabled['mode']}" if enabled["mode"] else "not enabled in this process"
    console().print(f"{state}; {settings or 'no AUTOHEUR variable set'}; {autoload}", markup=False)
    if not torch["supported"]:
        console().print(f"torch cannot be asked: {torch['problem']}", markup=False)


def _print_sites(rows: list[dict[str, Any]]) -> None:
    if not rows:
        console().print("no plugin brings a site, so torch asks nothing")
        return
    sites = table("site", "operators", "from", "state")
    for row in rows:
        state = "available" if row["available"] else f"left out: {row['problem'] or 'torch is not installed'}"
        origin = f"{row['plugin']} ({row['distribution']} {row['version']})"
        sites.add_row(escape(row["name"]), escape(", ".join(row["operators"])), escape(origin), escape(state))
    print_table(sites)
    console().print()


def _print_heuristics(rows: list[dict[str, Any]]) -> None:
    if not rows:
        console().print("no heuristic matches a device of this machine; Inductor decides as without autoheur")
        return
    heuristics = table("operator", "heuristic", "device", "answers", "from")
    for row in rows:
        answers = "yes" if row["answers"] else "no"
        heuristics.add_row(row["operator"], row["name"], escape(row["device"]), answers, escape(row["provenance"]))
    print_table(heuristics)


@click.command("shadow-report")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def shadow_report(files: tuple[Path, ...], as_json: bool) -> None:
    """Compare heuristics with what Inductor measured in mode 'shadow': agreement, regret, time that would be saved.

    FILES are comparisons; by default all that were written on this machine.
    """
    from autoheur.inductor.shadow import report

    found = report(files or None)
    rows = [tally.to_dict() for tally in found.tallies]
    if as_json:
        print_json({"rows": rows, "files": found.files, "skipped_lines": found.skipped})
        return
    if not rows:
        console().print("no comparisons yet: compile something with AUTOHEUR=shadow")
        return
    result = table(
        "operator", "heuristic", ">questions", ">decided", ">agreement", ">regret (gmean)", ">(max)",
        ">Inductor's", ">saved ms",
    )  # fmt: skip
    for row in rows:
        result.add_row(
            row["operator"],
            row["heuristic"] or "-",
            str(row["questions"]),
            str(row["decided"]),
            number(row["agreement"], 3),
            number(row["regret_gmean"], 4),
            number(row["regret_max"], 4),
            number(row["inductor_regret_gmean"], 4),
            number(row["saved_ms"], 1),
        )
    print_table(result)
    if found.skipped:
        console().print(f"{found.skipped} lines could not be read and were left out")
