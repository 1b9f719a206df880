"""The published protocol, compared with an independent one that loops over problems."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeRegressor

from autoheur.dataset.dataset import Dataset
from autoheur.heuristic.model import Forest, Policy, Tree
from autoheur.learning import Examples
from autoheur.train.protocols.autoheuristic import AutoHeuristic, safe_threshold
from autoheur.train.protocols.contract import Data, Options
from autoheur.train.training import TrainRequest, train
from autoheur.types import Feature
from autoheur_learners.regression_tree import RegressionTree

Row = tuple[int, int, str, str, float]
MakeDataset = Callable[..., Dataset]
Rows = Callable[..., list[Row]]


class Slow:
    """The published method as its description has it, problem by problem in plain Python."""

    def __init__(self, rows: Sequence[Row]) -> None:
        groups: dict[tuple[int, int, str], dict[str, list[float]]] = {}
        for m, n, dtype, choice, time in rows:
            groups.setdefault((m, n, dtype), {}).setdefault(choice, []).append(time)
        self.problems: dict[tuple[int, int, str], dict[str, float]] = {}
        for key in sorted(groups):
            medians = {}
            for choice in sorted(groups[key]):
                times = groups[key][choice]
                if len(times) < 3 or math.inf in times:
                    continue
                if statistics.stdev(times) / statistics.mean(times) * 100 <= 5:
                    medians[choice] = statistics.median(times)
            if len(medians) >= 2:
                self.problems[key] = medians
        self.dtypes = list(dict.fromkeys(dtype for _, _, dtype in self.problems))
        self.squares = list(dict.fromkeys(m == n for m, n, _ in self.problems))
        self.choices = sorted({choice for medians in self.problems.values() for choice in medians})

    def encode(self, key: tuple[int, int, str], choice: str) -> list[float]:
        m, n, dtype = key
        row: list[float] = [m, n, m * n]
        row += [dtype == category for category in self.dtypes]
        row += [(m == n) == category for category in self.squares]
        return row + [choice == category for category in self.choices]

    def split(self) -> dict[str, list[tuple[int, int, str]]]:
        numbers = list(range(len(self.problems)))
        rest, test = train_test_split(numbers, test_size=0.2, random_state=42)
        train, val = train_test_split(rest, test_size=0.25, random_state=42)
        keys = list(self.problems)
        return {
            name: [keys[i] for i in sorted(part)] for name, part in (("train", train), ("val", val), ("test", test))
        }

    def fit(self, keys: Sequence[tuple[int, int, str]], depth: int, leaf: int) -> Any:
        rows, targets = [], []
        for key in keys:
            mean = statistics.fmean(self.problems[key].values())
            for choice, time in self.problems[key].items():
                rows.append(self.encode(key, choice))
                targets.append(mean / time)
        return DecisionTreeRegressor(random_state=42, max_depth=depth, min_samples_leaf=leaf).fit(rows, targets)

    def judge(self, model: Any, keys: Sequence[tuple[int, int, str]], threshold: float) -> dict[str, Any]:
        counts = {"correct": 0, "wrong": 0, "unsure": 0}
        speedups, ratios = [], []
        for key in keys:
            medians = self.problems[key]
            scores = model.predict([self.encode(key, choice) for choice in medians])
            best = list(medians)[int(np.argmax(scores))]
            top = sorted(scores, reverse=True)
            ratio = float(top[0] / top[1])
            winner = min(medians, key=lambda choice: medians[choice])
            if ratio <= threshold:
                counts["unsure"] += 1
            elif best == winner:
                counts["correct"] += 1
            else:
                counts["wrong"] += 1
                speedups.append(max(medians.values()) / min(medians.values()))
                ratios.append(ratio)
        return {**counts, "max_wrong_speedup": max(speedups, default=None), "ratios": ratios}


@pytest.mark.parametrize(("choices", "seed"), [(("orig", "pad"), 5), (("c", "a", "d", "b"), 6)])
def test_the_table_equals_that_of_the_slow_method(
    make_dataset: MakeDataset, random_rows: Rows, features: Sequence[Feature], choices: Sequence[str], seed: int
) -> None:
    rows = random_rows(seed, 150, choices)
    slow = Slow(rows)
    expected: list[tuple[Any, ...]] = []
    correct: list[int] = []
    for depth in (2, 4):
        for leaf in (1, 3):
            split = slow.split()
            model = slow.fit(split["train"], depth, leaf)
            threshold = max(slow.judge(model, split["val"], 0.99)["ratios"], default=math.nan)
            correct.append(slow.judge(model, split["val"], threshold)["correct"])
            for name, keys in split.items():
                judged = slow.judge(model, keys, threshold)
                expected.append(
                    (
                        depth, leaf, name, judged["correct"], judged["wrong"], judged["unsure"],
                        judged["max_wrong_speedup"], 0.0 if math.isnan(threshold) else threshold,
                    )
                )  # fmt: skip
    result = train(
        TrainRequest(
            operator="toy",
            features=features,
            train=[make_dataset(rows)],
            learners=[RegressionTree()],
            protocol="autoheuristic",
            grid={"max_depth": [2, 4], "min_samples_leaf": [1, 3]},
        )
    )
    found = [
        (
            *row.params.values(), row.dataset, row.correct, row.wrong, row.unsure,
            row.max_wrong_speedup, row.threshold,
        )
        for row in result.rows
    ]  # fmt: skip
    assert found == expected
    best = correct.index(max(correct))
    assert [row.chosen for row in result.rows] == [position // 3 == best for position in range(12)]
    assert result.artifact.policy == Policy(result.rows[3 * best].threshold, guard=False)
    totals = [sum(row[index] for row in expected) for index in (3, 4, 5)]
    assert min(totals) > 0, "the data must show correct, wrong and unsure decisions"


def test_the_safe_threshold_is_the_greatest_confidence_of_a_wrong_prediction() -> None:
    scores = np.array([[3.0, 1.0], [2.0, 1.0], [1.0, 1.5], [4.0, 1.0]])
    times = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [1.0, 2.0]])
    assert safe_threshold(scores, times, "ratio") == 2.0
    assert safe_threshold(scores, times, "difference") == 1.0


class Constant:
    """A learner whose model scores what its only parameter says, whatever the problem."""

    name = "constant"
    description = ""
    grid: Mapping[str, Sequence[Any]] = {"scores": ()}

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> Forest:
        return Forest([], list(parameters["scores"]), [Tree([-1], [0.0], [0], [0], [[0.0, 0.0]])], "vector")


def examples(times: Sequence[Sequence[float]]) -> Examples:
    return Examples((), ("a", "b"), np.empty((len(times), 0)), np.array(times))


def run(times: Sequence[Sequence[float]], *candidates: Sequence[float]) -> Any:
    tasks = [(Constant(), {"scores": scores}) for scores in candidates]
    return AutoHeuristic().run(Data(examples([[1, 2]]), examples(times)), tasks, Options(), None)


def test_where_nothing_on_val_is_wrong_every_problem_is_decided() -> None:
    outcome = run([[1, 2], [1, 3]], [1.0, 1.0])
    assert outcome.policy == Policy(0.0, guard=False)
    assert [(row.correct, row.unsure) for row in outcome.rows] == [(1, 0), (2, 0)]
    assert "every problem is decided" in outcome.notes[0]


def test_of_candidates_equally_often_correct_the_first_is_chosen() -> None:
    outcome = run([[1, 2], [1, 3]], [1.0, 2.0], [3.0, 2.0], [4.0, 2.0])
    assert outcome.parameters == {"scores": [3.0, 2.0]}
    assert [row.chosen for row in outcome.rows] == [False, False, True, True, False, False]


def test_one_wrong_prediction_on_val_silences_all_of_its_confidence() -> None:
    outcome = run([[1, 2], [2, 1]], [3.0, 2.0])
    assert outcome.policy.threshold == 1.5
    assert [(row.correct, row.wrong, row.unsure) for row in outcome.rows] == [(0, 0, 1), (0, 0, 2)]
