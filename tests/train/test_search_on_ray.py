"""The grid search on a Ray cluster, through joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import attrs
import joblib
import pytest

from autoheur.dataset.dataset import Dataset
from autoheur.train.training import TrainRequest, train
from autoheur.types import Feature, Problem
from autoheur_learners.distilled_tree import DistilledTree
from autoheur_learners.regression_tree import RegressionTree


@pytest.fixture
def ray_backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Joblib's tasks run on a Ray cluster of two processes on this machine."""
    ray = pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=100 * 2**20,
    )
    register_ray()  # type: ignore[no-untyped-call]
    with joblib.parallel_config(backend="ray", n_jobs=2):
        yield
    ray.shutdown()


def sample(random: Random) -> Iterator[Problem]:
    while True:
        yield {"m": random.randint(1, 64), "n": random.randint(1, 64), "dtype": "torch.float16"}


def test_a_ray_cluster_trains_the_same_heuristic_as_threads(
    make_dataset: Callable[..., Dataset],
    random_rows: Callable[..., Any],
    features: Sequence[Feature],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    asked = TrainRequest(
        operator="toy",
        features=features,
        train=[make_dataset(random_rows(11, 120))],
        learners=[RegressionTree(), DistilledTree()],
        grid={"max_depth": [3], "min_samples_leaf": [5, 10], "drawn": [50]},
        sampler=sample,
    )
    done: list[int] = []
    by_threads = train(asked)
    request.getfixturevalue("ray_backend")
    by_ray = train(attrs.evolve(asked, progress=lambda finished, total, label: done.append(finished)))
    assert by_ray.artifact == by_threads.artifact
    assert by_ray.rows == by_threads.rows
    assert done == list(range(1, len(done) + 1))
    assert done
