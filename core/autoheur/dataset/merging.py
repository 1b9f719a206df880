"""Merges datasets that may overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from autoheur.dataset.combine import combine, common_device
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.parts import Part, describe_parts, origins, split, take_rows

Block = tuple[Any, ...]
"""What was measured of one problem in a row: the problem's values, the choices and the times."""


@attrs.frozen(eq=False)
class Merged:
    """The dataset, the parts that it consists of, and how many measurements were left out as duplicates."""

    dataset: Dataset
    parts: list[Part]
    duplicates: int


def merge(datasets: Sequence[Dataset], allow_mixed_devices: bool = False, names: Sequence[str] | None = None) -> Merged:
    """Put datasets together like :func:`combine`, and keep what several of them hold once.

    Two blocks of measurements are the same when they come from the same origin (file or session) and agree in problem,
    choices and every time. Equal measurements of different origins are two measurements. A dataset merged with itself,
    or with a part of itself, stays as it is.

    Raises:
        InputError: see :func:`combine`.
    """
    common_device(datasets, allow_mixed_devices, names)
    kept: list[tuple[set[str], Dataset]] = []
    duplicates = 0
    choices: dict[str, int] = {}
    features = [feature.name for feature in datasets[0].features]
    for dataset in datasets:
        for part, piece in split(dataset):
            origin = origins(part)
            earlier = [other for known, other in kept if known & origin]
            rows = _new_rows(piece, earlier, features, choices) if earlier else np.arange(len(piece.rows))
            duplicates += len(piece.rows) - len(rows)
            if len(rows):
                kept.append((origin, piece if len(rows) == len(piece.rows) else take_rows(piece, rows)))
    if len(datasets[0].rows) == sum(len(piece.rows) for _, piece in kept):
        dataset = datasets[0]  # the others added nothing
    else:
        dataset = combine([piece for _, piece in kept], allow_mixed_devices)
    return Merged(dataset, describe_parts(dataset), duplicates)


def _new_rows(
    piece: Dataset, earlier: Sequence[Dataset], features: Sequence[str], choices: dict[str, int]
) -> NDArray[np.intp]:
    """The rows that none of the ``earlier``, of the same origin, holds; each block of theirs stands for one of ours."""
    available: Counter[Block] = Counter()
    for other in earlier:
        available.update(block for block, _, _ in _blocks(other, features, choices))
    new = []
    for block, start, end in _blocks(piece, features, choices):
        if available[block]:
            available[block] -= 1
        else:
            new.append(np.arange(start, end))
    return np.concatenate(new) if new else np.empty(0, np.intp)


def _blocks(dataset: Dataset, features: Sequence[str], choices: dict[str, int]) -> list[tuple[Block, int, int]]:
    """Runs of rows of one problem, with where they start and end."""
    problem = dataset.rows.get_column("problem").to_numpy()
    codes = np.asarray([choices.setdefault(choice, len(choices)) for choice in dataset.choices], np.uint32)
    choice = codes[dataset.rows.get_column("choice").to_numpy()]
    times = dataset.rows.get_column("time_ms").to_numpy()
    values = list(zip(*(dataset.problems.get_column(name).to_list() for name in features), strict=True))
    starts = np.flatnonzero(np.diff(problem, prepend=problem[:1] + 1))
    ends = np.append(starts[1:], len(problem))
    return [
        ((values[problem[start]], choice[start:end].tobytes(), times[start:end].tobytes()), int(start), int(end))
        for start, end in zip(starts, ends, strict=True)
    ]
