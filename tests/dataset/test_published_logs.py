"""The published logs, where they lie beside the checkout."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autoheur.dataset.autoheuristic_log.writer import write_log
from autoheur.dataset.files import read, read_all
from autoheur.dataset.parquet import write_parquet
from autoheur.dataset.statistics import statistics

SharedData = Callable[[str], Path]

PUBLISHED = {
    "pad_mm_a100_train.txt.gz": (35143, 5861, 2),
    "pad_mm_a100_val.txt.gz": (11520, 1920, 2),
    "h100_mm.txt.gz": (28344, 322, 155),
    "a100_mm.txt.gz": (238032, 2641, 175),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_log_is_read_whole_and_comes_back_byte_for_byte(
    shared_data: SharedData, tmp_path: Path, name: str
) -> None:
    path = shared_data(name)
    dataset = read(path, strict=True)
    assert (len(dataset.rows), len(dataset.problems), len(dataset.choices)) == PUBLISHED[name]
    write_parquet(dataset, tmp_path / "d.parquet")
    write_log(read(tmp_path / "d.parquet"), tmp_path / "back.txt")
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    assert (tmp_path / "back.txt").read_bytes() == b"".join(line for line in lines if line.strip())


def test_the_published_filter_leaves_the_published_number_of_problems(shared_data: SharedData) -> None:
    dataset = read_all([shared_data("pad_mm_a100_train.txt.gz"), shared_data("pad_mm_a100_val.txt.gz")])
    found = statistics(dataset)
    good = (found.count >= 3) & (found.std_ms / found.mean_ms <= 0.05)
    assert int(np.all(good, axis=1).sum()) == 5757 + 1920
    assert dataset.summary.single_choice_problems == 2
