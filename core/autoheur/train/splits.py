"""Random splits by problem, as PyTorch's AutoHeuristic makes them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]

SEED = 42
TEST_SHARE = 0.2
VAL_SHARE = 0.25


def split(count: int, share: float, seed: int = SEED) -> tuple[Indices, Indices]:
    """Split ``range(count)`` at random into what is left and ``share`` of it (rounded up), in drawn order.

    The draw is that of scikit-learn's ``train_test_split`` with an integer ``random_state``.
    """
    order = np.random.RandomState(seed).permutation(count)
    held_out = math.ceil(share * count)
    return order[held_out:], order[:held_out]


def published_split(count: int, seed: int = SEED) -> tuple[Indices, Indices, Indices]:
    """Split ``count`` sorted problems into train (60 %), val (20 %) and test (20 %); each comes sorted.

    First 20 % of the problems are held out for test, then 25 % of the others for val (torchgen/_autoheuristic in
    PyTorch). Examples are one per problem, so a problem's choices stay together.
    """
    rest, test = split(count, TEST_SHARE, seed)
    train, val = split(len(rest), VAL_SHARE, seed)
    return np.sort(rest[train]), np.sort(rest[val]), np.sort(test)


def train_val_split(count: int, seed: int = SEED) -> tuple[Indices, Indices]:
    """Split ``count`` sorted problems into train (75 %) and val (25 %), for data with a test set of its own."""
    train, val = split(count, VAL_SHARE, seed)
    return np.sort(train), np.sort(val)
