"""Small datasets, made in the test."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.dataset.dataset import Dataset
from autoheur.types import Feature

LogRow = tuple[int, int, str, str, float]
"""m, n, dtype, choice, milliseconds"""


@pytest.fixture
def features() -> tuple[Feature, ...]:
    """Raw and derived features of the operator ``toy``, of both kinds and not in the order of columns."""
    return (
        Feature("square", "categorical", formula="m == n"),
        Feature("m*n", formula="m * n"),
        Feature("dtype", "categorical"),
        Feature("m", integer=True),
        Feature("n", integer=True),
    )


@pytest.fixture
def make_dataset(tmp_path: Path) -> Callable[..., Dataset]:
    """Write a log of these rows and read it."""

    def make(rows: Sequence[LogRow], file: str = "log.txt", **changes: Any) -> Dataset:
        metadata = {
            "name": "toy",
            "numerical_features": ["m", "n"],
            "categorical_features": ["dtype"],
            "shared_memory": 166912,
            "device_capa": [8, 0],
        }
        lines = [json.dumps(metadata | changes), "m,n,dtype,choice,feedback"]
        lines += [f"{m},{n},{dtype},{choice},{time!r}" for m, n, dtype, choice, time in rows]
        path = tmp_path / file
        path.write_text("\n".join(lines) + "\n")
        return read_log(path)

    return make


@pytest.fixture
def random_rows() -> Callable[..., list[LogRow]]:
    """Plausible measurements: noise, few repetitions here and there, failures, choices left out, in shuffled order."""

    def rows(seed: int, problems: int, choices: Sequence[str] = ("orig", "pad")) -> list[LogRow]:
        random = Random(seed)
        found: list[LogRow] = []
        for _ in range(problems):
            m, n = random.randint(1, 64), random.randint(1, 64)
            dtype = random.choice(["torch.float16", "torch.float32", "torch.bfloat16"])
            for number, choice in enumerate(choices):
                slow = 1 + (number + m + n // 8) % len(choices) / 2 + (dtype == "torch.float32") * number
                time = m * n * slow * random.choice([1, 1, 1, 1.25])
                noise = random.choice([0, 0.01, 0.01, 0.2])
                for _ in range(random.choice([0, 2, 3, 3, 3, 3, 4, 5])):
                    failed = random.random() < 0.01
                    found.append(
                        (m, n, dtype, choice, float("inf") if failed else time * (1 + noise * random.random()))
                    )
        random.shuffle(found)
        return found

    return rows
