"""Random damage: every line is judged as by a line-by-line reader, and no other error than ours arises."""

from __future__ import annotations

import gzip
import json
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.errors import InputError

METADATA = {"name": "toy", "numerical_features": ["m", "n"], "categorical_features": ["dtype"]}
HEAD = json.dumps(METADATA) + "\nm,dtype,n,choice,feedback\n"
NUMBERS = ["8", "-3", "0.5", "1e3", "nan", "inf", "", "x", "08", "1_0", " 1", "+2", "-0"]

FIELDS = (
    st.sampled_from(NUMBERS),
    st.sampled_from(["torch.float16", "", '"', "a b", "ä", "\0", "\t", "True"]),
    st.sampled_from(NUMBERS),
    st.sampled_from(["orig", "pad", "", "*"]),
    st.sampled_from([*NUMBERS, "1.5", "-inf", "NaN", "1e-5"]),
)
LINES = st.one_of(
    st.tuples(*FIELDS).map(",".join),
    st.tuples(st.just("8"), st.just("x"), st.just("16"), *FIELDS[3:]).map(",".join),
    st.sampled_from(["", " ", "8,x", "m,dtype,n,choice,feedback", ",,,,", ",,,,,", '{"name": "t', *HEAD.splitlines()]),
)


def number(text: str) -> float | None:
    if text != text.strip() or "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def expected_row(line: str) -> tuple[float, str, float, str, float] | None:
    """Judge one line by itself: a row, or ``None``."""
    fields = line.split(",")
    if len(fields) != 5 or "\0" in line or not fields[3]:
        return None
    m, n, time = number(fields[0]), number(fields[2]), number(fields[4])
    if m is None or n is None or time is None or not (math.isfinite(m) and math.isfinite(n)) or time <= 0:
        return None
    return m, fields[1], n, fields[3], math.inf if math.isnan(time) else time


@settings(max_examples=200, deadline=None)
@given(st.lists(LINES, max_size=30))
def test_every_line_is_judged_as_by_itself(lines: list[str]) -> None:
    rows = [row for row in map(expected_row, lines) if row is not None]
    blank = sum(not line.strip() for line in lines)
    heads = sum(line in HEAD.splitlines() for line in lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toy.txt"
        path.write_bytes((HEAD + "".join(f"{line}\n" for line in lines)).encode())
        if not rows:
            with pytest.raises(InputError, match="no usable row"):
                read_log(path)
            return
        dataset = read_log(path)
    problems = dataset.problems.rows()
    found = [(*problems[row[0]], dataset.choices[row[1]], row[2]) for row in dataset.rows.iter_rows()]
    assert found == rows
    assert dataset.summary.blank_lines == blank
    assert dataset.summary.malformed_lines == len(lines) - len(rows) - blank - heads
    assert len(dataset.summary.skipped) == min(5, dataset.summary.malformed_lines)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.booleans())
def test_random_damage_ends_in_a_dataset_or_an_input_error(data: st.DataObject, packed: bool) -> None:
    content = (HEAD + "8,x,16,orig,1.5\n9,y,16,pad,2.5\n" * 10).encode()
    damaged = bytearray(gzip.compress(content) if packed else content)
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(damaged)))
        end = start + data.draw(st.integers(0, 10))
        damaged[start:end] = data.draw(st.binary(max_size=4))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toy.txt"
        path.write_bytes(damaged)
        message = f"{path}:"
        try:
            rows = len(read_log(path).rows)
        except InputError as error:
            message, rows = str(error), 1
    assert rows > 0
    assert message.startswith(f"{path}:")
