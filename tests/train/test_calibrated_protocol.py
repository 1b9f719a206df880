"""The protocol ``calibrated``: cross-fitting, the bound, robustness, what the data cannot support."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import attrs
import numpy as np
import polars as pl
import pytest

from autoheur.dataset.dataset import Dataset
from autoheur.dataset.files import read
from autoheur.errors import InputError
from autoheur.heuristic.artifact import from_json, to_json
from autoheur.heuristic.model import Input, Tree
from autoheur.learning import Examples, Forest, Learner
from autoheur.train import bounds as calibration
from autoheur.train.apply import apply
from autoheur.train.crossfit import cross_fit, folds
from autoheur.train.figures import Row
from autoheur.train.preference import Cost, prefer
from autoheur.train.protocols.calibrated import Calibrated, plan
from autoheur.train.protocols.contract import Data, Options, Outcome
from autoheur.train.training import TrainRequest, train
from autoheur.types import Feature
from autoheur_learners.distilled_tree import DistilledTree
from autoheur_learners.extra_trees import ExtraTrees
from autoheur_learners.regression_tree import RegressionTree
from autoheur_pad_mm.features import FEATURES


class _Memoriser:
    """Perfect on the problems fitted, so only cross-fitting can tell how it does on others.

    Its tree knows the times of each problem it was fitted to, in a corner of its own around the only input; elsewhere
    a choice's score is that input, or minus that.
    """

    name = "memoriser"
    description = "test"
    grid: Mapping[str, Sequence[Any]] = {}

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> Forest:
        known = dict(zip(examples.matrix[:, 0].tolist(), (-examples.times).tolist(), strict=True))
        low, high = math.floor(min(known)) - 600, math.ceil(max(known)) + 600
        places = [number + 0.5 for number in range(low, high)]
        leaves = [known.get(place, [place / 1000, -place / 1000]) for place in places]
        return Forest([Input("x")], [0.0, 0.0], [_staircase(places, leaves)], "vector", "float64", "difference")


def _staircase(places: Sequence[float], leaves: Sequence[Sequence[float]]) -> Tree:
    """A balanced tree over one input, with a leaf for each place; thresholds are halfway."""
    tree = Tree([], [], [], [], [])

    def add(first: int, last: int) -> int:
        node = len(tree.feature)
        leaf = first == last
        middle = (first + last) // 2
        tree.feature.append(-1 if leaf else 0)
        tree.threshold.append(0.0 if leaf else (places[middle] + places[middle + 1]) / 2)
        tree.value.append(list(leaves[first]) if leaf else [])
        tree.left.append(0)
        tree.right.append(0)
        if not leaf:
            tree.left[node] = add(first, middle)
            tree.right[node] = add(middle + 1, last)
        return node

    add(0, len(places) - 1)
    return tree


def problems(count: int, wrong: Callable[[int], bool], gap: float = 2.0) -> Examples:
    """``x`` from ``-count/2`` up; choice ``a`` is the quicker one for positive ``x``, but where ``wrong``."""
    x = np.arange(count, dtype=np.float64) - count / 2 + 0.5
    a_wins = (x > 0) != np.array([wrong(number) for number in range(count)])
    times = np.where(a_wins[:, None], [1.0, gap], [gap, 1.0])
    return Examples((Input("x"),), ("a", "b"), x[:, None], times, noise=np.full_like(times, 0.001))


def run(examples: Examples, learner: Learner | None = None, **options: Any) -> Outcome:
    half = len(examples) // 2
    data = Data(examples.take(np.arange(half)), examples.take(np.arange(half, len(examples))))
    return Calibrated().run(data, [(learner or _Memoriser(), {})], Options(**options), None)


def coverage(outcome: Outcome) -> float:
    rows = [row for row in outcome.rows if row.dataset in ("train", "val")]
    return sum(row.correct + row.wrong for row in rows) / sum(row.total for row in rows)


def total(outcome: Outcome, figure: Callable[[Row], int]) -> int:
    return sum(figure(row) for row in outcome.rows if row.dataset in ("train", "val"))


def test_rows_are_of_problems_that_the_models_had_not_seen() -> None:
    outcome = run(problems(400, wrong=lambda number: number in (180, 190, 210, 220)), max_wrong_rate=0.05)
    # A model that has seen a problem is never wrong; out of fold all four are found.
    assert total(outcome, lambda row: row.wrong) == 4
    assert coverage(outcome) == 1


def test_no_more_decisions_are_wrong_than_the_bound_allows() -> None:
    examples = problems(1000, wrong=lambda number: number % 10 == 0)
    for rate in (0.005, 0.01, 0.03):
        outcome = run(examples, max_wrong_rate=rate)
        allowed = calibration.allowed_wrong(1000, rate, 0.95)
        assert total(outcome, lambda row: row.wrong) == allowed == outcome.evidence["allowed_wrong"]
        assert calibration.upper_bound(allowed or 0, 1000, 0.95) <= rate


def test_an_arbitrary_outlier_costs_little_coverage() -> None:
    """The published rule loses everything to the most confident problem being wrong."""
    random = Random(3)
    noisy = {number for number in range(2000) if random.random() < 0.3 * (1 - abs(number - 1000) / 1000) ** 2}
    before = coverage(run(problems(2000, wrong=noisy.__contains__), max_wrong_rate=0.01))
    assert before > 0.3
    for outlier in (0, 1, 1999, 400, 1000):
        after = coverage(run(problems(2000, wrong=(noisy ^ {outlier}).__contains__), max_wrong_rate=0.01))
        assert after == pytest.approx(before, abs=0.02)


def test_an_outlier_in_real_measurements_costs_little_coverage(shared_data: Callable[[str], Path]) -> None:
    dataset = read(shared_data("pad_mm_a100_val.txt.gz"))
    raw = [feature for feature in FEATURES if not feature.derived]

    def trained(changed: Dataset) -> float:
        result = train(
            TrainRequest(
                operator="pad_mm",
                features=raw,
                train=[changed],
                learners=[ExtraTrees()],
                grid={"n_estimators": [10]},
                options=Options(max_wrong_rate=0.02),
            )
        )
        rows = [row for row in result.rows if row.dataset in ("train", "val")]
        return sum(row.total - row.unsure for row in rows) / sum(row.total for row in rows)

    before = trained(dataset)
    # All times of the first problem's slower choice become absurdly quick.
    first = dataset.rows.filter(pl.col("problem") == 0)
    slower = first.group_by("choice").agg(pl.median("time_ms")).sort("time_ms")["choice"][-1]
    odd = (pl.col("problem") == 0) & (pl.col("choice") == slower)
    changed = dataset.rows.with_columns(pl.when(odd).then(1e-4).otherwise(pl.col("time_ms")).alias("time_ms"))
    assert before > 0.5
    assert trained(attrs.evolve(dataset, rows=changed)) == pytest.approx(before, abs=0.03)


def test_practically_equal_choices_are_not_wrong_but_at_a_tolerance_of_one() -> None:
    examples = problems(1000, wrong=lambda number: number % 3 == 0, gap=1.03)
    assert coverage(run(examples, max_wrong_rate=0.01, tolerance=1.05)) == 1
    assert coverage(run(examples, max_wrong_rate=0.01, tolerance=1.0)) < 0.2


def test_problems_whose_noise_hides_the_answer_are_no_evidence() -> None:
    examples = problems(400, wrong=lambda number: False)
    noise = np.full((400, 2), 0.001)
    noise[:300] = 5.0
    outcome = run(attrs.evolve(examples, noise=noise), max_wrong_rate=0.05)
    assert outcome.evidence["problems"] == 100
    assert any("300 of 400 problems do not count" in note for note in outcome.notes)


def test_too_few_problems_for_what_is_asked_decide_nothing_and_say_what_is_needed() -> None:
    outcome = run(problems(200, wrong=lambda number: False), max_wrong_rate=0.001)
    assert coverage(outcome) == 0
    [note] = [note for note in outcome.notes if "2,995" in note]
    asked = float(note.split("--max-wrong-rate ")[1].split(",")[0])
    assert coverage(run(problems(200, wrong=lambda number: False), max_wrong_rate=asked)) == 1


def test_too_few_problems_for_the_default_get_the_bound_they_support_and_hear_of_it() -> None:
    outcome = run(problems(200, wrong=lambda number: number == 100))
    assert outcome.evidence["allowed_wrong"] == 1
    assert outcome.evidence["max_wrong_rate"] == pytest.approx(calibration.upper_bound(1, 200, 0.95))
    assert any("The bound is 2.35% instead" in note for note in outcome.notes)
    assert coverage(outcome) > 0.9


def test_a_handful_of_problems_decides_nothing() -> None:
    outcome = run(problems(20, wrong=lambda number: False))
    assert coverage(outcome) == 0
    assert any("decides nothing" in note for note in outcome.notes)


@pytest.mark.parametrize("count", [47, 100, 500, 3000, 4743, 8000, 100_000])
def test_the_default_always_leaves_room_for_one_wrong_decision(count: int) -> None:
    risk = plan(count, Options())
    assert risk.allowed is not None
    assert risk.allowed >= 1
    assert calibration.upper_bound(risk.allowed, count, 0.95) <= risk.rate + 1e-9
    assert (risk.rate == 0.001) == (count >= 4743)


def test_folds_hold_out_every_problem_once_and_repeated_ones_together() -> None:
    examples = problems(60, wrong=lambda number: False)
    twice = examples.take(np.concatenate([np.arange(60), np.arange(0, 60, 2)]))
    parts = folds(twice, seed=1)
    assert sorted(np.concatenate(parts).tolist()) == list(range(90))
    for part in parts:
        inside = set(twice.matrix[part, 0].tolist())
        outside = set(np.delete(twice.matrix[:, 0], part).tolist())
        assert not inside & outside


def test_problems_that_come_twice_are_evidence_once() -> None:
    examples = problems(400, wrong=lambda number: False)
    data = Data(examples, examples.take(np.arange(0, 400, 4)))
    outcome = Calibrated().run(data, [(_Memoriser(), {})], Options(max_wrong_rate=0.05), None)
    assert outcome.evidence["problems"] == 400


def test_one_problem_cannot_be_held_out() -> None:
    with pytest.raises(InputError, match="one problem"):
        folds(problems(1, wrong=lambda number: False), seed=1)


def test_cross_fitting_trains_on_everything_but_the_held_out_part() -> None:
    sizes = []

    class Recorder(_Memoriser):
        def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> Forest:
            sizes.append(len(examples))
            return super().fit(examples, parameters)

    examples = problems(1000, wrong=lambda number: False)
    cross_fit(examples, [(Recorder(), {})], folds(examples, seed=1))
    assert sorted(sizes) == [800] * 5 + [1000]


def test_of_about_equal_coverages_the_smallest_model_is_chosen_and_the_reason_given() -> None:
    candidates = [
        ("big", 0.900, Cost(5000, 300)),
        ("small", 0.885, Cost(64, 6)),
        ("tiny", 0.700, Cost(8, 3)),
        ("quick", 0.890, Cost(64, 5)),
    ]
    position, reason = prefer(candidates)
    assert position == 3
    assert reason is not None
    assert "quick" in reason
    assert "90.0%" in reason
    assert prefer(candidates[:1]) == (0, None)


def test_the_artifact_decides_as_the_rows_say(
    make_dataset: Callable[..., Dataset], features: Sequence[Feature]
) -> None:
    random = Random(5)
    rows = [
        (
            m,
            n,
            "x" if n % 2 else "y",
            choice,
            random.uniform(0.99, 1.01) * (1.0 if (choice == "pad") == (m > 30) else 2),
        )
        for m in range(1, 61)
        for n in range(1, 9)
        for choice in ("orig", "pad")
        for _ in range(3)
    ]
    dataset = make_dataset(rows)
    outside = make_dataset([(200, 3, "x", choice, 1.0 + (choice == "orig")) for choice in ("orig", "pad")], "far.txt")
    request = TrainRequest(
        operator="toy",
        features=features,
        train=[dataset],
        evals={"far": outside},
        learners=[ExtraTrees(), DistilledTree(), RegressionTree()],
        grid={"n_estimators": [10], "max_depth": [3], "max_leaf_nodes": [8]},
    )
    result = train(request)
    artifact = from_json(to_json(result.artifact))
    assert artifact.policy.guard
    assert artifact.provenance["calibration"]["folds"] == 10
    chosen = {row.dataset: row for row in result.rows if row.chosen}
    assert chosen["far"].unsure == chosen["far"].total == 1  # the guard
    assert chosen["test"].correct > 80
    judged = apply(artifact, outside).judge(artifact, "far", 1.05)
    assert attrs.evolve(judged, params={}) == attrs.evolve(chosen["far"], params={})
    again = train(request)
    assert to_json(again.artifact).split('"date"')[0] == to_json(result.artifact).split('"date"')[0]


def test_an_artifact_says_what_its_measurements_were_made_with(
    make_dataset: Callable[..., Dataset], features: Sequence[Feature]
) -> None:
    rows = [(m, 1, "x", c, 1.0 + (c == "pad") * m) for m in range(1, 99) for c in ("orig", "pad") for _ in "123"]
    sessions = [{"torch": "2.12.0", "threads": 2}, {"torch": "2.13.0", "triton": "3.4"}, {"torch": "2.12.0"}]
    dataset = attrs.evolve(make_dataset(rows), environment={"sessions": sessions})
    request = TrainRequest(operator="toy", features=features, train=[dataset], learners=[RegressionTree()])
    found = train(request).artifact.provenance["measured_with"]
    assert found == {"torch": ["2.12.0", "2.13.0"], "triton": ["3.4"]}


def test_a_feature_of_one_protocol_is_kept_from_the_others(
    make_dataset: Callable[..., Dataset], features: Sequence[Feature]
) -> None:
    rows = [
        (m, 1, "x", c, 1.0 + (c == "pad") * (m % 2) + (c == "orig") * (m % 2 == 0))
        for m in range(1, 99)
        for c in ("orig", "pad")
        for _ in "123"
    ]
    extra = Feature("odd", formula="m % 2", protocol="calibrated")

    def inputs(protocol: str) -> set[str | None]:
        result = train(
            TrainRequest(
                operator="toy",
                features=[*features, extra],
                train=[make_dataset(rows)],
                learners=[RegressionTree()],
                protocol=protocol,
            )
        )
        return {column.feature for column in result.artifact.model.inputs}

    assert "odd" in inputs("calibrated")
    assert "odd" not in inputs("autoheuristic")
