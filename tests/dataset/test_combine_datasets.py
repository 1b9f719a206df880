"""Putting datasets of one operator together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import polars as pl
import pytest

from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.dataset.combine import combine
from autoheur.dataset.files import read_all
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint

MakeLog = Callable[..., Path]


def test_rows_follow_one_another_and_recurring_problems_are_shared(make_log: MakeLog) -> None:
    first = make_log(["8,x,16,a,1.0", "9,x,16,b,2.0", "", "oops"], file="first.txt")
    second = make_log(["9,x,16,c,3.0", "8,y,16,a,4.0", "8,x,16,a,1.0"], file="second.txt")
    dataset = read_all([first, second])
    assert dataset.choices == ("a", "b", "c")
    assert dataset.problems.rows() == [(8, "x", 16), (9, "x", 16), (8, "y", 16)]
    assert dataset.rows.rows() == [(0, 0, 1.0), (1, 1, 2.0), (1, 2, 3.0), (2, 0, 4.0), (0, 0, 1.0)]
    assert dataset.sources == (str(first), str(second))
    assert dataset.sha256 == (*read_log(first).sha256, *read_log(second).sha256)
    summary = dataset.summary
    assert (summary.rows, summary.repeated_rows, summary.single_choice_problems) == (5, 1, 2)
    assert (summary.blank_lines, summary.malformed_lines, len(summary.skipped)) == (1, 1, 1)


def test_one_dataset_stays_as_it_is_and_none_is_an_error(make_log: MakeLog) -> None:
    dataset = read_log(make_log())
    assert combine([dataset]) is dataset
    with pytest.raises(InputError, match="no data"):
        combine([])


def test_the_order_of_features_is_the_firsts(make_log: MakeLog) -> None:
    first = make_log(["8,x,16,a,1.0"], file="first.txt")
    second = make_log(["8,16,x,a,2.0"], header="m,n,dtype,choice,feedback", file="second.txt")
    dataset = read_all([first, second])
    assert [feature.name for feature in dataset.features] == ["m", "dtype", "n"]
    assert dataset.problems.rows() == [(8, "x", 16)]


def test_a_feature_is_integer_only_if_it_is_everywhere(make_log: MakeLog) -> None:
    first = make_log(["8,x,16,a,1.0"], file="first.txt")
    second = make_log(["8.0,x,16,a,2.0", "8.5,x,16,a,2.0"], file="second.txt")
    for order in ([first, second], [second, first]):
        dataset = read_all(order)
        assert [feature.integer for feature in dataset.features] == [False, False, True]
        assert dataset.problems.rows() == [(8.0, "x", 16), (8.5, "x", 16)]


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"name": "other"}, "operator 'toy' and 'other'"),
        ({"numerical_features": ["m"], "header": "m,dtype,choice,feedback", "rows": ["8,x,a,1"]}, "the feature n"),
        ({"numerical_features": ["m"], "categorical_features": ["dtype", "n"]}, "'n' is numerical and categorical"),
        ({"device_capa": [9, 0]}, "measured on different devices .*'8.0'.* and .*'9.0'"),
        ({"device_capa": None}, "measured on different devices"),
    ],
)
def test_what_does_not_go_together_is_an_error_that_names_both_files(
    make_log: MakeLog, changes: dict[str, Any], difference: str
) -> None:
    first, second = make_log(file="first.txt"), make_log(file="second.txt", **changes)
    with pytest.raises(InputError, match=f"^{first} and {second} do not go together: .*{difference}"):
        read_all([first, second])


def test_mixed_devices_can_be_allowed(make_log: MakeLog) -> None:
    first, second = make_log(file="first.txt"), make_log(file="second.txt", device_capa=[9, 0])
    dataset = read_all([first, second], allow_mixed_devices=True)
    assert len(dataset.rows) == 6
    assert dataset.device == read_log(first).device


def test_a_log_goes_with_measurements_of_a_device_that_meets_it(make_log: MakeLog) -> None:
    log = read_log(make_log())
    gpu = Fingerprint("cuda", "NVIDIA A100-SXM4-40GB", "8.0", sm_count=108, memory_gib=40, shared_memory=166912)
    own = attrs.evolve(log, device=gpu)
    assert combine([log, own]).device == combine([own, log]).device == log.device
    third = attrs.evolve(log, device=attrs.evolve(gpu, shared_memory=1))
    with pytest.raises(InputError, match="different devices"):
        combine([log, own, third])


def test_sources_are_complete_or_empty(make_log: MakeLog) -> None:
    log = read_log(make_log())
    combined = combine([log, attrs.evolve(log, sources=(), sha256=())])
    assert (combined.sources, combined.sha256) == ((), ())


def test_combining_leaves_its_inputs_alone(make_log: MakeLog) -> None:
    first = read_log(make_log(["8,x,16,a,1.0"], file="first.txt"))
    second = read_log(make_log(["9.5,x,16,b,1.0"], file="second.txt"))
    combine([first, second])
    assert first.problems.schema == {"m": pl.Int64, "dtype": pl.String, "n": pl.Int64}
    assert second.rows.rows() == [(0, 0, 1.0)]
