"""Numbering distinct problems over many blocks."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

from autoheur.dataset.problem_table import ProblemTable, distinct_rows, distinct_values


@pytest.mark.parametrize("merge_at_least", [0, 10, 10**6])
def test_numbers_are_those_of_first_appearance_however_often_blocks_are_merged(
    monkeypatch: pytest.MonkeyPatch, merge_at_least: int
) -> None:
    monkeypatch.setattr("autoheur.dataset.problem_table._MERGE_AT_LEAST", merge_at_least)
    generator = random.Random(2)
    table = ProblemTable(["*", "^x$"])
    recorded = []
    for _ in range(60):
        rows = [(generator.randint(0, 8), generator.choice("ab")) for _ in range(generator.randint(1, 9))]
        recorded += rows
        problems, ids = distinct_rows(pl.DataFrame(rows, schema={"*": pl.Int64, "^x$": pl.String}, orient="row"))
        table.add(problems, ids)
    problems, blocks = table.finish()
    numbers = {row: number for number, row in enumerate(dict.fromkeys(recorded))}
    assert problems.columns == ["*", "^x$"]
    assert problems.rows() == list(numbers)
    assert np.concatenate(blocks).tolist() == [numbers[row] for row in recorded]
    assert all(block.dtype == np.uint32 for block in blocks)


def test_distinct_values_are_in_order_with_each_rows_position() -> None:
    values, positions = distinct_values(pl.Series(["b", "b", "a", "b", "", "a"]))
    assert values.to_list() == ["b", "a", ""]
    assert positions.tolist() == [0, 0, 1, 0, 2, 1]
