"""Ranks the kernels of matrix products that were measured elsewhere, and says what its shortlists save.

    python benchmarks/kernel_choice.py [TRAIN JUDGED]...

Trains on TRAIN without any plugin, from the problems' features and the numbers in the names of kernels, and judges all
measured kernels of JUDGED, those that training never saw included. Both are AutoHeuristic logs or datasets of one
device; by default mm on A100 and on H100 of the datasets that were published with PyTorch's AutoHeuristic
(github.com/AlnisM/autoheuristic-datasets), from ../shared/data.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from autoheur.codegen import generate
from autoheur.dataset import choice_table
from autoheur.dataset.files import read
from autoheur.heuristic.artifact import to_json
from autoheur.train.training import TrainRequest, train
from autoheur_learners.extra_trees import ExtraTrees

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
PAIRS = [str(DATA / f"{device}_{part}.txt.gz") for device in ("a100", "h100") for part in ("mm", "hf_train_mm")]


def main(trained_on: str, judged_on: str) -> None:
    data, judged = read(trained_on), read(judged_on)
    new = [choice for choice in judged.choices if choice not in data.choices]
    start = time.perf_counter()
    result = train(
        TrainRequest(
            operator=data.operator,
            features=(*data.features, *choice_table.features_of([data])),
            train=[data],
            evals={"judged": judged},
            learners=[ExtraTrees()],
        )
    )
    wall = time.perf_counter() - start
    [row] = [row for row in result.rows if row.chosen and row.dataset == "judged"]
    assert row.recall_at is not None
    assert row.regret_at is not None
    assert row.regret_shortlist is not None
    print(f"{Path(judged_on).name}, trained on {Path(trained_on).name}: {row.total} problems")
    print(f"  {len(judged.choices)} kernels, {len(new)} of them not in the training data")
    print("  top regret_gmean regret_max recall")
    for k, regret in row.regret_at.items():
        print(f"  {k:3} {regret['gmean']:12.6f} {regret['max']:10.4f} {row.recall_at[k]:6.3f}")
    print(f"  shortlist: {row.shortlist_mean:.2f} kernels on average, {row.benchmarks_saved:.1%} of benchmarks saved,")
    print(f"  regret {row.regret_shortlist['gmean']:.6f} on average, {row.regret_shortlist['max']:.4f} at most")
    size, code = len(to_json(result.artifact)), len(generate(result.artifact))
    print(f"  {wall:.1f} s wall; artifact {size / 1e6:.2f} MB, generated code {code / 1e6:.2f} MB")


if __name__ == "__main__":
    paths = sys.argv[1:] or PAIRS
    for number in range(0, len(paths), 2):
        main(*paths[number : number + 2])
