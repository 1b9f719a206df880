"""Real scikit-learn models: generated code gives what ``predict`` gives, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from autoheur.codegen import compile_artifact, generate
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.model import Forest, Input, Policy
from autoheur.types import Feature, Value

Floats = NDArray[np.float64]

DTYPES = ("torch.bfloat16", "torch.float16", "torch.float32")
CHOICES = ("orig", "pad")
FEATURES = [
    Feature("m", integer=True),
    Feature("density"),
    Feature("mat1_dtype", "categorical"),
    Feature("m*density", formula="m * density"),
    Feature("wide", "categorical", formula="m >= 700"),
    Feature("half_m", formula="m // 2"),
]
PROBLEM_INPUTS = (
    *(Input("m"), Input("density"), Input("m*density"), Input("half_m")),
    *(Input("mat1_dtype", dtype) for dtype in DTYPES),
    *(Input("wide", text) for text in ("False", "True")),
)
CHOICE_INPUTS = tuple(Input(choice=choice) for choice in CHOICES)

Problem = dict[str, Value]


def random_problems(count: int, seed: int) -> list[Problem]:
    random = np.random.default_rng(seed)
    return [
        {
            "m": int(random.integers(1, 5000)),
            "density": float(random.lognormal(0, 3)),
            "mat1_dtype": DTYPES[int(random.integers(3))],
        }
        for _ in range(count)
    ]


def vector(problem: Problem) -> list[float]:
    """A problem's row of the matrix, without choice indicators."""
    m, density = float(problem["m"]), float(problem["density"])
    dtype = [float(problem["mat1_dtype"] == name) for name in DTYPES]
    return [m, density, m * density, m // 2, *dtype, float(m < 700), float(m >= 700)]


def matrix(problems: list[Problem]) -> Floats:
    return np.array([vector(problem) for problem in problems])


def with_choice(rows: Floats, choice: int) -> Floats:
    indicators = np.zeros((len(rows), len(CHOICES)))
    indicators[:, choice] = 1
    return np.hstack([rows, indicators])


def targets(problems: list[Problem]) -> Floats:
    """A plausible speed-up for each choice, P x C."""
    rows, random = matrix(problems), np.random.default_rng(7)
    gain = np.sin(rows[:, 0] / 300) + np.log(rows[:, 1]) / 9 + rows[:, 4] * (rows[:, 0] > 900)
    return np.stack([1 - gain / 5, 1 + gain / 4], axis=1) + random.normal(0, 0.05, (len(rows), 2))


@attrs.frozen(eq=False)
class Fitted:
    """A fitted estimator, as data and as the function that it is: problems in, P x C scores out."""

    forest: Forest
    predict: Callable[[Floats], Floats]

    def artifact(self) -> Artifact:
        return Artifact("pad_mm", "test", FEATURES, list(CHOICES), self.forest, Policy(1.1, guard=False))


def fit_rows(estimator: Any, problems: list[Problem]) -> Callable[[Floats], Floats]:
    """Fit an estimator on one row per problem and choice."""
    rows, goals = matrix(problems), targets(problems)
    estimator.fit(np.vstack([with_choice(rows, c) for c in (0, 1)]), np.concatenate([goals[:, 0], goals[:, 1]]))
    return lambda asked: np.stack([estimator.predict(with_choice(asked, c)) for c in (0, 1)], axis=1)


def regression_tree(export: Any, problems: list[Problem], **parameters: int) -> Fitted:
    estimator = DecisionTreeRegressor(random_state=0, **parameters)
    predict = fit_rows(estimator, problems)
    return Fitted(Forest([*PROBLEM_INPUTS, *CHOICE_INPUTS], [0.0], [export.tree(estimator)]), predict)


def boosting(export: Any, problems: list[Problem], **parameters: int) -> Fitted:
    estimator = HistGradientBoostingRegressor(random_state=0, **parameters)
    with threadpool_limits(1):  # threads that wait for one another's cores take far longer
        predict = fit_rows(estimator, problems)
    return Fitted(export.boosted(estimator, [*PROBLEM_INPUTS, *CHOICE_INPUTS]), predict)


def multi_output_tree(export: Any, problems: list[Problem], **parameters: int) -> Fitted:
    estimator = DecisionTreeRegressor(random_state=0, **parameters)
    estimator.fit(matrix(problems), targets(problems))
    forest = Forest(list(PROBLEM_INPUTS), [0.0, 0.0], [export.tree(estimator)], "vector")
    return Fitted(forest, lambda asked: np.asarray(estimator.predict(asked)))


def classifier(export: Any, problems: list[Problem], **parameters: int) -> Fitted:
    estimator = DecisionTreeClassifier(random_state=0, **parameters)
    estimator.fit(matrix(problems), targets(problems).argmax(axis=1))
    forest = Forest(list(PROBLEM_INPUTS), [0.0, 0.0], [export.tree(estimator, normalise=True)], "vector")
    return Fitted(forest, lambda asked: np.asarray(estimator.predict_proba(asked)))


MODELS = {
    "regression tree": (regression_tree, {"max_depth": 6}, "else:"),
    "deep regression tree": (regression_tree, {}, "trees = ("),
    "boosting, small": (boosting, {"max_iter": 5, "max_leaf_nodes": 8}, "else:"),
    "boosting, large": (boosting, {"max_iter": 50}, "trees = ("),
    "multi-output tree": (multi_output_tree, {"max_depth": 5}, "else:"),
    "deep multi-output tree": (multi_output_tree, {}, "trees = ("),
    "classifier": (classifier, {"max_depth": 5}, "else:"),
}


@pytest.fixture(scope="module", params=list(MODELS))
def fitted(request: pytest.FixtureRequest, export: Any) -> Fitted:
    fit, parameters, form = MODELS[request.param]
    result = fit(export, random_problems(1500, seed=1), **parameters)
    assert form in generate(result.artifact()), "the model became the other form of code"
    return result


def boundary_problems(forest: Forest, values_around: Callable[[float], list[float]], limit: int) -> list[Problem]:
    """Training problems moved onto and next to thresholds of raw features, as many as ``limit`` thresholds give."""
    tests = [(f, t) for tree in forest.trees for f, t in zip(tree.feature, tree.threshold, strict=True) if f >= 0]
    thresholds = sorted({(name, t) for f, t in tests if (name := forest.inputs[f].feature) in ("m", "density")})
    training = random_problems(200, seed=1)
    moved: list[Problem] = []
    for position, (name, threshold) in enumerate(thresholds[:: max(1, len(thresholds) // limit)]):
        near = {int(threshold), int(threshold) + 1} if name == "m" else {d for d in values_around(threshold) if d > 0}
        for problem in training[position % 40 :: 40]:
            moved += [{**problem, name: value} for value in sorted(near)]
    return moved


def check(fitted: Fitted, problems: list[Problem]) -> None:
    scores = compile_artifact(fitted.artifact()).scores
    assert np.array([scores(problem) for problem in problems]).tolist() == fitted.predict(matrix(problems)).tolist()


def test_every_training_row_scores_as_predicted(fitted: Fitted) -> None:
    check(fitted, random_problems(1500, seed=1))


def test_random_rows_score_as_predicted(fitted: Fitted) -> None:
    check(fitted, random_problems(1000, seed=2))


def test_boundary_values_score_as_predicted(fitted: Fitted, values_around: Callable[[float], list[float]]) -> None:
    problems = boundary_problems(fitted.forest, values_around, limit=60)
    assert len(problems) > 100
    check(fitted, problems)


def test_float32_rounding_is_what_makes_the_boundary_rows_hard(
    export: Any, values_around: Callable[[float], list[float]]
) -> None:
    """The boundary test can fail: comparing float64 inputs with the raw thresholds gives other scores."""
    fitted = regression_tree(export, random_problems(1500, seed=1))
    problems = boundary_problems(fitted.forest, values_around, limit=400)
    naive = attrs.evolve(fitted.artifact(), model=attrs.evolve(fitted.forest, precision="float64"))
    scores = compile_artifact(naive).scores
    assert [list(scores(problem)) for problem in problems] != fitted.predict(matrix(problems)).tolist()
