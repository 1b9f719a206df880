"""Logs that are damaged, wrong or made to break the reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.errors import InputError

MakeLog = Callable[..., Path]
GOOD = "8,x,16,orig,1.0"

MALFORMED = [
    ("8,x,16", "5 fields expected, 3 found"),
    ("8,x,16,orig,1.0,2.0", "5 fields expected, 6 found"),
    (",,,,", "m is '', not a finite number"),
    ("oops", "5 fields expected, 1 found"),
    ("8,x,16,orig,", "the feedback is missing"),
    ("8,x,16,,1.0", "the choice is missing"),
    ("8,x,16,orig,fast", "feedback 'fast' is not a number"),
    ("8,x,16,orig,1_0", "feedback '1_0' is not a number"),
    ("8,x,16,orig, 1.0", "feedback ' 1.0' is not a number"),
    ("8,x,16,orig,0.0", "feedback '0.0' is not a time above zero"),
    ("8,x,16,orig,-1", "feedback '-1' is not a time above zero"),
    ("8,x,16,orig,-inf", "feedback '-inf' is not a time above zero"),
    ("eight,x,16,orig,1.0", "m is 'eight', not a finite number"),
    ("True,x,16,orig,1.0", "m is 'True', not a finite number"),
    ("8,x,,orig,1.0", "n is '', not a finite number"),
    ("8,x,nan,orig,1.0", "n is 'nan', not a finite number"),
    ("8,x,inf,orig,1.0", "n is 'inf', not a finite number"),
    ("8,\0\0,16,orig,1.0", "control character 0x00"),
    ("8,a\x1fb,16,orig,1.0", "control character 0x1f"),
    ("8,a\rb,16,orig,1.0", "control character 0x0d"),
    ('{"shared_memory": 16691', "5 fields expected, 1 found"),
    ("n,dtype,m,choice,feedback", "m is 'n', not a finite number"),
]


@pytest.mark.parametrize(("line", "reason"), MALFORMED)
def test_a_malformed_line_is_counted_and_described_and_the_rest_kept(make_log: MakeLog, line: str, reason: str) -> None:
    path = make_log([GOOD, line, GOOD.replace("8", "9")])
    dataset = read_log(path)
    assert [problem[0] for problem in dataset.problems.rows()] == [8, 9]
    assert dataset.features[0].integer
    assert dataset.summary.malformed_lines == 1
    assert dataset.summary.skipped == (f"{path}:4: {reason}",)


@pytest.mark.parametrize(("line", "reason"), MALFORMED)
def test_strict_reading_stops_at_a_malformed_line(make_log: MakeLog, line: str, reason: str) -> None:
    path = make_log([GOOD, line, GOOD])
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}:4: {reason}')}$"):
        read_log(path, strict=True)


def test_a_choice_that_the_metadata_does_not_list_is_malformed(make_log: MakeLog) -> None:
    path = make_log([GOOD, "8,x,16,ori,1.0"], choices=["orig", "pad"])
    dataset = read_log(path)
    assert dataset.choices == ("orig", "pad")
    assert dataset.summary.skipped == (f"{path}:4: choice 'ori' is not among those of the metadata (orig, pad)",)


@pytest.mark.usefixtures("small_blocks")
def test_line_numbers_hold_across_blocks_and_all_lines_are_counted(make_log: MakeLog) -> None:
    rows = [line for _ in range(20) for line in (GOOD, "", "oops", GOOD, "8,x,16,orig,-1")]
    path = make_log(rows)
    dataset = read_log(path)
    assert len(dataset.rows) == 40
    assert dataset.summary.blank_lines == 20
    assert dataset.summary.malformed_lines == 40
    numbers = [int(message.removeprefix(f"{path}:").split(":")[0]) for message in dataset.summary.skipped]
    assert numbers == [5, 7, 10, 12, 15]
    assert str(dataset.summary).endswith("; …)")


def test_strict_reading_names_the_first_malformed_line_whatever_its_fault(make_log: MakeLog) -> None:
    path = make_log([GOOD, "8,x,16,orig,-1", "oops", "x,x,16,orig,1"])
    with pytest.raises(InputError, match=":4: feedback"):
        read_log(path, strict=True)


def test_bytes_that_are_not_utf8_spoil_only_their_line(
    log_bytes: Callable[..., bytes], write_file: Callable[..., Path]
) -> None:
    path = write_file(log_bytes([GOOD, "8,ä,16,orig,1.0"]) + b"8,\xff\xfe,16,orig,1.0\n8,y,16,orig,1.0\n")
    dataset = read_log(path)
    assert dataset.problems.get_column("dtype").to_list() == ["x", "ä", "y"]
    assert dataset.summary.skipped == (f"{path}:5: not UTF-8",)


def test_a_problem_or_choice_that_only_malformed_lines_name_does_not_exist(make_log: MakeLog) -> None:
    dataset = read_log(make_log([GOOD, "7,x,16,orig,-1", "8,x,16,pad,never"]))
    assert dataset.problems.rows() == [(8, "x", 16)]
    assert dataset.choices == ("orig",)


def test_names_that_look_like_code_or_patterns_are_names(make_log: MakeLog) -> None:
    names = ['x"); import os #', "*", "^m.*$", "$1", "a b", "ä", "__class__", "'"]
    path = make_log(
        ['1,2,3,4,5,6,7,8,y"); import os #,1.0'],
        header=",".join((*names, "choice", "feedback")),
        numerical_features=names[::-1],
        categorical_features=[],
    )
    dataset = read_log(path, strict=True)
    assert [feature.name for feature in dataset.features] == names
    assert dataset.problems.row(0) == (1, 2, 3, 4, 5, 6, 7, 8)
    assert dataset.choices == ('y"); import os #',)


def test_quotes_do_not_swallow_what_follows(make_log: MakeLog) -> None:
    dataset = read_log(make_log(['8,"x,16,orig,1.0', GOOD, '8,x",16,"pad",1.0']), strict=True)
    assert dataset.problems.get_column("dtype").to_list() == ['"x', "x", 'x"']
    assert dataset.choices == ("orig", '"pad"')


def test_a_huge_field_is_a_field_and_its_message_stays_short(make_log: MakeLog) -> None:
    huge = "9" * 1_000_000
    dataset = read_log(make_log([f"8,{huge},16,orig,1.0", f"8,x,16,orig,x{huge}", f"{huge},x,16,orig,1.0"]))
    assert dataset.problems.get_column("dtype").to_list() == [huge]
    assert dataset.summary.malformed_lines == 2
    assert len(str(dataset.summary)) < 1000


@pytest.mark.usefixtures("small_blocks")
def test_a_line_longer_than_a_block_is_an_error_not_a_memory_problem(make_log: MakeLog) -> None:
    with pytest.raises(InputError, match=r"toy\.txt:4: a line longer than .* this is not a log$"):
        read_log(make_log([GOOD, "8," + "x" * 1000 + ",16,orig,1.0"]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, ":1: the metadata's \"name\" must be the operator's name"),
        ({"name": 3}, ':1: the metadata\'s "name" must be'),
        ({"numerical_features": "m"}, ':1: the metadata\'s "numerical_features" must be a list of names'),
        ({"numerical_features": ["m", "n", "m"]}, ':1: the metadata\'s "numerical_features" names one twice'),
        ({"categorical_features": ["dtype", "m"]}, ":1: the metadata names the feature 'm' twice"),
        ({"numerical_features": ["m"]}, ":2: the header adds n, compared with the metadata"),
        ({"numerical_features": ["m", "n", "k"]}, ":2: the header lacks k, compared with the metadata"),
        ({"choices": [1]}, ':1: the metadata\'s "choices" must be a list of names'),
        ({"choices": ["\ud800"]}, ':1: the metadata\'s "choices" holds a name that is not Unicode text'),
        ({"header": "m,dtype,n,choice"}, ":2: the header must be the features, then choice,feedback"),
        ({"header": "m,dtype,n,feedback,choice"}, ":2: the header must be the features, then choice,feedback"),
        ({"header": ""}, ":2: the header must be the features, then choice,feedback"),
        ({"header": "m,dtype,n,m,choice,feedback"}, ":2: the header names 'm' twice"),
        ({"header": "m,choice,dtype,n,choice,feedback"}, ":2: the header names 'choice' twice"),
        ({"header": "m,,dtype,n,choice,feedback"}, ":2: the header has an empty name"),
        ({"header": "choice,feedback"}, ":2: the header names no features"),
        ({"rows": []}, ": the log has no usable row"),
        ({"rows": ["", " "]}, ": the log has no usable row"),
    ],
)
def test_wrong_metadata_or_header_is_one_clear_error(make_log: MakeLog, changes: dict[str, Any], message: str) -> None:
    path = make_log(**changes)
    with pytest.raises(InputError) as caught:
        read_log(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["name", "numerical_features", "categorical_features"])
def test_metadata_must_be_complete(
    metadata: dict[str, Any], key: str, log_bytes: Callable[..., bytes], write_file: Callable[..., Path]
) -> None:
    del metadata[key]
    with pytest.raises(InputError, match=rf":1: the metadata lacks {key}$"):
        read_log(write_file(log_bytes()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": the file is empty"),
        (b"\n\n", ":1: the first line of a log is JSON metadata"),
        (b"m,n,choice,feedback\n1,2,orig,1\n", ":1: the first line of a log is JSON metadata"),
        (b"[1, 2]\n", ":1: the first line of a log is JSON metadata"),
        (b"\xff\xfe\x00\n", ":1: the first line of a log is JSON metadata"),
        (b"[" * 100_000 + b"\n", ":1: the first line of a log is JSON metadata"),
        (b'{"name": "toy", "numerical_features": [], "categorical_features": []}', ":2: the header must be"),
        (b'{"name": "toy", "numerical_features": [], "categorical_features": []}\n\xff\n', ":2: the header is not"),
    ],
)
def test_what_is_no_log_is_one_clear_error(write_file: Callable[..., Path], content: bytes, message: str) -> None:
    path = write_file(content)
    with pytest.raises(InputError) as caught:
        read_log(path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_log_without_a_usable_row_shows_why(make_log: MakeLog) -> None:
    path = make_log(["True,x,16,orig,1.0", "False,x,16,orig,1.0"])
    with pytest.raises(InputError, match=r"no usable row \(first skipped: .*:3: m is 'True', not a finite number\)$"):
        read_log(path)


def test_a_missing_file_or_a_folder_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read: No such file"):
        read_log(tmp_path / "none.txt")
    with pytest.raises(InputError, match="cannot read: Is a directory"):
        read_log(tmp_path)
