"""What features, learners, label weights and training settings contribute, out of fold.

    python benchmarks/ablation.py pad_mm_a100_train.txt.gz pad_mm_a100_val.txt.gz [--seeds 3]

Prints a Markdown table. Every row is cross-fitted afresh with each seed; figures are means, with the least and the
greatest. ``strict`` is the share of problems decided when calibrated for at most 0.1 % wrong with 95 % confidence
(every slower choice is wrong), ``practical`` the same when wrong is slower than 1.1 times the best. ``regret`` and
``worse`` are those of the 90 % of problems with the least risk: the geometric mean of time over the best's, and how
many per thousand problems are slower than 1.1 times.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from autoheur.dataset.combine import combine
from autoheur.dataset.files import read
from autoheur.heuristic.reference import shortlists
from autoheur.learning import Examples, Learner
from autoheur.train import noise
from autoheur.train.bounds import allowed_wrong, threshold_for
from autoheur.train.crossfit import cross_fit, folds
from autoheur.train.examples import UNFILTERED, Encoding, select
from autoheur.train.figures import best_choice
from autoheur.types import Feature
from autoheur_learners.decision_tree import DecisionTree
from autoheur_learners.distilled_tree import DistilledTree
from autoheur_learners.extra_trees import ExtraTrees
from autoheur_learners.gradient_boosting import GradientBoosting
from autoheur_learners.regression_tree import RegressionTree
from autoheur_pad_mm import derived
from autoheur_pad_mm.features import FEATURES

RATE, CONFIDENCE = 0.001, 0.95
PRACTICAL = 1.1
SHARE = 0.9

GROUPS: Mapping[str, Sequence[Feature]] = {
    "kind": derived.KIND,
    "alignment": derived.ALIGNMENT,
    "padded alignment": derived.PADDED_ALIGNMENT,
    "cost": derived.COST,
}

_MAT1_CHANGES, _MAT2_CHANGES = "m_padded_length + k_padded_length > 0", "k_padded_length + n_padded_length > 0"
_ACROSS, _ALONG = "(ceil(m / 256) * ceil(n / 128) / 108)", "(ceil(m / 128) * ceil(n / 128) / 108)"

REJECTED: Mapping[str, Sequence[Feature]] = {
    "layout": (
        Feature("mat1_leading", formula="max(mat1_stride_0, mat1_stride_1)"),
        Feature("mat2_leading", formula="max(mat2_stride_0, mat2_stride_1)"),
        Feature("mat1_relaid", "categorical", formula=f"mat1_stride_1 != 1 and {_MAT1_CHANGES}"),
        Feature("mat2_relaid", "categorical", formula=f"mat2_stride_1 != 1 and {_MAT2_CHANGES}"),
        Feature("mat1_innermost_padding", formula="m_padded_length if mat1_stride_1 != 1 else k_padded_length"),
        Feature("mat2_innermost_padding", formula="k_padded_length if mat2_stride_1 != 1 else n_padded_length"),
    ),
    "tiles and waves": (
        Feature("tiles", formula="ceil(m / 128) * ceil(n / 128)"),
        Feature("m_in_tile", formula="m % 128"),
        Feature("n_in_tile", formula="n % 128"),
        Feature("k_in_tile", formula="k % 64"),
        Feature("last_wave_256_128", formula=f"{_ACROSS} / ceil({_ACROSS})"),
        Feature("last_wave_128_128", formula=f"{_ALONG} / ceil({_ALONG})"),
    ),
    "sizes without logarithms": (
        Feature("m*n*k", formula="m * n * k"),
        Feature("m*k", formula="m * k"),
        Feature("k*n", formula="k * n"),
        Feature("m*n", formula="m * n"),
    ),
    "ratios of sizes": (
        Feature("m/n", formula="log2(m / n)"),
        Feature("k/n", formula="log2(k / n)"),
        Feature("k/m", formula="log2(k / m)"),
        Feature("smallest", formula="log2(min(min(m, k), n))"),
        Feature("smaller of m and n", formula="log2(min(m, n))"),
    ),
}
"""Features that were tried and do not earn their place."""


@attrs.frozen
class Figures:
    strict: float
    practical: float
    regret: float
    worse: float


def figures(examples: Examples, learner: Learner, parameters: Mapping[str, Any], seed: int) -> Figures:
    """Cross-fit for both aims and measure."""
    allowed = allowed_wrong(len(examples), RATE, CONFIDENCE) or 0
    offered = np.isfinite(examples.times)
    best = np.arange(len(examples.choices)) == best_choice(examples.times)[:, None]
    goods = {1.0: best, PRACTICAL: noise.good_enough(examples.times, examples.noise, PRACTICAL)}
    covered: list[float] = []
    for tolerance, good in goods.items():
        aimed = attrs.evolve(examples, tolerance=tolerance)
        [fit], _ = cross_fit(aimed, [(learner, parameters)], folds(aimed, seed))
        found = shortlists(fit.scores, offered, fit.forest.statistic, 0.0)
        threshold = threshold_for(found.threshold_needed(good), found.confidence, allowed)
        covered.append(float((found.confidence > threshold).mean()))
    surest = np.argsort(-found.confidence, kind="stable")[: int(SHARE * len(examples))]
    rows = np.arange(len(examples))
    wrong = ~good[rows, found.first]
    taken = examples.times[rows, found.first] / np.nanmin(examples.times, axis=1)
    return Figures(
        covered[0],
        covered[1],
        float(np.exp(np.log(taken[surest]).mean())),
        float(1000 * wrong[surest].sum() / len(examples)),
    )


def default(learner: Learner) -> dict[str, Any]:
    return {name: values[0] for name, values in learner.grid.items()}


Variant = tuple[Sequence[Feature], bool, Learner, Mapping[str, Any]]
"""Features, whether labels are weighted by their noise, learner and parameters."""


def variants() -> dict[str, Variant]:
    raw = [feature for feature in FEATURES if not feature.derived]
    ours = [feature for feature in FEATURES if feature.protocol in (None, "calibrated")]
    published = [feature for feature in FEATURES if feature.protocol in (None, "autoheuristic")]
    forest = ExtraTrees()
    usual = default(forest)
    found: dict[str, Variant] = {
        "extra_trees": (ours, True, forest, usual),
        "raw features only": (raw, True, forest, usual),
        "published features": (published, True, forest, usual),
        "published features too": (FEATURES, True, forest, usual),
    }
    for name, group in GROUPS.items():
        found[f"without {name}"] = ([feature for feature in ours if feature not in group], True, forest, usual)
    for name, group in REJECTED.items():
        found[f"with {name}"] = ([*ours, *group], True, forest, usual)
    found["labels without weights"] = (ours, False, forest, usual)
    for change in ({"n_estimators": 25}, {"n_estimators": 100}, {"max_leaf_nodes": 64}, {"max_leaf_nodes": 256}):
        label = ", ".join(f"{name}={value}" for name, value in change.items())
        found[f"extra_trees {label}"] = (ours, True, forest, {**usual, **change})
    tree = {"max_depth": 5, "min_samples_leaf": 10}
    found["regression_tree, published features"] = (published, True, RegressionTree(), tree)
    found["regression_tree"] = (ours, True, RegressionTree(), tree)
    for learner in (GradientBoosting(), DecisionTree(), DistilledTree()):
        found[learner.name] = (ours, True, learner, default(learner))
    return found


def cell(values: Sequence[float], digits: int, factor: float = 1.0) -> str:
    low, mean, high = (factor * value for value in (min(values), float(np.mean(values)), max(values)))
    return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="only rows whose label contains this")
    arguments = parser.parse_args()
    dataset = combine([read(path) for path in arguments.data])
    print(
        "| | strict % | practical % | regret of the surest 90 % | worse than 1.1 x, per 1000 |\n|---|---|---|---|---|"
    )
    for label, (features, weighted, learner, parameters) in variants().items():
        if arguments.only not in label:
            continue
        selection = select(dataset, features, UNFILTERED)
        examples = Encoding.of([selection], features).examples(selection, PRACTICAL)
        if weighted:
            examples = attrs.evolve(examples, weights=noise.weights(examples.times, examples.noise))
        found = [figures(examples, learner, parameters, seed) for seed in range(arguments.seeds)]
        cells = (
            cell([f.strict for f in found], 1, 100),
            cell([f.practical for f in found], 1, 100),
            cell([f.regret for f in found], 5),
            cell([f.worse for f in found], 2),
        )
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
