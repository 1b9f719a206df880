"""Small logs, made in the test."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

HEADER = "m,dtype,n,choice,feedback"
ROWS = ("8,torch.float16,16,orig,1.5", "8,torch.float16,16,pad,1.25", "9,torch.int8,16,orig,0.5")


@pytest.fixture
def metadata() -> dict[str, Any]:
    """The metadata of the small log: features m, n (numerical) and dtype (categorical), stored as m, dtype, n."""
    return {
        "shared_memory": 166912,
        "device_capa": [8, 0],
        "name": "toy",
        "numerical_features": ["m", "n"],
        "categorical_features": ["dtype"],
    }


@pytest.fixture
def log_bytes(metadata: dict[str, Any]) -> Callable[..., bytes]:
    """Compose a log of these rows; changes to the metadata come by keyword."""

    def compose(rows: Sequence[str] = ROWS, header: str = HEADER, end: str = "\n", **changes: Any) -> bytes:
        return end.join((json.dumps(metadata | changes), header, *rows, "")).encode()

    return compose


@pytest.fixture
def make_log(tmp_path: Path, log_bytes: Callable[..., bytes]) -> Callable[..., Path]:
    """Write a log of these rows and return its path."""

    def make(rows: Sequence[str] = ROWS, file: str = "toy.txt", **options: Any) -> Path:
        path = tmp_path / file
        path.write_bytes(log_bytes(rows, **options))
        return path

    return make


@pytest.fixture
def write_file(tmp_path: Path) -> Callable[..., Path]:
    """Write any bytes and return the path."""

    def write(data: bytes, name: str = "toy.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read and write in pieces so small that rows that belong together fall into different ones."""
    monkeypatch.setattr("autoheur.dataset.autoheuristic_log.stream._CHUNK", 64)
    monkeypatch.setattr("autoheur.dataset.autoheuristic_log.stream.BLOCK_BYTES", 300)
    monkeypatch.setattr("autoheur.dataset.problem_table._MERGE_AT_LEAST", 2)
    monkeypatch.setattr("autoheur.dataset.parquet._BATCHES", 3)
    monkeypatch.setattr("autoheur.dataset.autoheuristic_log.writer._ROWS", 2)
    monkeypatch.setattr("autoheur.dataset.summary._PART_ROWS", 4)
