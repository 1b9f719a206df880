"""The ranges and categories that training sees, and what lies within them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoheur.heuristic.artifact import Seen
from autoheur.heuristic.reference import inside
from autoheur.learning import Mask
from autoheur.train.examples import Selection
from autoheur.types import Feature


def ranges_seen(features: Iterable[Feature], selections: Sequence[Selection]) -> dict[str, Seen]:
    """Ranges and categories of the raw features, of problems and of the choices that count for them."""
    seen: dict[str, Seen] = {}
    for feature in features:
        if feature.derived:
            continue
        column = np.concatenate([_column(selection, feature) for selection in selections])
        if feature.kind == "numerical":
            seen[feature.name] = Seen(float(column.min()), float(column.max()))
        else:
            seen[feature.name] = Seen(categories=sorted(set(column.tolist())))
    return seen


def _column(selection: Selection, feature: Feature) -> NDArray[Any]:
    if feature.of == "problem":
        return selection.columns[feature.name]
    counts = np.isfinite(selection.times).any(axis=0)
    return selection.choice_columns[feature.name][counts]


def trusted(seen: Mapping[str, Seen], selection: Selection) -> Mask:
    """Which choices (P x C) are within what training saw of choices; the others keep no score."""
    fine = inside(seen, selection.choice_columns, len(selection.choices))
    return np.broadcast_to(fine, selection.times.shape)
