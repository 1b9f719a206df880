"""From datasets to an artifact, and judging it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from autoheur.codegen import compile_artifact
from autoheur.dataset.dataset import Dataset
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.artifact import Artifact, Precondition, Seen, from_json, to_json
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.heuristic.reference import evaluate
from autoheur.train.apply import apply
from autoheur.train.examples import UNFILTERED
from autoheur.train.training import TrainRequest, train, without_unused_inputs
from autoheur.types import Feature
from autoheur_learners.gradient_boosting import GradientBoosting
from autoheur_learners.regression_tree import RegressionTree

MakeDataset = Callable[..., Dataset]
LogRows = list[tuple[int, int, str, str, float]]
Rows = Callable[..., LogRows]
LEARNERS = (RegressionTree(), GradientBoosting())
SMALL = {"max_iter": [20], "max_leaf_nodes": [7], "max_depth": [5]}


@pytest.fixture
def dataset(make_dataset: MakeDataset, random_rows: Rows) -> Dataset:
    return make_dataset(random_rows(11, 120))


@pytest.fixture
def request_for(features: Sequence[Feature]) -> Callable[..., TrainRequest]:
    def make(*data: Dataset, learners: Sequence[Any] = (RegressionTree(),), **more: Any) -> TrainRequest:
        grid = {name: values for name, values in SMALL.items() if any(name in learner.grid for learner in learners)}
        return TrainRequest(
            **{"operator": "toy", "features": features, "train": data, "learners": learners, "grid": grid}
            | {"protocol": "autoheuristic"}
            | more
        )

    return make


Make = Callable[..., TrainRequest]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
@pytest.mark.parametrize("choices", [("orig", "pad"), ("a", "b", "c", "d")], ids=len)
def test_an_artifact_decides_like_the_model_as_json_and_as_code(
    make_dataset: MakeDataset, random_rows: Rows, request_for: Make, learner: Any, choices: Sequence[str]
) -> None:
    dataset = make_dataset([row for row in random_rows(12, 100, choices) if np.isfinite(row[-1])])
    artifact = train(request_for(dataset, learners=[learner])).artifact
    read = from_json(to_json(artifact))
    assert read == artifact
    compiled = compile_artifact(read)
    applied = apply(read, dataset, UNFILTERED)
    known, found = applied.selection, applied.shortlists(read)
    for position in range(len(known)):
        problem = {feature.name: known.columns[feature.name][position] for feature in read.raw_features}
        offered = [name for name, time in zip(known.choices, known.times[position], strict=True) if np.isfinite(time)]
        scores = np.where(np.isfinite(known.times[position]), compiled.scores(problem), np.nan)
        assert np.array_equal(scores, applied.scores[position], equal_nan=True)
        shortlist, _, confidence = compiled.shortlist(problem, offered)
        assert confidence == found.confidence[position]
        assert set(shortlist) == {known.choices[c] for c in np.flatnonzero(found.kept[position])}
    assert len(known) > 50


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
def test_evaluating_the_artifact_gives_the_rows_of_the_table(
    make_dataset: MakeDataset, random_rows: Rows, request_for: Make, learner: Any
) -> None:
    parts = [make_dataset(random_rows(seed, 80), f"{seed}.txt") for seed in (1, 2, 3)]
    result = train(request_for(parts[0], val=[parts[1]], test=[parts[2]], learners=[learner]))
    chosen = {row.dataset: row for row in result.rows if row.chosen}
    assert list(chosen) == ["train", "val", "test"]
    for name, part in zip(chosen, parts, strict=True):
        assert apply(result.artifact, part).judge(result.artifact, name, 1.05) == chosen[name]


def test_training_twice_gives_the_same_bytes_whatever_the_order_of_rows(
    make_dataset: MakeDataset, random_rows: Rows, request_for: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    rows = random_rows(4, 80)
    texts = []
    for ordered in (rows, rows[::-1]):
        artifact = train(request_for(make_dataset(ordered), learners=LEARNERS)).artifact
        texts.append(to_json(attrs.evolve(artifact, provenance=artifact.provenance | {"datasets": None})))
    assert texts[0] == texts[1]
    assert artifact.provenance["date"] == "1970-01-02T00:00:00Z"


def test_a_wrong_source_date_is_an_error(dataset: Dataset, request_for: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(InputError, match="SOURCE_DATE_EPOCH"):
        train(request_for(dataset))


def test_the_artifact_says_where_it_came_from(dataset: Dataset, request_for: Make, tmp_path: Path) -> None:
    artifact = train(request_for(dataset, precondition="m >= 1")).artifact
    assert artifact.name == "toy_cuda_sm_80"
    device = Fingerprint("cuda", capability="8.0", shared_memory=166912)
    assert artifact.precondition == Precondition(device, "m >= 1")
    provenance = artifact.provenance
    assert provenance["learner"] == "regression_tree"
    assert provenance["protocol"] == "autoheuristic"
    assert provenance["parameters"]["max_depth"] == 5
    assert "seed 42" in provenance["split"]
    described = provenance["datasets"]["train"][0]
    assert described["files"] == ["log.txt"]
    assert described["sha256"] == list(dataset.sha256)
    assert (described["rows"], described["problems"]) == (len(dataset.rows), len(dataset.problems))
    assert set(provenance["metrics"]) == {"train", "val", "test"}
    assert provenance["metrics"]["val"]["correct"] > 0
    assert str(tmp_path) not in to_json(artifact)


def test_only_features_that_the_model_reads_are_kept_and_all_raw_ones(
    make_dataset: MakeDataset, features: Sequence[Feature], request_for: Make
) -> None:
    # Only m matters, and it is one number among others.
    rows = [
        (m, n, "x", choice, time)
        for m in range(1, 11)
        for n in (3, 4)
        for choice, time in (("a", 1.0 if m < 6 else 9.0), ("b", 4.0))
        for _ in range(3)
    ]
    artifact = train(request_for(make_dataset(rows), features=[*features, Feature("n*n", formula="n * n")])).artifact
    assert [feature.name for feature in artifact.features] == ["dtype", "m", "n"]
    assert set(artifact.model.inputs) == {Input("m"), Input(choice="a")} or set(artifact.model.inputs) == {
        Input("m"), Input(choice="b")
    }  # fmt: skip


def test_seen_is_what_train_and_val_hold_and_not_the_test_set(
    make_dataset: MakeDataset, random_rows: Rows, request_for: Make
) -> None:
    train_set = make_dataset([(m, 2, "x", c, 1.0) for m in (3, 5) for c in "ab" for _ in range(3)], "a.txt")
    val = make_dataset([(m, 2, "y", c, 1.0) for m in (4, 8) for c in "ab" for _ in range(3)], "b.txt")
    test = make_dataset([(m, 9, "z", c, 1.0) for m in (1, 99) for c in "ab" for _ in range(3)], "c.txt")
    seen = train(request_for(train_set, val=[val], test=[test])).artifact.seen
    assert seen == {"dtype": Seen(categories=["x", "y"]), "m": Seen(3, 8), "n": Seen(2, 2)}


def test_several_learners_share_one_table_and_the_best_on_val_is_kept(dataset: Dataset, request_for: Make) -> None:
    result = train(request_for(dataset, learners=LEARNERS))
    best = max((row for row in result.rows if row.dataset == "val"), key=lambda row: row.correct)
    chosen = [row for row in result.rows if row.chosen]
    assert {row.learner for row in result.rows} == {"regression_tree", "gradient_boosting"}
    assert {(row.learner, *row.params.items()) for row in chosen} == {(best.learner, *best.params.items())}
    assert result.artifact.provenance["learner"] == best.learner


def test_further_datasets_are_judged_unfiltered(
    make_dataset: MakeDataset, random_rows: Rows, request_for: Make
) -> None:
    dataset = make_dataset(random_rows(5, 60))
    once = make_dataset([(m, 1, "new", c, t) for m in (1, 2) for c, t in (("orig", 1.0), ("pad", 2.0))], "once.txt")
    rows = train(request_for(dataset, evals={"once": once})).rows
    assert [row.total for row in rows if row.chosen and row.dataset == "once"] == [2]


def test_progress_names_every_candidate(dataset: Dataset, request_for: Make) -> None:
    reports: list[tuple[int, int, str]] = []
    train(request_for(dataset, progress=lambda *report: reports.append(report)))
    assert [report[:2] for report in reports] == [(done, 4) for done in (1, 2, 3, 4)]
    assert reports[0][2] == "regression_tree max_depth=5 min_samples_leaf=1"


def stump_artifact(**changes: Any) -> Artifact:
    """Prefers ``pad`` where m > 4, else ``orig``."""
    features = [Feature("m", integer=True), Feature("n", integer=True), Feature("dtype", "categorical")]
    tree = Tree([0, -1, -1], [4.0, 0.0, 0.0], [1, -1, -1], [2, -1, -1], [[], [2.0, 1.0], [1.0, 2.0]])
    model = Forest([Input("m")], [0.0, 0.0], [tree], "vector", "float64")
    artifact = Artifact("toy", "stump", features, ["orig", "pad"], model, Policy(1.0, guard=False))
    return attrs.evolve(artifact, **changes)


def test_problems_outside_precondition_or_guard_count_as_unsure(make_dataset: MakeDataset) -> None:
    rows = [(m, 1, dtype, c, t) for m in range(1, 9) for dtype in "xy" for c, t in (("orig", 1.0), ("pad", 2.0))]
    data = make_dataset(rows)

    def counts(**changes: Any) -> tuple[int, int, int]:
        artifact = stump_artifact(**changes)
        row = apply(artifact, data, UNFILTERED).judge(artifact, "data", 1.05)
        return row.correct, row.wrong, row.unsure

    assert counts() == (8, 8, 0)
    assert counts(precondition=Precondition(formula="m >= 4 and dtype == 'x'")) == (1, 4, 11)
    guarded = Policy(1.0, guard=True)
    seen = {"m": Seen(2.0, 5.0), "dtype": Seen(categories=["y", "z"])}
    assert counts(policy=guarded, seen=seen) == (3, 1, 12)
    assert counts(seen=seen) == (8, 8, 0)


def test_an_artifact_cannot_be_judged_on_what_it_does_not_know(make_dataset: MakeDataset) -> None:
    with pytest.raises(InputError, match=r"log\.txt: none of the artifact's choices \(orig, pad\); it has a, b"):
        apply(stump_artifact(), make_dataset([(1, 1, "x", c, 1.0) for c in "ab"]), UNFILTERED)
    with pytest.raises(InputError, match="measurements of 'toy', not of 'other'"):
        apply(stump_artifact(operator="other"), make_dataset([(1, 1, "x", "a", 1.0)]))


def test_unused_inputs_go_and_the_scores_stay() -> None:
    tree = Tree([2, -1, -1], [1.0, 0.0, 0.0], [1, -1, -1], [2, -1, -1], [[], [1.0], [2.0]])
    forest = Forest([Input("m"), Input("n"), Input("k")], [0.5], [tree], "row", "float64")
    small = without_unused_inputs(forest)
    assert small.inputs == [Input("k")]
    values = np.array([[9.0, 9.0, 0.0], [0.0, 0.0, 2.0]])
    assert evaluate(small, values[:, 2:]).tolist() == evaluate(forest, values).tolist() == [[1.5], [2.5]]


def test_whole_numbers_are_only_promised_where_all_data_has_them(
    make_dataset: MakeDataset, random_rows: Rows, request_for: Make
) -> None:
    dataset = make_dataset(random_rows(6, 60))
    fractions = make_dataset([(m, 1.5, "x", c, 1.0) for m in (1, 2) for c in ("orig", "pad")], "half.txt")
    artifact = train(request_for(dataset, evals={"half": fractions})).artifact
    assert {f.name: f.integer for f in artifact.raw_features} == {"dtype": False, "m": True, "n": False}


def flat(*choices: str, operator: str = "toy") -> LogRows:
    return [(m, 2, "x", choice, 1.0) for m in range(1, 9) for choice in choices for _ in range(3)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protocol": "magic"}, r"no protocol 'magic' \(there are: .*autoheuristic"),
        (
            {"grid": {"depth": [1]}},
            r"no parameter 'depth' \(parameters of regression_tree: max_depth, min_samples_leaf\)",
        ),
        ({"grid": {"max_depth": [0]}}, "max_depth must be a whole number of at least 1, or none, not 0"),
        ({"learners": []}, "no learner"),
        ({"train": []}, "no data"),
        ({"operator": "pad_mm"}, r"log\.txt: measurements of 'toy', not of 'pad_mm'"),
        ({"features": [Feature("depth")]}, r"log\.txt: no feature 'depth'"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    dataset: Dataset, request_for: Make, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        train(request_for(dataset, **change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_wrong_rate": 0.0}, "max wrong rate must be between 0 and 1"),
        ({"confidence": 1.0}, "confidence must be between 0 and 1"),
        ({"tolerance": 0.9}, "tolerance must be at least 1"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
)
def test_options_out_of_range_are_errors(
    dataset: Dataset, request_for: Make, options: dict[str, Any], message: str
) -> None:
    from autoheur.train.protocols.contract import Options

    with pytest.raises(InputError, match=message):
        train(request_for(dataset, options=Options(**options)))


def test_the_choices_of_validation_data_count_too(make_dataset: MakeDataset, request_for: Make) -> None:
    ours, other = make_dataset(flat("a", "b"), "ours.txt"), make_dataset(flat("a", "c"), "other.txt")
    result = train(request_for(ours, val=[other]))
    assert result.artifact.choices == ["a", "b", "c"]


def test_too_few_problems_for_a_split_are_an_error(make_dataset: MakeDataset, request_for: Make) -> None:
    rows = [row for row in flat("a", "b") if row[0] <= 2]
    with pytest.raises(InputError, match=r"2 problem\(s\) are too few for a random split"):
        train(request_for(make_dataset(rows)))


def test_names_of_the_parts_are_taken(dataset: Dataset, request_for: Make) -> None:
    with pytest.raises(InputError, match="cannot be called 'val'"):
        train(request_for(dataset, evals={"val": dataset}))


def test_rows_are_json(dataset: Dataset, request_for: Make) -> None:
    rows = [row.to_dict() for row in train(request_for(dataset)).rows]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
