"""Datasets in Parquet: nothing is lost, and what is no dataset is refused."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import polars as pl
import pytest

from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.files import read
from autoheur.dataset.parquet import read_parquet, write_parquet
from autoheur.dataset.summary import summarise
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint
from autoheur.types import Feature

MakeLog = Callable[..., Path]


def measured(**changes: Any) -> Dataset:
    """A dataset as autoheur measures it: no log, no sources."""
    rows = pl.DataFrame(
        {"problem": [0, 0, 0, 1], "choice": [1, 1, 0, 1], "time_ms": [1.5, 1.25, math.inf, 2.0]},
        schema={"problem": pl.UInt32, "choice": pl.UInt32, "time_ms": pl.Float64},
    )
    dataset = Dataset(
        operator="toy",
        features=(Feature("m", integer=True), Feature("x"), Feature("dtype", "categorical")),
        choices=("orig", "pad", "never"),
        device=Fingerprint("cpu", "Some CPU", vendor="Some", isa="avx2", cores=2),
        metadata={},
        problems=pl.DataFrame({"m": [2**60 + 1, 2], "x": [0.1, 1e-300], "dtype": ["torch.int8", ""]}),
        rows=rows,
        summary=summarise(rows, 2, 3),
        environment={"torch": "2.13.0", "clocks": [1, None]},
    )
    return attrs.evolve(dataset, **changes)


def assert_same(first: Dataset, second: Dataset) -> None:
    for field in ("operator", "features", "choices", "device", "metadata", "environment", "summary"):
        assert getattr(first, field) == getattr(second, field), field
    assert first.problems.equals(second.problems)
    assert first.problems.schema == second.problems.schema
    assert first.rows.equals(second.rows)
    assert first.rows.schema == second.rows.schema


def rewrite(path: Path, frame: pl.DataFrame | None = None, **changes: Any) -> None:
    """Change the rows or the description of a dataset file."""
    description = json.loads(pl.read_parquet_metadata(path)["autoheur"]) | changes
    description = {key: value for key, value in description.items() if value is not None}
    frame = pl.read_parquet(path) if frame is None else frame
    frame.write_parquet(path, metadata={"autoheur": json.dumps(description)})


@pytest.mark.parametrize("blocks", ["one", "many"])
def test_a_measured_dataset_comes_back_as_it_was(tmp_path: Path, request: pytest.FixtureRequest, blocks: str) -> None:
    if blocks == "many":
        request.getfixturevalue("small_blocks")
    path = tmp_path / "d.parquet"
    write_parquet(measured(), path)
    dataset = read_parquet(path)
    assert_same(dataset, measured())
    assert dataset.sources == (str(path),)
    assert dataset.sha256 == (hashlib.sha256(path.read_bytes()).hexdigest(),)


@pytest.mark.parametrize("blocks", ["one", "many"])
def test_a_log_comes_back_with_its_sources(
    make_log: MakeLog, tmp_path: Path, request: pytest.FixtureRequest, blocks: str
) -> None:
    if blocks == "many":
        request.getfixturevalue("small_blocks")
    generator = random.Random(3)
    rows = [
        f"{generator.randint(1, 9)},x,{generator.randint(1, 3)},{generator.choice('ab')},{generator.random()}"
        for _ in range(200)
    ]
    log = read_log(make_log(rows))
    write_parquet(log, tmp_path / "d.parquet")
    dataset = read(tmp_path / "d.parquet")
    assert_same(dataset, log)
    assert dataset.sources == ("toy.txt",)
    assert dataset.sha256 == log.sha256


def test_a_batch_is_a_run_of_measurements_of_one_choice_on_one_problem(make_log: MakeLog, tmp_path: Path) -> None:
    times = {"8,x,16,orig": [1, 2], "8,x,16,pad": [3], "9,x,16,pad": [4, 5]}
    rows = [f"{key},{time}.0" for key, series in times.items() for time in series]
    write_parquet(read_log(make_log([*rows, *rows[:1]])), tmp_path / "d.parquet")
    frame = pl.read_parquet(tmp_path / "d.parquet")
    assert frame.columns == ["m", "dtype", "n", "choice", "times_ms"]
    assert frame.rows() == [
        (8, "x", 16, "orig", [1.0, 2.0]),
        (8, "x", 16, "pad", [3.0]),
        (9, "x", 16, "pad", [4.0, 5.0]),
        (8, "x", 16, "orig", [1.0]),
    ]


def test_the_metadata_says_what_the_rows_are(tmp_path: Path) -> None:
    write_parquet(measured(), tmp_path / "d.parquet")
    description = json.loads(pl.read_parquet_metadata(tmp_path / "d.parquet")["autoheur"])
    assert description["schema"] == "autoheur.dataset"
    assert description["version"] == 2
    assert description["features"][0] == {"name": "m", "kind": "numerical", "integer": True}
    assert description["device"] == measured().device.to_dict()
    assert description["environment"]["torch"] == "2.13.0"


def test_names_that_look_like_patterns_are_names(tmp_path: Path) -> None:
    features = tuple(
        Feature(name, integer=True) for name in ("*", "^.*$", 'x"); import os #', "row", "batch", "problem", "c0")
    )
    problems = pl.DataFrame([pl.Series(feature.name, [1, 2]) for feature in features])
    dataset = measured(features=features, problems=problems)
    write_parquet(dataset, tmp_path / "[d]*.parquet")
    assert_same(read_parquet(tmp_path / "[d]*.parquet"), dataset)


@pytest.mark.parametrize("name", ["choice", "times_ms"])
def test_a_feature_must_not_have_the_name_of_another_column(tmp_path: Path, name: str) -> None:
    dataset = measured(features=(Feature(name, integer=True),), problems=pl.DataFrame([pl.Series(name, [1, 2])]))
    with pytest.raises(InputError, match=f"a feature must not be called '{name}'"):
        write_parquet(dataset, tmp_path / "d.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    path.write_bytes(b"old")
    with pytest.raises(TypeError):
        write_parquet(measured(environment={"not JSON": object()}), path)
    broken = measured(rows=measured().rows.with_columns(pl.lit(7, pl.UInt32).alias("problem")))
    with pytest.raises(Exception, match=r"7|bounds"):
        write_parquet(broken, path)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["d.parquet"]


def test_a_folder_that_is_missing_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"d\.parquet: cannot write: No such file"):
        write_parquet(measured(), tmp_path / "none" / "d.parquet")


def test_a_parquet_file_that_is_no_dataset_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pl.DataFrame({"m": [1]}).write_parquet(path)
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: a Parquet file, but not an autoheur dataset"):
        read(path)


@pytest.mark.parametrize("keep", [4, 8, 200, -1])
def test_a_truncated_parquet_file_is_refused(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "d.parquet"
    write_parquet(measured(), path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: a damaged Parquet file (")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 3}, "dataset version 3, but this autoheur reads versions up to 2; use the autoheur that wrote it"),
        ({"schema": "other"}, "the dataset's metadata is damaged (ValueError: schema 'other')"),
        ({"operator": None}, "the dataset's metadata is damaged (KeyError: 'operator')"),
        ({"features": [{"name": "m"}]}, "the dataset's metadata is damaged (KeyError: 'kind')"),
        ({"device": {"wheels": 4}}, "the dataset's metadata is damaged (ValueError: unknown field 'wheels')"),
        ({"choices": ["orig"]}, "choice 'pad' is not among those that the dataset lists"),
    ],
)
def test_a_wrong_description_is_one_clear_error(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "d.parquet"
    write_parquet(measured(), path)
    rewrite(path, **changes)
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}: {message}')}$"):
        read_parquet(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop("x"), "the column 'x' is missing"),
        (lambda frame: frame.drop("times_ms"), "the column 'times_ms' is missing"),
        (lambda frame: frame.cast({"m": pl.Float64}), "the column 'm' has type Float64, not Int64"),
        (lambda frame: frame.with_columns(m=pl.lit(None, pl.Int64)), "the column 'm' has empty values"),
        (lambda frame: frame.with_columns(times_ms=pl.lit([-1.0])), "times_ms holds something that is not a time"),
        (lambda frame: frame.with_columns(times_ms=pl.lit([math.nan])), "times_ms holds something that is not a time"),
        (lambda frame: frame.clear(), "the dataset has no rows"),
    ],
)
def test_wrong_columns_are_one_clear_error(
    tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame], message: str
) -> None:
    path = tmp_path / "d.parquet"
    write_parquet(measured(), path)
    rewrite(path, change(pl.read_parquet(path)))
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}: {message}')}"):
        read_parquet(path)


def test_anything_else_is_read_as_a_log(make_log: MakeLog, tmp_path: Path) -> None:
    assert len(read(make_log(file="toy.parquet")).rows) == 3
    with pytest.raises(InputError, match="cannot read: No such file"):
        read(tmp_path / "none")
    with pytest.raises(InputError, match=":3: 5 fields expected, 1 found"):
        read(make_log(["oops"]), strict=True)
