"""autoheur merge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

Run = Callable[..., Any]


def test_files_are_merged_and_what_they_share_is_kept_once(run: Run, log: Path, tmp_path: Path) -> None:
    first, all_ = tmp_path / "first.parquet", tmp_path / "all.parquet"
    assert run("merge", log, "--out", first).code == 0
    result = run("merge", first, log, "--out", all_, "--json").json()
    assert (result["problems"], result["measurements"], result["duplicate_measurements"]) == (240, 1440, 1440)
    assert result["parts"] == [{"problems": 240, "measurements": 1440}]
    assert all_.read_bytes() == first.read_bytes()
    assert "1,440 measurements were there twice" in run("merge", first, log, "--out", all_).out


def test_devices_are_mixed_only_on_request(run: Run, log: Path, tmp_path: Path) -> None:
    other, out = tmp_path / "other.txt", tmp_path / "d.parquet"
    other.write_text(log.read_text().replace("[8, 0]", "[9, 0]"))
    assert "measured on different devices" in run("merge", log, other, "--out", out).error()
    assert not out.exists()
    result = run("merge", log, other, "--out", out, "--allow-mixed-devices", "--json").json()
    assert (result["problems"], result["measurements"], len(result["parts"])) == (240, 2880, 2)
    assert len(pl.read_parquet(out)) > 0
