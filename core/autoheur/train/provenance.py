"""Where a trained heuristic came from, as plain data for its artifact."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from autoheur.dataset.dataset import Dataset
from autoheur.errors import InputError
from autoheur.heuristic.drift import SOFTWARE
from autoheur.train.figures import Row
from autoheur.train.protocols.contract import Options, Outcome

_DISTRIBUTIONS = ("autoheur-core", "autoheur-learners", "scikit-learn", "numpy", "polars")


def describe(
    outcome: Outcome, protocol: str, options: Options, datasets: Mapping[str, Sequence[Dataset]], split: str | None
) -> dict[str, Any]:
    """Everything that it takes to train the same heuristic again, and how it did.

    ``datasets`` has the parts (train, val, test, further ones) as they were given; ``split`` says how parts that were
    not given were made. Files are named without their folders: an artifact is handed on, a machine's paths are not.
    """
    return {
        "datasets": {part: [_dataset(dataset) for dataset in given] for part, given in datasets.items() if given},
        **_measured_with([dataset for given in datasets.values() for dataset in given]),
        "split": split,
        "learner": outcome.learner.name,
        "parameters": dict(outcome.parameters),
        "protocol": protocol,
        "options": attrs.asdict(options),
        **({"calibration": dict(outcome.evidence)} if outcome.evidence else {}),
        "metrics": {row.dataset: metrics(row) for row in outcome.rows if row.chosen},
        "versions": versions(),
        "date": date(),
    }


def _measured_with(datasets: Sequence[Dataset]) -> dict[str, Any]:
    """The versions of the software that measured, where that is known; for :mod:`autoheur.heuristic.drift`."""
    found: dict[str, list[str]] = {}
    for dataset in datasets:
        for session in dataset.environment.get("sessions", ()):
            for name in SOFTWARE:
                if name in session and str(session[name]) not in found.setdefault(name, []):
                    found[name].append(str(session[name]))
    return {"measured_with": found} if found else {}


def _dataset(dataset: Dataset) -> dict[str, Any]:
    return {
        "files": [Path(source).name for source in dataset.sources],
        "sha256": list(dataset.sha256),
        "rows": len(dataset.rows),
        "problems": len(dataset.problems),
        "device": dataset.device.to_dict(),
    }


def metrics(row: Row) -> dict[str, Any]:
    """The figures of a row without what it is about."""
    return {
        key: value
        for key, value in row.to_dict().items()
        if key not in ("dataset", "learner", "params", "chosen", "threshold")
    }


def versions() -> dict[str, str]:
    """The versions that can change what is trained."""
    found = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def date() -> str:
    """Now, in UTC; or what ``SOURCE_DATE_EPOCH`` says, for builds that can be repeated byte for byte.

    Raises:
        InputError: ``SOURCE_DATE_EPOCH`` is not a number of seconds.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        moment = datetime.now(UTC) if epoch is None else datetime.fromtimestamp(int(epoch), UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError(f"SOURCE_DATE_EPOCH must be whole seconds since 1970, not {epoch!r}") from None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
