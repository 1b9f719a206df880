"""``autoheur import``, ``export`` and ``collect``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autoheur import fingerprint
from autoheur.cli.output import console, json_option, print_json, status_console
from autoheur.errors import InputError
from autoheur.registry import default_registry

if TYPE_CHECKING:
    from autoheur.dataset.dataset import Dataset

strict_option = click.option("--strict", is_flag=True, help="Stop at the first malformed line instead of skipping it.")
out_option = click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write."
)
PATH = click.Path(path_type=Path)


def describe(dataset: Dataset) -> dict[str, Any]:
    """What a dataset holds, for ``--json``."""
    return {
        "operator": dataset.operator,
        "device": dataset.device.to_dict(),
        "problems": len(dataset.problems),
        "measurements": len(dataset.rows),
        "choices": list(dataset.choices),
        "features": [feature.name for feature in dataset.features],
    }


@click.command("import")
@click.argument("logs", nargs=-1, required=True, type=PATH)
@out_option
@strict_option
@json_option
def import_command(logs: tuple[Path, ...], out: Path, strict: bool, as_json: bool) -> None:
    """Read AutoHeuristic LOGS (.txt, .gz or .zip) or datasets of one operator and device into one Parquet dataset."""
    from autoheur.dataset.combine import combine
    from autoheur.dataset.reading import read
    from autoheur.dataset.store import write_parquet

    datasets = [read(log, strict=strict) for log in logs]
    combined = combine(datasets)
    write_parquet(combined, out)
    for log, dataset in zip(logs, datasets, strict=True):
        status_console().print(f"{log}: {dataset.summary}", markup=False, soft_wrap=True)
    if as_json:
        print_json({"out": str(out), **describe(combined)})
    else:
        console().print(f"wrote {out}: {combined.summary}", markup=False)


@click.command()
@click.argument("dataset", type=PATH)
@out_option
def export(dataset: Path, out: Path) -> None:
    """Write DATASET back as an AutoHeuristic text log (gzipped if the name ends in .gz)."""
    from autoheur.dataset.export import write_log
    from autoheur.dataset.reading import read

    write_log(read(dataset), out)
    console().print(f"wrote {out}", markup=False)
