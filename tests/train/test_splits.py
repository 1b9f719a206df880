"""Random splits by problem."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from autoheur.train.splits import published_split, train_val_split


@pytest.mark.parametrize("count", [5, 6, 7, 19, 100, 9597])
@pytest.mark.parametrize("seed", [42, 7])
def test_the_split_is_the_published_one(count: int, seed: int) -> None:
    problems = np.arange(count)
    rest, test = train_test_split(problems, test_size=0.2, random_state=seed)
    train, val = train_test_split(rest, test_size=0.25, random_state=seed)
    split = published_split(count, seed)
    for ours, theirs in zip(split, (train, val, test), strict=True):
        assert ours.tolist() == sorted(theirs.tolist())


def test_the_published_counts() -> None:
    assert [len(part) for part in published_split(9597)] == [5757, 1920, 1920]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 50])
def test_every_problem_is_in_one_part(count: int) -> None:
    assert sorted(np.concatenate(published_split(count)).tolist()) == list(range(count))
    assert sorted(np.concatenate(train_val_split(count)).tolist()) == list(range(count))


def test_a_test_set_of_its_own_leaves_three_quarters_for_training() -> None:
    train, val = train_val_split(100)
    assert (len(train), len(val)) == (75, 25)
    assert train.tolist() == sorted(train.tolist())
