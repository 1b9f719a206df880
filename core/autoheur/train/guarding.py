"""The ranges and categories that training sees, and which problems lie within."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from autoheur.heuristic.artifact import Seen
from autoheur.heuristic.model import Input
from autoheur.train.learner import Examples, Floats
from autoheur.types import Feature


def ranges_seen(features: Iterable[Feature], examples: Sequence[Examples]) -> dict[str, Seen]:
    """Ranges and categories of the raw features among these examples."""
    inputs = examples[0].inputs
    matrix = np.concatenate([part.matrix for part in examples])
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    seen: dict[str, Seen] = {}
    for feature in features:
        columns = [position for position, column in enumerate(inputs) if column.feature == feature.name]
        if feature.derived:
            continue
        if feature.kind == "numerical":
            seen[feature.name] = Seen(float(low[columns[0]]), float(high[columns[0]]))
        else:
            present = [inputs[position].category for position in columns if high[position] > 0]
            seen[feature.name] = Seen(categories=sorted(str(category) for category in present))
    return seen


def within(seen: Mapping[str, Seen], inputs: Sequence[Input], matrix: Floats) -> NDArray[np.bool_]:
    """Which problems (P, from P x F) an artifact's guard lets through."""
    inside = np.ones(len(matrix), bool)
    known = {name: np.zeros(len(matrix), bool) for name, found in seen.items() if found.categories is not None}
    for position, column in enumerate(inputs):
        found = seen.get(str(column.feature))
        if found is None:
            continue
        values = matrix[:, position]
        if found.low is not None and found.high is not None:
            inside &= (values >= found.low) & (values <= found.high)
        elif found.categories is not None and column.category in found.categories:
            known[str(column.feature)] |= values > 0
    for category_known in known.values():
        inside &= category_known
    return inside
