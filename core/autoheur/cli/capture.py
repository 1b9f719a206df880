"""``autoheur capture``."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import click

from autoheur.cli.output import console, json_option, print_json, print_table, table
from autoheur.errors import InputError
from autoheur.files import check_writable

_STDERR = 2


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("shapes.csv"),
    show_default=True,
    help="The file of shapes to write: .csv or .parquet.",
)
@json_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
def capture(out: Path, as_json: bool, command: tuple[str, ...]) -> int:
    """Run COMMAND, such as `python train.py`, and record every matrix product that torch.compile meets in it.

    All processes that it starts are seen, if their Python has autoheur. Their graph caches are left aside, so that
    nothing is missed. `autoheur collect OPERATOR --from FILE` measures what was recorded.
    """
    from autoheur.inductor.capture import read_parts, write_shapes

    check_writable(out)
    with tempfile.TemporaryDirectory(prefix="autoheur-capture-") as folder:
        code = _run(command, as_json, {**os.environ, "AUTOHEUR_CAPTURE": folder})
        shapes = read_parts(Path(folder))
    if not shapes:
        ended = "" if code == 0 else f" (it ended with status {code})"
        raise InputError(f"{command[0]} compiled no mm, addmm or bmm with torch.compile{ended}; nothing written")
    write_shapes(shapes, out)
    kinds = Counter(shape.operator for shape in shapes)
    met: Counter[str] = Counter()
    for shape, count in shapes.items():
        met[shape.operator] += count
    if as_json:
        rows = {operator: {"shapes": kinds[operator], "count": met[operator]} for operator in sorted(kinds)}
        print_json({"out": str(out), "exit_status": code, "operators": rows})
        return code
    result = table("operator", ">shapes", ">met")
    for operator in sorted(kinds):
        result.add_row(operator, str(kinds[operator]), str(met[operator]))
    print_table(result)
    console().print(f"wrote {out}; measure them with: autoheur collect OPERATOR --from {out} --out …", markup=False)
    return code


def _run(command: tuple[str, ...], as_json: bool, environment: dict[str, str]) -> int:
    try:
        # Under --json stdout holds nothing but the JSON.
        process = subprocess.Popen(command, env=environment, stdout=_STDERR if as_json else None)
    except OSError as error:
        raise InputError(f"{command[0]}: cannot run: {error.strerror or error}") from None
    while True:
        try:
            code = process.wait()
            return code if code >= 0 else 128 - code  # as shells say it of a signal
        except KeyboardInterrupt:
            continue  # the command was interrupted too; what it compiled until then is kept
