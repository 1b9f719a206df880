"""Printing: rich where a person looks, plain text where a program reads."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

import click
from rich.console import Console
from rich.table import Table

_STDOUT = "autoheur.cli.stdout"


def _reserve_stdout(context: click.Context, _: click.Parameter, as_json: bool) -> bool:
    """Keep stdout for the JSON: what plugins and learners print meanwhile goes to stderr."""
    if as_json:
        context.meta[_STDOUT] = sys.stdout
        context.with_resource(contextlib.redirect_stdout(sys.stderr))
    return as_json


json_option = click.option(
    "--json", "as_json", is_flag=True, callback=_reserve_stdout, help="Print JSON instead of a table."
)

_PLAIN_WIDTH = 100_000  # no line is wrapped or cut where nobody sees a screen's width


def console() -> Console:
    """A console on stdout; plain and never wrapped when stdout is no terminal."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(width=_PLAIN_WIDTH, no_color=True, highlight=False, soft_wrap=True)


def status_console() -> Console:
    """A console on stderr, for progress and remarks beside the result."""
    return Console(stderr=True, highlight=False)


def print_json(data: Any) -> None:
    context = click.get_current_context(silent=True)
    stdout = context.meta.get(_STDOUT) if context else None
    print(json.dumps(data, indent=2, allow_nan=False), file=stdout or sys.stdout)


def table(*headers: str, title: str | None = None) -> Table:
    """A table with the project's look. A header that starts with ``>`` is a right-aligned column."""
    result = Table(
        title=title, title_justify="left", header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for header in headers:
        if header.startswith(">"):
            result.add_column(header[1:], justify="right", no_wrap=True)
        else:
            result.add_column(header, overflow="fold")
    return result


def print_table(value: Table) -> None:
    target = console()
    if target.is_terminal:
        target.print(value)
        return
    with target.capture() as capture:
        target.print(value)
    for line in capture.get().splitlines():
        print(line.rstrip())


def number(value: float | None, digits: int = 6) -> str:
    """A figure in a table; undefined ones are blank, very large ones short."""
    if value is None:
        return ""
    return f"{value:.{digits}f}" if abs(value) < 1e6 else f"{value:.{digits}g}"
