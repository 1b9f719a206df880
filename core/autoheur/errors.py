"""The errors that autoheur raises on purpose."""

from __future__ import annotations


class AutoheurError(Exception):
    """Base of every error that autoheur raises on purpose."""


class InputError(AutoheurError):
    """Something the user handed in cannot be used.

    The message is one line that says what is wrong, where (file and line where there is one), and what to do.
    The command line prints it to stderr and exits with status 2.
    """


class FormulaError(InputError):
    """A formula is not in the formula language, or names something that does not exist."""


class ArtifactError(InputError):
    """An artifact cannot be read: not JSON, a wrong version, or contents that fail validation."""


class PluginError(AutoheurError):
    """Plugins contradict one another, or one breaks the contract; the message names the distributions."""


def describe(error: BaseException) -> str:
    """What an exception of a plugin says, on one line that can be printed; its own ``__str__`` may fail."""
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be read)"
    return " ".join(f"{type(error).__name__}: {text}".split()).encode("utf-8", "backslashreplace").decode()
