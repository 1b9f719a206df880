"""Merging datasets that may overlap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.dataset.combine import combine
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.files import read
from autoheur.dataset.merging import merge
from autoheur.dataset.parquet import read_parquet, write_parquet
from autoheur.dataset.parts import split
from autoheur.errors import InputError

MakeLog = Callable[..., Path]

A = ["8,x,16,a,1.0", "8,x,16,b,2.0", "9,x,16,a,3.0", "8,x,16,a,1.0", "8,x,16,b,2.0"]
"""The first problem was measured twice, with the same times."""
B = ["7,y,16,b,1.0", "8,x,16,a,1.0", "8,x,16,b,2.0"]


@pytest.fixture
def a(make_log: MakeLog) -> Dataset:
    return read_log(make_log(A, file="a.txt"))


@pytest.fixture
def b(make_log: MakeLog) -> Dataset:
    return read_log(make_log(B, file="b.txt"))


def measurements(dataset: Dataset) -> list[tuple[Any, ...]]:
    """Every measurement in full, in order."""
    problems = dataset.problems.rows()
    return [(*problems[problem], dataset.choices[choice], time) for problem, choice, time in dataset.rows.iter_rows()]


def stored(dataset: Dataset, path: Path) -> Dataset:
    write_parquet(dataset, path)
    return read_parquet(path)


def test_a_dataset_merged_with_itself_stays_as_it_is(a: Dataset, tmp_path: Path) -> None:
    merged = merge([a, read(a.sources[0]), a])
    assert merged.dataset is a
    assert merged.duplicates == 2 * len(a.rows)
    once = stored(a, tmp_path / "once.parquet")
    write_parquet(merge([once, once]).dataset, tmp_path / "twice.parquet")
    assert (tmp_path / "twice.parquet").read_bytes() == (tmp_path / "once.parquet").read_bytes()


def test_equal_measurements_of_different_origins_are_all_kept(a: Dataset, b: Dataset) -> None:
    merged = merge([a, b])
    assert merged.duplicates == 0
    assert measurements(merged.dataset) == measurements(a) + measurements(b)


def test_merging_again_what_is_in_already_adds_nothing(a: Dataset, b: Dataset, tmp_path: Path) -> None:
    both = stored(merge([a, b]).dataset, tmp_path / "both.parquet")
    for order in ([both, a], [both, b, both], [both, both]):
        assert merge(order).dataset is both
    other_way = merge([b, both])
    assert measurements(other_way.dataset) == measurements(b) + measurements(a)
    assert [part["sources"][0]["name"] for part in other_way.parts] == ["b.txt", "a.txt"]


def test_what_an_earlier_state_of_a_collection_lacks_is_added_once(a: Dataset) -> None:
    session = {"session": 1, "id": "abc"}
    early = attrs.evolve(a, rows=a.rows[:3], sources=("d.parquet",), sha256=("1" * 64,))
    early = attrs.evolve(early, environment={"sessions": [session]})
    late = attrs.evolve(a, sources=("d.parquet",), sha256=("2" * 64,))
    late = attrs.evolve(late, environment={"sessions": [session, {"id": "def"}]})
    merged = merge([early, late])
    assert measurements(merged.dataset) == measurements(a), "the second measurement of the first problem is one more"
    assert merged.duplicates == 3
    apart = attrs.evolve(late, environment={"sessions": [{"id": "ghi"}]})
    assert merge([early, apart]).duplicates == 0


def test_where_everything_came_from_is_kept(a: Dataset, b: Dataset, tmp_path: Path) -> None:
    measured = attrs.evolve(
        b, metadata={}, sources=(), sha256=(), environment={"sessions": [{"seed": 3}], "failures": []}
    )
    merged = stored(merge([a, measured]).dataset, tmp_path / "ab.parquet")
    log, own = merged.environment["parts"]
    assert log["sources"] == [{"name": "a.txt", "sha256": a.sha256[0]}]
    assert log["metadata"] == a.metadata
    assert (log["problems"], log["measurements"]) == (2, 5)
    assert own == {
        "sources": [],
        "device": b.device.to_dict(),
        "problems": 2,
        "measurements": 3,
        "environment": measured.environment,
    }
    first, second = split(merged)
    assert measurements(first[1]) == measurements(a)
    assert measurements(second[1]) == measurements(b)
    assert second[1].environment == measured.environment
    third = merge([merged, attrs.evolve(a, sha256=("0" * 64,))])
    assert len(third.parts) == 3, "parts are not nested"


def test_mixed_devices_are_refused_unless_allowed_and_stay_known(make_log: MakeLog, a: Dataset) -> None:
    other = read_log(make_log(B, file="other.txt", device_capa=[9, 0]))
    with pytest.raises(InputError, match=r"^.*a\.txt and .*other\.txt do not go together: measured on different"):
        merge([a, other])
    merged = merge([a, other], allow_mixed_devices=True)
    assert [part["device"]["capability"] for part in merged.parts] == ["8.0", "9.0"]
    assert [piece.device for _, piece in split(merged.dataset)] == [a.device, other.device]


def test_combining_keeps_the_parts_too(a: Dataset, b: Dataset) -> None:
    assert combine([a, b, a]).environment["parts"] == [
        *merge([a, b]).parts,
        *combine([a, b]).environment["parts"][:1],
    ]


@pytest.mark.parametrize(
    "damage",
    [
        lambda parts: parts[0].update(measurements=10**12),
        lambda parts: parts[0].update(measurements=-1),
        lambda parts: parts[0].update(measurements="5"),
        lambda parts: parts[0].pop("environment"),
        lambda parts: parts[0].update(environment=[]),
        lambda parts: parts[0].update(sources=[{"name": 1, "sha256": "x"}]),
        lambda parts: parts[0].update(device="GPU"),
        lambda parts: parts.append(None),
        lambda parts: parts.clear(),
    ],
)
def test_a_description_of_parts_that_does_not_fit_the_rows_is_damage(
    a: Dataset, b: Dataset, tmp_path: Path, damage: Callable[[Any], object]
) -> None:
    together = stored(merge([a, b]).dataset, tmp_path / "ab.parquet")
    damage(together.environment["parts"])
    write_parquet(together, tmp_path / "damaged.parquet")
    with pytest.raises(InputError, match=r"damaged\.parquet: the dataset's metadata is damaged \("):
        read_parquet(tmp_path / "damaged.parquet")
