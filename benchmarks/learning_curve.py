"""How much to measure: what a calibrated heuristic does on unseen problems, by the number of problems it learned from.

    python benchmarks/learning_curve.py pad_mm_a100_train.txt.gz pad_mm_a100_val.txt.gz --tolerance 1.1

Nested cross-validation: each fifth of the problems in turn is kept aside; of the others so many are drawn, and the
protocol ``calibrated`` (which cross-fits on those alone, and sets its threshold by them) makes a heuristic that is
judged on the fifth. The last row takes all. Figures are totals over the five fifths, means over the seeds with the
least and the greatest; ``per 1920`` puts them beside the published tables. ``unsure`` heuristics are those that decide
nothing, since the data they saw did not support it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import attrs
import numpy as np

from autoheur.dataset.combine import combine
from autoheur.dataset.files import read
from autoheur.learning import Examples, Learner
from autoheur.registry import default_registry
from autoheur.train.crossfit import score
from autoheur.train.examples import Encoding, Filter, select
from autoheur.train.figures import Row, judge
from autoheur.train.protocols.calibrated import Calibrated
from autoheur.train.protocols.contract import Data, Options
from autoheur.train.splits import Indices

PUBLISHED_TOTAL = 1920
WORSE = 1.1


@attrs.frozen
class Totals:
    """Figures over all fifths; ``allowed`` is the mean number of wrong decisions that calibrating allowed."""

    correct: int
    wrong: int
    worse: int
    total: int
    regret: float
    idle: int
    allowed: float


def nested(examples: Examples, learner: Learner, size: int | None, options: Options, seed: int) -> Totals:
    """Keep each fifth aside once; ``size`` problems of the others are learned from, or all."""
    order = np.random.RandomState(1000 + seed).permutation(len(examples))
    parameters = {name: values[0] for name, values in learner.grid.items()}
    rows: list[Row] = []
    worse: list[int] = []
    logs: list[float] = []
    allowed: list[int] = []
    for aside in np.array_split(order, 5):
        others: Indices = np.setdiff1d(order, aside, assume_unique=True)
        known = np.random.RandomState(seed).permutation(others)[:size]
        half = len(known) // 2
        data = Data(examples.take(known[:half]), examples.take(known[half:]))
        outcome = Calibrated().run(data, [(learner, parameters)], options, None)
        unseen = examples.take(aside)
        scores = score(outcome.forest, unseen, examples.choices)
        row, strict = (
            judge(
                scores,
                unseen.times,
                outcome.forest.statistic,
                outcome.policy.threshold,
                dataset="unseen",
                learner=learner.name,
                params=parameters,
                tolerance=tolerance,
                noise=unseen.noise,
            )
            for tolerance in (WORSE, 1.0)
        )
        rows.append(strict)
        worse.append(row.wrong_beyond_tolerance)
        logs.append((row.correct + row.wrong) * np.log(row.regret_gmean or 1.0))
        allowed.append(outcome.evidence["allowed_wrong"] or 0)
    decided = sum(row.correct + row.wrong for row in rows)
    return Totals(
        sum(row.correct for row in rows),
        sum(row.wrong for row in rows),
        sum(worse),
        len(examples),
        float(np.exp(sum(logs) / max(1, decided))),
        sum(row.correct + row.wrong == 0 for row in rows),
        float(np.mean(allowed)),
    )


def cell(values: Sequence[float], digits: int) -> str:
    low, mean, high = min(values), float(np.mean(values)), max(values)
    return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--learner", default=Calibrated.default_learner)
    parser.add_argument("--tolerance", type=float, default=1.05)
    parser.add_argument("--max-wrong-rate", type=float)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--sizes", type=int, nargs="*", default=[250, 500, 1000, 2000, 4000])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--min-count", type=int, default=1, help="measurements that a choice needs")
    parser.add_argument("--max-spread", type=float, default=float("inf"), help="greatest relative standard deviation")
    arguments = parser.parse_args()
    dataset = combine([read(path) for path in arguments.data])
    registry = default_registry()
    learner = registry.learner(arguments.learner)
    features = [f for f in registry.operator(dataset.operator).features if f.protocol in (None, Calibrated.name)]
    selection = select(dataset, features, Filter(arguments.min_count, arguments.max_spread))
    examples = Encoding.of([selection], features).examples(selection, arguments.tolerance)
    options = Options(arguments.max_wrong_rate, arguments.confidence, arguments.tolerance)
    print(
        "| problems | decided % | correct per 1920 | wrong per 1920 | slower than 1.1 x, per 1920 | regret | unsure |"
    )
    print("|---|---|---|---|---|---|---|")
    for size in [*(size for size in arguments.sizes if size < 0.8 * len(examples)), None]:
        found = [nested(examples, learner, size, options, seed) for seed in range(arguments.seeds)]
        scale = PUBLISHED_TOTAL / len(examples)
        cells = (
            f"{size or int(0.8 * len(examples)):,}",
            cell([100 * (t.correct + t.wrong) / t.total for t in found], 1),
            cell([scale * t.correct for t in found], 0),
            cell([scale * t.wrong for t in found], 2),
            cell([scale * t.worse for t in found], 2),
            cell([t.regret for t in found], 5),
            f"{sum(t.idle for t in found)} of {5 * len(found)}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
