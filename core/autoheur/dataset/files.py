"""Reads a dataset from whatever file holds one."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.dataset.combine import combine
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.parquet import PARQUET_MAGIC, read_parquet
from autoheur.errors import InputError


def read(path: str | os.PathLike[str], strict: bool = False) -> Dataset:
    """Read a dataset: Parquet, or an AutoHeuristic log, plain or packed; told by content.

    Raises:
        InputError: the file cannot be read, or see :func:`read_parquet` and :func:`read_log`.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):  # it is read more than once
            raise InputError(f"{path}: not a regular file (a pipe?); write the data to a file first")
        with Path(path).open("rb") as file:
            magic = file.read(len(PARQUET_MAGIC))
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror or error}") from None
    return read_parquet(path) if magic == PARQUET_MAGIC else read_log(path, strict)


def read_all(
    paths: Sequence[str | os.PathLike[str]], strict: bool = False, allow_mixed_devices: bool = False
) -> Dataset:
    """Read several files into one dataset; see :func:`combine` for what must agree.

    Raises:
        InputError: no path, a file cannot be read, or the datasets do not go together.
    """
    names = [os.fspath(path) for path in paths]
    return combine([read(path, strict) for path in paths], allow_mixed_devices, names)
