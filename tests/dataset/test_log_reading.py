"""Reading AutoHeuristic logs: what is in them, and what is said about it."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.dataset.dataset import ROW_DTYPES
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint

MakeLog = Callable[..., Path]


def recorded(path: Path) -> list[tuple[Any, ...]]:
    """Every measurement of a log as (features…, choice, time), through our reader."""
    dataset = read_log(path)
    problems = dataset.problems.rows()
    return [(*problems[problem], dataset.choices[choice], time) for problem, choice, time in dataset.rows.iter_rows()]


def test_rows_problems_and_choices_are_in_recorded_order(make_log: MakeLog) -> None:
    dataset = read_log(make_log())
    assert dataset.operator == "toy"
    assert [(f.name, f.kind, f.integer) for f in dataset.features] == [
        ("m", "numerical", True),
        ("dtype", "categorical", False),
        ("n", "numerical", True),
    ]
    assert dataset.choices == ("orig", "pad")
    assert dataset.problems.rows() == [(8, "torch.float16", 16), (9, "torch.int8", 16)]
    assert dataset.rows.rows() == [(0, 0, 1.5), (0, 1, 1.25), (1, 0, 0.5)]
    assert dict(dataset.rows.schema) == ROW_DTYPES


def test_the_device_comes_from_the_metadata(make_log: MakeLog) -> None:
    assert read_log(make_log()).device == Fingerprint("cuda", capability="8.0", shared_memory=166912)


def test_sources_carry_the_digest_of_the_content(make_log: MakeLog) -> None:
    path = make_log()
    dataset = read_log(path)
    assert dataset.sources == (str(path),)
    assert dataset.sha256 == (hashlib.sha256(path.read_bytes()).hexdigest(),)


def test_listed_choices_keep_the_order_of_the_metadata(make_log: MakeLog) -> None:
    dataset = read_log(make_log(choices=["never", "pad", "orig"]))
    assert dataset.choices == ("never", "pad", "orig")
    assert dataset.rows.get_column("choice").to_list() == [2, 1, 2]
    assert dataset.summary.choices == 3


@pytest.mark.parametrize(
    ("values", "dtype", "stored"),
    [
        (["1", "-2", "30"], pl.Int64, [1, -2, 30]),
        (["1", "2.0"], pl.Float64, [1.0, 2.0]),
        (["1e3", "2"], pl.Float64, [1000.0, 2.0]),
        (["9223372036854775807", "1"], pl.Int64, [9223372036854775807, 1]),
        (["9223372036854775808", "1"], pl.Float64, [9223372036854775808.0, 1.0]),
    ],
)
def test_a_feature_is_integer_where_every_value_is_a_plain_whole_number(
    make_log: MakeLog, values: list[str], dtype: type[pl.DataType], stored: list[float]
) -> None:
    dataset = read_log(make_log([f"{value},x,16,orig,1" for value in values]))
    column = dataset.problems.get_column("m")
    assert column.dtype == dtype
    assert column.to_list() == stored
    assert dataset.features[0].integer == (dtype == pl.Int64)


@pytest.mark.usefixtures("small_blocks")
def test_one_fraction_at_the_end_of_a_long_log_widens_the_whole_column(make_log: MakeLog) -> None:
    dataset = read_log(make_log([f"{m},x,16,orig,1" for m in [*range(40), 1, 0.5, 2]]))
    assert dataset.problems.get_column("m").to_list() == [*map(float, range(40)), 0.5]
    assert [f.integer for f in dataset.features] == [False, False, True]


def test_problems_that_differ_only_in_spelling_are_one(make_log: MakeLog) -> None:
    dataset = read_log(make_log(["1.50,x,16,orig,1", "1.5,x,016,pad,1", "15e-1,x,16,orig,2"]))
    assert dataset.problems.rows() == [(1.5, "x", 16)]


def test_categories_are_text_whatever_they_look_like(make_log: MakeLog) -> None:
    categories = ["torch.float16", "True", "not_float_32", "1", "1.0", "inf", "null", "", " x ", '"a', "ä", "{a}"]
    dataset = read_log(make_log([f"8,{category},16,orig,1" for category in categories]))
    assert dataset.problems.get_column("dtype").to_list() == categories
    assert dataset.summary.malformed_lines == 0


def test_a_log_may_have_one_feature_and_that_one_empty(make_log: MakeLog) -> None:
    options = {"header": "dtype,choice,feedback", "numerical_features": [], "categorical_features": ["dtype"]}
    dataset = read_log(make_log([",orig,1.0", "x,orig,2.0", ",pad,3.0"], **options), strict=True)
    assert dataset.problems.rows() == [("",), ("x",)]
    assert dataset.rows.rows() == [(0, 0, 1.0), (1, 0, 2.0), (0, 1, 3.0)]


def test_times_are_read_to_the_last_bit(make_log: MakeLog) -> None:
    generator = random.Random(1)
    times = [generator.uniform(0, 1) * 10.0 ** generator.randint(-300, 300) for _ in range(2000)] + [5e-324, 1e308]
    dataset = read_log(make_log([f"8,x,16,orig,{time!r}" for time in times]))
    assert dataset.rows.get_column("time_ms").to_list() == times


def test_a_failed_choice_has_infinite_time(make_log: MakeLog) -> None:
    dataset = read_log(make_log(["8,x,16,orig,inf", "8,x,16,orig,nan", "8,x,16,orig,1.0"]))
    assert dataset.rows.get_column("time_ms").to_list() == [math.inf, math.inf, 1.0]
    assert dataset.summary.failed_measurements == 2


def test_the_summary_counts_what_is_odd(make_log: MakeLog) -> None:
    rows = [
        *("8,x,16,orig,1.0", "", "8,x,16,orig,1.0", "8,x,16,orig,1.0", "8,x,16,pad,1.0", "   "),
        *("9,x,16,orig,1.0", "9,x,16,orig,2.0", "7,x,16,pad,inf", "oops", "7,x,16,orig,2.0"),
    ]
    path = make_log(rows)
    assert str(read_log(path).summary) == (
        "8 rows, 3 problems, 2 choices; 2 blank lines, 2 repeated rows, 1 failed, 1 problem with one choice only, "
        f"1 malformed line skipped ({path}:12: 5 fields expected, 1 found)"
    )


def test_the_summary_of_a_clean_log_says_so(make_log: MakeLog) -> None:
    assert str(read_log(make_log()).summary) == (
        "3 rows, 2 problems, 2 choices; 0 blank lines, 0 repeated rows, 0 failed, 1 problem with one choice only, "
        "0 malformed lines"
    )


def test_repeated_rows_are_kept(make_log: MakeLog) -> None:
    assert len(read_log(make_log(["8,x,16,orig,1.0"] * 3)).rows) == 3


@pytest.mark.parametrize("blocks", ["one", "many"])
def test_a_random_log_reads_the_same_in_one_block_and_in_many(
    make_log: MakeLog, request: pytest.FixtureRequest, blocks: str
) -> None:
    if blocks == "many":
        request.getfixturevalue("small_blocks")
    generator = random.Random(5)
    expected = []
    for _ in range(500):
        problem = (generator.randint(1, 6), generator.choice(["x", "torch.float16"]), generator.randint(1, 3))
        expected.append((*problem, generator.choice("abc"), generator.choice([0.5, 1.0, 2.25, math.inf])))
    path = make_log([",".join(map(str, row)) for row in expected])
    assert recorded(path) == expected
    summary = read_log(path).summary
    assert summary.repeated_rows == 500 - len(set(expected))
    assert summary.failed_measurements == sum(row[-1] == math.inf for row in expected)
    problems = list(dict.fromkeys(row[:3] for row in expected))
    assert read_log(path).problems.rows() == problems


def test_windows_line_ends_read_the_same(make_log: MakeLog) -> None:
    plain, windows = read_log(make_log()), read_log(make_log(end="\r\n", file="windows.txt"))
    assert windows.problems.equals(plain.problems)
    assert windows.rows.equals(plain.rows)
    assert windows.summary == plain.summary


def test_a_byte_order_mark_is_no_part_of_the_metadata(
    log_bytes: Callable[..., bytes], write_file: Callable[..., Path]
) -> None:
    assert len(read_log(write_file(b"\xef\xbb\xbf" + log_bytes())).rows) == 3


def test_the_last_line_may_lack_its_newline(log_bytes: Callable[..., bytes], write_file: Callable[..., Path]) -> None:
    assert len(read_log(write_file(log_bytes().removesuffix(b"\n"))).rows) == 3


@pytest.mark.parametrize("blocks", ["one", "many"])
def test_concatenated_logs_of_one_kind_are_one_log(
    log_bytes: Callable[..., bytes], write_file: Callable[..., Path], request: pytest.FixtureRequest, blocks: str
) -> None:
    if blocks == "many":
        request.getfixturevalue("small_blocks")
    reordered = log_bytes().replace(b'"shared_memory": 166912, ', b"").replace(b"{", b'{"shared_memory": 166912, ')
    dataset = read_log(write_file(log_bytes() * 4 + reordered), strict=True)
    assert len(dataset.rows) == 15
    assert dataset.summary.malformed_lines == 0
    assert dataset.summary.repeated_rows == 12


def test_a_log_of_another_device_further_down_is_an_error(
    log_bytes: Callable[..., bytes], write_file: Callable[..., Path]
) -> None:
    path = write_file(log_bytes() + log_bytes(device_capa=[9, 0]))
    with pytest.raises(InputError, match=rf"^{path}:6: another log with different metadata begins here"):
        read_log(path)
