"""Datasets whose metadata was damaged, and disks that are full: one clear error each."""

from __future__ import annotations

import copy
import json
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from autoheur import fingerprint
from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.dataset.parquet import read_parquet, write_parquet
from autoheur.errors import InputError

METADATA = {"name": "toy", "numerical_features": ["m"], "categorical_features": [], "device_capa": [8, 0]}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    log = tmp_path / "log.txt"
    rows = "".join(f"{m},{choice},{m + 1.5}\n" for m in range(400) for choice in "ab")
    log.write_text(f"{json.dumps(METADATA)}\nm,choice,feedback\n{rows}")
    write_parquet(read_log(log), tmp_path / "good.parquet")
    return tmp_path / "good.parquet"


Damage = Callable[[dict[str, Any]], Any]
DAMAGES: dict[str, Damage] = {
    "operator": lambda data: data.update(operator=["x"]),
    "no operator": lambda data: data.update(operator=None),
    "no features": lambda data: data.update(features=[]),
    "choices of lists": lambda data: data.update(choices=[[]]),
    "choices of numbers": lambda data: data["choices"].__setitem__(0, 0),
    "half a surrogate pair": lambda data: data.update(choices=["a", "\ud800"]),
    "a choice twice": lambda data: data.update(choices=["a", "a", "b"]),
    "device": lambda data: data.update(device=[]),
    "infinite cores": lambda data: data["device"].update(cores=float("inf")),
    "source": lambda data: data["sources"][0].update(name=None),
    "digest": lambda data: data["sources"][0].update(sha256={}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_metadata(dataset: Path, damage: str) -> None:
    data = copy.deepcopy(json.loads(pl.read_parquet_metadata(dataset)["autoheur"]))
    DAMAGES[damage](data)
    path = dataset.with_name("bad.parquet")
    pl.read_parquet(dataset).write_parquet(path, metadata={"autoheur": json.dumps(data)})
    with pytest.raises(InputError, match="the dataset's metadata is damaged"):
        read_parquet(path)


def test_metadata_nested_without_end(dataset: Path) -> None:
    path = dataset.with_name("bad.parquet")
    pl.read_parquet(dataset).write_parquet(path, metadata={"autoheur": '{"a":' * 50_000})
    with pytest.raises(InputError, match="the dataset's metadata is damaged"):
        read_parquet(path)


@pytest.fixture
def full_disk(dataset: Path) -> Iterator[None]:
    """Files of this process cannot grow beyond 1 KiB, once the dataset is there."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_leaves_nothing_behind(dataset: Path) -> None:
    target = dataset.with_name("new.parquet")
    before = sorted(dataset.parent.iterdir())
    with pytest.raises(InputError, match="cannot write"):
        write_parquet(read_parquet(dataset), target)
    assert sorted(dataset.parent.iterdir()) == before


@pytest.mark.parametrize("text", ['{"cores": 1e999}', '{"cores": ' + "[" * 100_000, '{"cores": [1]}'], ids=len)
def test_a_device_that_is_none_is_one_error(text: str) -> None:
    with pytest.raises(InputError, match="is neither 'current'"):
        fingerprint.parse(text)


def test_somebody_elses_device_in_a_log_does_not_matter() -> None:
    device = fingerprint.from_log_metadata({"device": {"cores": float("inf")}, "device_capa": [8, 0]})
    assert device.capability == "8.0"
