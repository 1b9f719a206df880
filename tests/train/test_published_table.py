"""The table published with PyTorch's AutoHeuristic for pad_mm on A100, from its own measurements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autoheur.codegen import compile_artifact
from autoheur.dataset import choice_table
from autoheur.dataset.files import read
from autoheur.heuristic.artifact import from_json, to_json
from autoheur.train.apply import apply
from autoheur.train.examples import UNFILTERED
from autoheur.train.training import TrainRequest, train
from autoheur_learners.extra_trees import ExtraTrees
from autoheur_learners.gradient_boosting import GradientBoosting
from autoheur_learners.regression_tree import RegressionTree
from autoheur_pad_mm.features import FEATURES

SharedData = Callable[[str], Path]


def test_the_published_rows_come_out_to_the_last_digit(shared_data: SharedData) -> None:
    val = read(shared_data("pad_mm_a100_val.txt.gz"))
    request = TrainRequest(
        operator="pad_mm",
        features=FEATURES,
        train=[read(shared_data("pad_mm_a100_train.txt.gz"))],
        val=[val],
        learners=[RegressionTree()],
        protocol="autoheuristic",
    )
    result = train(request)
    assert len(result.rows) == 24
    found = [
        (
            *row.params.values(), row.dataset, row.correct, row.wrong, row.unsure, row.total,
            row.max_wrong_speedup and f"{row.max_wrong_speedup:.6f}",
            row.gmean_wrong_speedup and f"{row.gmean_wrong_speedup:.6f}",
            f"{row.threshold:.6f}",
        )
        for row in result.rows
        if row.chosen
    ]  # fmt: skip
    assert found == [
        (5, 10, "train", 2730, 4, 3023, 5757, "1.372220", "1.193873", "1.702530"),
        (5, 10, "val", 878, 0, 1042, 1920, None, None, "1.702530"),
    ]
    again = apply(result.artifact, val).judge(result.artifact, "val", 1.05)
    assert [again] == [row for row in result.rows if row.chosen and row.dataset == "val"]
    assert result.notes[0].startswith("train: 104 of 5,861 problems left out")


@pytest.mark.parametrize(
    ("name", "learner", "grid"),
    [
        ("pad_mm_a100_train.txt.gz", RegressionTree(), {}),
        ("pad_mm_a100_val.txt.gz", GradientBoosting(), {"max_iter": [40]}),
        ("h100_mm.txt.gz", RegressionTree(), {"max_depth": [7]}),
        ("h100_mm.txt.gz", GradientBoosting(), {"max_iter": [40], "max_leaf_nodes": [15]}),
    ],
)
def test_generated_code_scores_every_problem_as_the_model_does(
    shared_data: SharedData,
    name: str,
    learner: RegressionTree | GradientBoosting,
    grid: dict[str, list[int]],
) -> None:
    dataset = read(shared_data(name))
    features = FEATURES if dataset.operator == "pad_mm" else dataset.features
    request = TrainRequest(
        operator=dataset.operator,
        features=features,
        train=[dataset],
        learners=[learner],
        protocol="autoheuristic",
        grid=grid,
    )
    artifact = from_json(to_json(train(request).artifact))
    compiled = compile_artifact(artifact)
    applied = apply(artifact, dataset, UNFILTERED)
    known = applied.selection
    assert list(known.choices) == artifact.choices
    names = [feature.name for feature in artifact.raw_features]
    problems = zip(*(known.columns[name].tolist() for name in names), strict=True)
    found = np.array([compiled.scores(dict(zip(names, values, strict=True))) for values in problems])
    assert np.array_equal(np.where(np.isfinite(known.times), found, np.nan), applied.scores, equal_nan=True)


def test_a_log_without_a_plugin_trains_from_its_own_metadata(shared_data: SharedData) -> None:
    dataset = read(shared_data("mixed_mm_a100.txt.gz"))
    request = TrainRequest(
        operator="mixed_mm",
        features=dataset.features,
        train=[dataset],
        learners=[GradientBoosting()],
        protocol="autoheuristic",
        grid={"max_iter": [30], "max_leaf_nodes": [15]},
    )
    rows = train(request).rows
    assert [(row.dataset, row.total) for row in rows] == [("train", 2579), ("val", 860), ("test", 860)]
    assert all(row.regret_at is not None and row.regret_at[10]["gmean"] < 1.01 for row in rows)


@pytest.mark.parametrize(
    ("device", "goals"),
    [
        ("a100", {1: 1.061, 3: 1.025, 5: 1.004, 10: 1.0006}),
        ("h100", {1: 1.165, 3: 1.045, 5: 1.021, 10: 1.005}),
    ],
)
def test_kernels_are_ranked_by_their_features(shared_data: SharedData, device: str, goals: dict[int, float]) -> None:
    """Judged on other shapes than those trained on, kernels that training never saw included; without a plugin."""
    data, other = read(shared_data(f"{device}_mm.txt.gz")), read(shared_data(f"{device}_hf_train_mm.txt.gz"))
    request = TrainRequest(
        operator=data.operator,
        features=(*data.features, *choice_table.features_of([data])),
        train=[data],
        evals={"other": other},
        learners=[ExtraTrees()],
    )
    [row] = [row for row in train(request).rows if row.chosen and row.dataset == "other"]
    assert row.total == other.problems.height
    assert set(other.choices) - set(data.choices)
    assert row.regret_at is not None
    assert {k: regret["gmean"] for k, regret in row.regret_at.items() if regret["gmean"] > goals[k]} == {}
    assert row.benchmarks_saved is not None
    assert row.benchmarks_saved > 0.4
    assert row.regret_shortlist is not None
    assert row.regret_shortlist["gmean"] < 1.005
