"""Filtering measurements, ordering problems and encoding features."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

import attrs
import numpy as np
import polars as pl
import pytest

from autoheur.dataset.dataset import Dataset
from autoheur.errors import InputError
from autoheur.heuristic.model import Input
from autoheur.learning import Examples
from autoheur.train.examples import (
    PUBLISHED,
    UNFILTERED,
    Dropped,
    Encoding,
    Filter,
    require_problems,
    select,
)
from autoheur.types import Feature

MakeDataset = Callable[..., Dataset]
Rows = Callable[..., list[tuple[int, int, str, str, float]]]
INF = float("inf")


def encoded(dataset: Dataset, features: Sequence[Feature], rule: Filter) -> Examples:
    selection = select(dataset, features, rule)
    return Encoding.of([selection], features).examples(selection, tolerance=1)


def repeat(m: int, choice: str, times: Sequence[float]) -> list[tuple[int, int, str, str, float]]:
    return [(m, 1, "x", choice, time) for time in times]


def test_a_choice_needs_enough_measurements_that_agree(make_dataset: MakeDataset, features: Sequence[Feature]) -> None:
    rows = [
        *repeat(1, "a", [1, 1, 1]), *repeat(1, "b", [2, 2, 2]),
        *repeat(2, "a", [1, 1, 1]),
        *repeat(3, "a", [1, 1, 1]), *repeat(3, "b", [2, INF, 2, 2]),
        *repeat(4, "a", [1, 1, 1]), *repeat(4, "b", [2, 2]),
        *repeat(5, "a", [1, 1, 1]), *repeat(5, "b", [2, 2.3, 2]),
    ]  # fmt: skip
    selection = select(make_dataset(rows), features, PUBLISHED)
    assert selection.columns["m"].tolist() == [1]
    assert selection.times.tolist() == [[1, 2]]
    assert selection.dropped == Dropped(5, single_choice=1, failed=1, few_measurements=1, noisy=1)
    assert selection.dropped.count == 4
    loose = select(make_dataset(rows), features, UNFILTERED)
    assert loose.columns["m"].tolist() == [1, 4, 5]
    assert loose.dropped == Dropped(5, single_choice=1, failed=1)


def test_exactly_the_greatest_spread_still_passes(make_dataset: MakeDataset, features: Sequence[Feature]) -> None:
    times = [0.95, 1.0, 1.05]  # relative standard deviation 5 %
    spread = float(np.std(times, ddof=1) / np.mean(times))
    dataset = make_dataset([*repeat(1, "a", times), *repeat(1, "b", [1, 1, 1])])
    assert len(select(dataset, features, Filter(3, spread))) == 1
    assert len(select(dataset, features, Filter(3, np.nextafter(spread, 0)))) == 0


def test_a_choice_that_does_not_count_is_missing_in_its_problem_only(
    make_dataset: MakeDataset, features: Sequence[Feature]
) -> None:
    rows = [row for choice in "abc" for row in repeat(1, choice, [1, 1, 1])]
    rows += [row for choice in "bc" for row in repeat(2, choice, [2, 2, 2])] + repeat(2, "a", [1, 3, 5])
    selection = select(make_dataset(rows), features, PUBLISHED)
    assert selection.choices == ("a", "b", "c")
    assert np.array_equal(selection.times, np.array([[1, 1, 1], [np.nan, 2, 2]]), equal_nan=True)
    assert np.array_equal(np.isnan(selection.noise), np.isnan(selection.times))


def test_problems_are_sorted_by_numbers_then_categories(make_dataset: MakeDataset, features: Sequence[Feature]) -> None:
    keys = [(10, 2, "b"), (9, 2, "a"), (10, 2, "a"), (10, 1, "c"), (-3, 7, "a")]
    rows = [(*key, choice, 1.0) for key in keys for choice in ("y", "x")]
    selection = select(make_dataset(rows), features, UNFILTERED)
    columns = zip(*(selection.columns[name].tolist() for name in ("m", "n", "dtype")), strict=True)
    assert list(columns) == sorted(keys)
    assert selection.choices == ("x", "y")


def test_the_order_of_the_data_does_not_matter(
    make_dataset: MakeDataset, random_rows: Rows, features: Sequence[Feature]
) -> None:
    rows = random_rows(1, 40, "abc")
    examples = encoded(make_dataset(rows), features, PUBLISHED)
    random.Random(2).shuffle(rows)
    again = encoded(make_dataset(rows), features, PUBLISHED)
    assert again.inputs == examples.inputs
    assert again.choices == examples.choices
    assert np.array_equal(again.matrix, examples.matrix)
    assert np.array_equal(again.times, examples.times, equal_nan=True)
    assert again.noise is not None
    assert examples.noise is not None
    assert np.array_equal(again.noise, examples.noise, equal_nan=True)


def test_columns_come_in_the_published_order(make_dataset: MakeDataset, features: Sequence[Feature]) -> None:
    # Sorted, the first problem has the category z and is no square.
    rows = [(m, n, dtype, choice, 1.0) for m, n, dtype in ((2, 2, "a"), (1, 5, "z")) for choice in ("p", "o")]
    examples = encoded(make_dataset(rows), features, UNFILTERED)
    assert examples.inputs == (
        Input("m"), Input("n"), Input("m*n"),
        Input("dtype", "z"), Input("dtype", "a"), Input("square", "False"), Input("square", "True"),
    )  # fmt: skip
    assert examples.matrix.tolist() == [[1, 5, 5, 1, 0, 1, 0], [2, 2, 4, 0, 1, 0, 1]]
    assert examples.choices == ("o", "p")


def test_categories_of_several_datasets_are_ordered_as_in_one(
    make_dataset: MakeDataset, features: Sequence[Feature]
) -> None:
    keys = [(1, 5, "z"), (2, 5, "a"), (3, 5, "k"), (4, 4, "a")]
    rows = [[(*key, choice, 1.0) for choice in "ab"] for key in keys]
    whole = select(make_dataset([row for four in rows for row in four]), features, UNFILTERED)
    parts = [select(make_dataset(rows[i] + rows[j]), features, UNFILTERED) for i, j in ((1, 2), (3, 0))]
    assert Encoding.of(parts, features).inputs == Encoding.of([whole], features).inputs


def test_an_unknown_category_has_no_indicator(make_dataset: MakeDataset, features: Sequence[Feature]) -> None:
    known = select(
        make_dataset([(1, 2, dtype, choice, 1.0) for dtype in "xy" for choice in "ab"]), features, UNFILTERED
    )
    other = select(make_dataset([(1, 2, "new", choice, 1.0) for choice in "ab"]), features, UNFILTERED)
    examples = Encoding.of([known], features).examples(other, tolerance=1)
    assert [column.category for column in examples.inputs] == [None, None, None, "x", "y", "False"]
    assert examples.matrix.tolist() == [[1, 2, 2, 0, 0, 1]]


def test_choices_unknown_to_the_encoding_come_after_the_others(
    make_dataset: MakeDataset, features: Sequence[Feature]
) -> None:
    known = select(make_dataset([(1, 2, "x", choice, 1.0) for choice in "cde"]), features, UNFILTERED)
    rows = [(1, 2, "x", choice, 2.0) for choice in "zca"] + [(2, 2, "x", choice, 3.0) for choice in "za"]
    other = select(make_dataset(rows), features, UNFILTERED).with_choices_first(known.choices)
    examples = Encoding.of([known], features).examples(other, tolerance=1)
    assert examples.choices == ("c", "d", "e", "a", "z")
    expected = [[2, np.nan, np.nan, 2, 2], [np.nan, np.nan, np.nan, 3, 3]]
    assert np.array_equal(examples.times, expected, equal_nan=True)


def with_blocks(dataset: Dataset) -> Dataset:
    """The choices ``a``, ``b``, ``c``, … with block sizes 1, 2, 4, …"""
    table = pl.DataFrame(
        {"choice": dataset.choices, "block": [2 ** (ord(name) - ord("a")) for name in dataset.choices]}
    )
    return attrs.evolve(dataset, choice_features=(Feature("block", integer=True, of="choice"),), choice_table=table)


def test_features_of_choices_make_one_row_per_pair_that_counts(
    make_dataset: MakeDataset, features: Sequence[Feature]
) -> None:
    rows = [(m, 3, "x", choice, 1.0) for m, choices in ((5, "cab"), (4, "bc")) for choice in choices]
    block = Feature("block", integer=True, of="choice")
    tiles = Feature("tiles", formula="ceil(m / block)")  # of a problem and a choice together
    examples = encoded(with_blocks(make_dataset(rows)), [*features, block, tiles], UNFILTERED)
    assert examples.choices == ("a", "b", "c")
    assert examples.pair_inputs == (Input("block"), Input("tiles"))
    assert examples.matrix.shape == (2, len(examples.inputs))
    assert examples.pairs is not None
    assert examples.pairs.tolist() == [[2, 2], [4, 1], [1, 5], [2, 3], [4, 2]]
    assert examples.take(np.array([1])).pairs.tolist() == [[1, 5], [2, 3], [4, 2]]  # type: ignore[union-attr]


def test_choices_without_the_features_asked_for_are_an_error(
    make_dataset: MakeDataset, features: Sequence[Feature]
) -> None:
    dataset = make_dataset([(1, 2, "x", choice, 1.0) for choice in "ab"])
    with pytest.raises(InputError, match=r"log\.txt: its choices have no numerical feature 'block' \(.*none\)"):
        select(dataset, [*features, Feature("block", of="choice")], UNFILTERED)


@pytest.mark.parametrize("name", ["*", "^m.*$", 'x"); import os #', "f0", "row"])
def test_any_feature_name_will_do(
    make_dataset: MakeDataset, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    from autoheur.dataset.autoheuristic_log.reader import read_log

    path = tmp_path_factory.mktemp("names") / "log.txt"
    metadata = {"name": "toy", "numerical_features": [name], "categorical_features": ["k0"], "device_capa": [8, 0]}
    head = json.dumps(metadata)
    path.write_text(f"{head}\n{name},k0,choice,feedback\n" + "2,u,a,1.0\n2,u,b,2.0\n1,v,a,1.0\n1,v,b,2.0\n")
    dataset = read_log(path)
    examples = encoded(dataset, dataset.features, UNFILTERED)
    assert examples.inputs == (Input(name), Input("k0", "v"), Input("k0", "u"))
    assert examples.matrix.tolist() == [[1, 1, 0], [2, 0, 1]]


def test_numbers_beyond_single_precision_leave_their_problem_out(
    make_dataset: MakeDataset, features: Sequence[Feature]
) -> None:
    feature = Feature("huge", formula="m * 1e38")
    rows = [(m, 1, "x", choice, 1.0) for m in (1, 4) for choice in "ab"]
    selection = select(make_dataset(rows), (*features, feature), UNFILTERED)
    assert selection.columns["m"].tolist() == [1]
    assert selection.dropped == Dropped(2, undefined=1)


def test_one_choice_is_nothing_to_choose_from(make_dataset: MakeDataset, features: Sequence[Feature]) -> None:
    with pytest.raises(InputError, match=r"log\.txt: only one choice \(a\) was measured"):
        select(make_dataset(repeat(1, "a", [1, 1, 1])), features, UNFILTERED)


def test_a_feature_that_the_data_lacks_is_named(make_dataset: MakeDataset) -> None:
    dataset = make_dataset([(1, 2, "x", choice, 1.0) for choice in "ab"])
    with pytest.raises(InputError, match="'depth'"):
        select(dataset, [Feature("m"), Feature("depth")], UNFILTERED)


def test_when_nothing_passes_the_message_counts_why(make_dataset: MakeDataset, features: Sequence[Feature]) -> None:
    rows = [*repeat(1, "a", [1, 1, 1]), *repeat(2, "a", [1]), *repeat(2, "b", [1]), *repeat(3, "a", [1, 1, 1])]
    rows += repeat(3, "b", [1, 2, 3])
    selection = select(make_dataset(rows), features, PUBLISHED)
    with pytest.raises(InputError) as caught:
        require_problems(selection, PUBLISHED, "train")
    message = str(caught.value)
    assert message.startswith("train: no problem can be used; of 3 problems there are ")
    assert "1 with measurements of fewer than two choices" in message
    assert "1 with fewer than two choices measured at least 3 times" in message
    assert "1 with fewer than two choices whose measurements vary by at most 5%" in message
    assert "\n" not in message
