"""The entry point of the command ``autoheur``."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys

import click

import autoheur
from autoheur.errors import AutoheurError

COMMANDS = {
    "list": "autoheur.cli.plugins:list_command",
    "show": "autoheur.cli.plugins:show",
    "import": "autoheur.cli.data:import_command",
    "export": "autoheur.cli.data:export",
    "merge": "autoheur.cli.data:merge",
    "collect": "autoheur.cli.data:collect",
    "capture": "autoheur.cli.capture:capture",
    "train": "autoheur.cli.train:train",
    "evaluate": "autoheur.cli.train:evaluate",
    "report": "autoheur.cli.report:report",
    "codegen": "autoheur.cli.heuristics:codegen",
    "decide": "autoheur.cli.heuristics:decide",
    "explain": "autoheur.cli.explain:explain",
    "install": "autoheur.cli.heuristics:install",
    "uninstall": "autoheur.cli.heuristics:uninstall",
    "artifacts": "autoheur.cli.heuristics:artifacts",
    "doctor": "autoheur.cli.inductor:doctor",
    "check": "autoheur.cli.plugins:check",
    "shadow-report": "autoheur.cli.inductor:shadow_report",
    "demo": "autoheur.cli.demo:demo",
}
"""Command -> where it lives. A command's module is imported when the command runs, so that each starts quickly."""


class LazyGroup(click.Group):
    """A group whose commands are imported at first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(autoheur.__version__, prog_name="autoheur")
def cli() -> None:
    """Learn compile-time heuristics from autotuning measurements, and let TorchInductor ask them."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Returns the exit status: 0, 2 for bad input, 130 after Ctrl-C.

    Every error that is the input's fault is one line on stderr.
    """
    _prepare_streams()
    try:
        result = cli.main(args=arguments, prog_name="autoheur", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except AutoheurError as error:
        return _fail(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        return _fail(f"{error.format_message().rstrip('.')}{hint}")
    except (KeyboardInterrupt, click.exceptions.Abort):
        print("autoheur: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _abandon_stdout()  # the reader went away (| head)
        return 0
    except OSError as error:  # of stdout, since files of the user's are InputErrors: a full disk, for example
        _abandon_stdout()
        return _fail(f"{error.filename or 'the output'}: {error.strerror or error}")


def _prepare_streams() -> None:
    """Stand in for streams that are closed, and print what the encoding of the others lacks as escapes."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # for the process's life
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _abandon_stdout() -> None:
    """Let nothing be written any more; Python would complain again when it flushes at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    print(f"autoheur: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
