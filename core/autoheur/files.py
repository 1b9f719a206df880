"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autoheur.errors import InputError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file to write to; afterwards it takes the place of ``path``, or, on an error, is removed.

    Raises:
        InputError: the folder is missing or not writable, the disk is full, or ``path`` is a folder, device, pipe or
            socket, which a file must not take the place of.
    """
    with _temporary(path) as (temporary, target):
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # a temporary file is private, a result is not
        os.replace(temporary, target)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Find out before long work whether its result can be written to ``path``.

    Raises:
        InputError: see :func:`replacing`.
    """
    with _temporary(path):
        pass


@contextmanager
def _temporary(path: str | os.PathLike[str]) -> Iterator[tuple[Path, Path]]:
    """Yield a new file and the one whose place it can take; the new one is gone afterwards, in whatever way."""
    target = Path(os.path.realpath(path))  # a link stays, and what it names is replaced
    temporary: str | None = None
    try:
        if target.is_dir():
            raise InputError(f"{path}: cannot write: it is a folder")
        if target.exists() and not target.is_file():
            raise InputError(f"{path}: cannot write: not a regular file")
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(handle)
        yield Path(temporary), target
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file whole or not at all.

    Raises:
        InputError: see :func:`replacing`.
    """
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
