"""Where the rows of a dataset came from: the parts that it was put together from, with what is known of each.

A dataset made of others lists them in its environment, under ``parts``, in the order of its rows. A part has its own
``sources`` (file name and SHA-256), ``device``, ``metadata`` and ``environment``, and counts its ``problems`` and
``measurements``, the latter being the rows that it holds. Numbers of problems in a part's environment count the
problems of that part alone, in the order in which its rows first name them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import polars as pl
from numpy.typing import NDArray

from autoheur.dataset.dataset import Dataset, Summary
from autoheur.fingerprint import from_dict

PARTS = "parts"

Part = dict[str, Any]
"""One entry of the list; plain JSON data."""


def describe_parts(dataset: Dataset) -> list[Part]:
    """The parts of a dataset; of one that was not put together from others, the one that it is."""
    if PARTS in dataset.environment:
        return list(dataset.environment[PARTS])
    part: Part = {
        "sources": [
            {"name": Path(name).name, "sha256": digest}
            for name, digest in zip(dataset.sources, dataset.sha256, strict=False)
        ],
        "device": dataset.device.to_dict(),
        "problems": len(dataset.problems),
        "measurements": len(dataset.rows),
        "environment": dataset.environment,
    }
    return [{**part, "metadata": dataset.metadata} if dataset.metadata else part]


def check_parts(dataset: Dataset) -> None:
    """Hold what a dataset says of its parts to its rows.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: they do not agree, or it is no description of parts.
    """
    parts = dataset.environment.get(PARTS)
    if parts is None:
        return
    for part in parts:
        from_dict(part["device"])
        origins(part)
        if not all(isinstance(source["name"], str) for source in part["sources"]) or part["measurements"] < 0:
            raise ValueError(f"a part of {part['measurements']} measurements from {part['sources']}")
    total = sum(part["measurements"] for part in parts)
    if total != len(dataset.rows):
        raise ValueError(f"parts of {total} measurements in all, of {len(dataset.rows)}")


def origins(part: Mapping[str, Any]) -> set[str]:
    """What tells that two parts hold the same measurements: their files' digests, and the sessions that measured."""
    sessions = part["environment"].get("sessions", ())
    return {source["sha256"] for source in part["sources"]} | {
        json.dumps(session, sort_keys=True) for session in sessions
    }


def split(dataset: Dataset) -> list[tuple[Part, Dataset]]:
    """Take a dataset apart into its parts, each a dataset of its own."""
    parts = describe_parts(dataset)
    if len(parts) == 1:
        return [(parts[0], dataset)]
    ends = np.cumsum([part["measurements"] for part in parts])
    pieces = []
    for part, end in zip(parts, ends, strict=True):
        rows = np.arange(end - part["measurements"], end)
        piece = attrs.evolve(
            take_rows(dataset, rows),
            device=from_dict(part["device"]),
            metadata=part.get("metadata", {}),
            sources=tuple(source["name"] for source in part["sources"]),
            sha256=tuple(source["sha256"] for source in part["sources"]),
            environment=part["environment"],
        )
        pieces.append((part, piece))
    return pieces


def take_rows(dataset: Dataset, rows: NDArray[np.intp]) -> Dataset:
    """A dataset of some of the rows, by position, and of the problems that they name."""
    taken = dataset.rows[rows]
    named = taken.get_column("problem").unique(maintain_order=True)
    numbers = np.zeros(len(dataset.problems), np.uint32)
    numbers[named.to_numpy()] = np.arange(len(named), dtype=np.uint32)
    problem = pl.Series(numbers[taken.get_column("problem").to_numpy()])
    return attrs.evolve(
        dataset,
        problems=dataset.problems[named],
        rows=taken.select(pl.lit(problem).alias("problem"), "choice", "time_ms"),
        summary=Summary(),
    )
