"""Writing datasets back as AutoHeuristic logs."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import polars as pl
import pytest

from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.dataset.autoheuristic_log.writer import write_log
from autoheur.dataset.combine import combine
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.parquet import read_parquet, write_parquet
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint
from autoheur.types import Feature

MakeLog = Callable[..., Path]

CLEAN = [
    *("8,torch.float16,16,orig,265.6643371582031", "8,torch.float16,16,pad,0.02070399932563305"),
    *("8,torch.float16,16,orig,1e-05", "9,True,-3,orig,1e+20", "9,ä \"'#,16,pad,inf", "8,torch.float16,16,orig,1.0"),
]


def measured(device: Fingerprint) -> Dataset:
    return Dataset(
        operator="toy",
        features=(Feature("dtype", "categorical"), Feature("m", integer=True), Feature("x")),
        choices=("orig", "pad"),
        device=device,
        metadata={},
        problems=pl.DataFrame({"dtype": ["torch.int8"], "m": [8], "x": [0.1]}),
        rows=pl.DataFrame(
            {"problem": [0, 0], "choice": [1, 0], "time_ms": [2.0, math.inf]},
            schema={"problem": pl.UInt32, "choice": pl.UInt32, "time_ms": pl.Float64},
        ),
    )


@pytest.mark.parametrize("blocks", ["one", "many"])
def test_a_clean_log_comes_back_byte_for_byte(
    make_log: MakeLog, tmp_path: Path, request: pytest.FixtureRequest, blocks: str
) -> None:
    if blocks == "many":
        request.getfixturevalue("small_blocks")
    path = make_log(CLEAN, choices=["orig", "pad"])
    write_parquet(read_log(path), tmp_path / "d.parquet")
    write_log(read_parquet(tmp_path / "d.parquet"), tmp_path / "back.txt")
    assert (tmp_path / "back.txt").read_bytes() == path.read_bytes()


def test_only_blank_and_malformed_lines_are_gone(make_log: MakeLog, tmp_path: Path) -> None:
    dirty = make_log([*CLEAN[:2], "", "oops", *CLEAN[2:], "8,torch.float16"])
    write_log(read_log(dirty), tmp_path / "back.txt")
    assert (tmp_path / "back.txt").read_bytes() == make_log(CLEAN).read_bytes()


def test_a_packed_log_is_the_same_every_time(make_log: MakeLog, tmp_path: Path) -> None:
    path = make_log(CLEAN)
    for name in ("one.gz", "other.txt.gz"):
        write_log(read_log(path), tmp_path / name)
    packed = (tmp_path / "one.gz").read_bytes()
    assert packed == (tmp_path / "other.txt.gz").read_bytes()
    assert gzip.decompress(packed) == path.read_bytes()


@pytest.mark.parametrize(
    ("device", "shared_memory", "capability"),
    [
        (Fingerprint("cuda", "Some GPU", "8.0", sm_count=108, shared_memory=166912), 166912, [8, 0]),
        (Fingerprint("cpu", "Some CPU", cores=2), None, [0, 0]),
        (Fingerprint("xpu", "Other GPU"), None, None),
    ],
)
def test_what_autoheur_measured_gets_metadata_like_autoheuristics(
    tmp_path: Path, device: Fingerprint, shared_memory: int | None, capability: list[int] | None
) -> None:
    path = tmp_path / "own.txt"
    write_log(measured(device), path)
    metadata, header, *rows = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(metadata) == {
        "shared_memory": shared_memory,
        "device_capa": capability,
        "name": "toy",
        "numerical_features": ["m", "x"],
        "categorical_features": ["dtype"],
        "choices": ["orig", "pad"],
    }
    assert header == "dtype,m,x,choice,feedback"
    assert rows == ["torch.int8,8,0.1,pad,2.0", "torch.int8,8,0.1,orig,inf"]
    back = read_log(path, strict=True)
    assert back.problems.equals(measured(device).problems)
    assert back.rows.equals(measured(device).rows)
    assert back.choices == ("orig", "pad")
    assert back.device.mismatch(device) is None


def test_a_log_of_combined_logs_lists_all_their_choices(make_log: MakeLog, tmp_path: Path) -> None:
    first = read_log(make_log(["8,x,16,a,1.0"], choices=["a"]))
    second = read_log(make_log(["8,x,16,b,1.0"], choices=["b"], file="second.txt"))
    write_log(combine([first, second]), tmp_path / "back.txt")
    assert read_log(tmp_path / "back.txt", strict=True).choices == ("a", "b")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"choices": ("orig", "a,b")}, "choice 'a,b'"),
        ({"choices": ("orig", "a\nb")}, r"choice 'a\\nb'"),
        ({"problems": pl.DataFrame({"dtype": ["a,b"], "m": [8], "x": [0.1]})}, "category of 'dtype' 'a,b'"),
    ],
)
def test_what_a_log_cannot_hold_is_refused_and_nothing_written(
    tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    dataset = attrs.evolve(measured(Fingerprint("cpu")), **changes)
    with pytest.raises(InputError, match=f"{what} cannot be written to a log, which has no quoting; use Parquet"):
        write_log(dataset, tmp_path / "back.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_zip_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not as zip"):
        write_log(measured(Fingerprint("cpu")), tmp_path / "back.zip")
