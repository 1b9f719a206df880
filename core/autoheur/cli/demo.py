"""``autoheur demo``: the whole pipeline on this machine, as the commands that a user would type."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from autoheur.cli.output import console
from autoheur.errors import InputError
from autoheur.registry import default_registry

_CODE_LINES = 60
_FILES = ("measured.parquet", "fresh.parquet", "heuristic.json", "heuristic.py")


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("autoheur-demo"),
    show_default=True,
    help="Folder for the files that the demo makes.",
)
@click.option("--seconds", type=click.IntRange(min=5), default=75, show_default=True, help="How long to measure.")
def demo(out: Path, seconds: int) -> None:
    """Measure, learn, generate code and decide, on this machine's CPU, in a few minutes.

    The question is pad_mm's: is a matrix product quicker with its operands padded to aligned sizes? All files stay in
    one folder; what is installed on this machine is left alone.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            (out / name).unlink(missing_ok=True)
            (out / f"{name}.journal").unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be used for the demo: {error.strerror or error}") from None
    measured, fresh, artifact, code = (str(out / name) for name in _FILES)
    with _own_store(out):
        _say("What is there to learn, and how? The plugins:")
        _run("list")
        _say(f"Measure pad_mm on this CPU for {seconds} seconds; every repetition of every choice is kept:")
        _run("collect", "pad_mm", "--device", "cpu", "--time-budget", f"{seconds}s", "--out", measured)
        _say("Learn a tree from it, and judge it on problems held back:")
        _run("train", "pad_mm", measured, "--learner", "decision_tree", "--max-wrong-rate", "0.05", "--out", artifact)
        _say("The heuristic as code: a module of its own, which needs nothing but Python:")
        _run("codegen", artifact, "--out", code)
        _show_code(Path(code))
        _say("Install it (in the demo's folder), and ask it about problems that it has never seen:")
        _run("install", artifact)
        _run("collect", "pad_mm", "--device", "cpu", "--seed", "1", "--problems", "6", "--out", fresh)
        _decide_fresh(Path(fresh))
        _run("evaluate", artifact, fresh)
    console().print(f"\nThe files are in {out}; `autoheur --help` lists every command.", markup=False)


@contextmanager
def _own_store(folder: Path) -> Iterator[None]:
    """Install into the demo's folder, not for the user."""
    before = os.environ.get("AUTOHEUR_HOME")
    os.environ["AUTOHEUR_HOME"] = str(folder / "home")
    default_registry.cache_clear()
    try:
        yield
    finally:
        if before is None:
            del os.environ["AUTOHEUR_HOME"]
        else:
            os.environ["AUTOHEUR_HOME"] = before
        default_registry.cache_clear()


def _say(text: str) -> None:
    console().print(f"\n[bold cyan]{text}[/bold cyan]")


def _run(*arguments: str) -> None:
    """Run one command as the user would, after showing it."""
    from autoheur.cli.main import cli

    console().print(f"$ autoheur {shlex.join(arguments)}", style="bold", markup=False)
    default_registry.cache_clear()
    cli.main(args=list(arguments), prog_name="autoheur", standalone_mode=False)


def _show_code(path: Path) -> None:
    """Print the part of the module that scores, from where its features are computed."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("def _evaluate"))
    shown = lines[start : start + _CODE_LINES]
    target = console()
    if target.is_terminal:
        from rich.syntax import Syntax

        target.print(Syntax("\n".join(shown), "python", theme="ansi_dark"))
    else:
        print("\n".join(shown))
    if len(lines) > start + _CODE_LINES:
        target.print(f"… and {len(lines) - start - _CODE_LINES} lines more, in {path}", markup=False)


def _decide_fresh(path: Path) -> None:
    """Decide each problem of a dataset with the command line, beside what was just measured."""
    from autoheur.dataset.files import read
    from autoheur.dataset.statistics import statistics

    dataset = read(path)
    medians = statistics(dataset).median_ms
    for number, problem in enumerate(dataset.problems.iter_rows(named=True)):
        _run("decide", dataset.operator, *_arguments(problem))
        times = dict(zip(dataset.choices, medians[number].tolist(), strict=True))
        told = ", ".join(f"{choice} {time:.3f} ms" for choice, time in times.items())
        console().print(f"  measured just now: {told}", markup=False)


def _arguments(problem: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in problem.items()]
