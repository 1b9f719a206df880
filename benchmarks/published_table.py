"""Reproduces the published pad_mm table for A100 and prints it with wall time and peak memory.

    python benchmarks/published_table.py [TRAIN VAL]

TRAIN and VAL are AutoHeuristic logs or datasets, by default those of ../shared/data. PyTorch's own trainer takes
429 s and 819 MB for the same table on a two-core machine.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from autoheur.train.figures import Row

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def main(train_path: str, val_path: str) -> None:
    start = time.perf_counter()
    from autoheur.dataset.files import read
    from autoheur.train.training import TrainRequest, train
    from autoheur_learners.regression_tree import RegressionTree
    from autoheur_pad_mm.features import FEATURES

    result = train(
        TrainRequest(
            operator="pad_mm",
            features=FEATURES,
            train=[read(train_path)],
            val=[read(val_path)],
            learners=[RegressionTree()],
            protocol="autoheuristic",
        )
    )
    wall = time.perf_counter() - start
    print("max_depth min_samples_leaf dataset correct wrong unsure total max_wrong gmean_wrong threshold")
    for row in result.rows:
        print(line(row))
    for note in result.notes:
        print(note)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{wall:.2f} s wall, imports included; {peak:.0f} MB peak")


def line(row: Row) -> str:
    """One row in the columns of the published table."""
    wrong = [f"{row.max_wrong_speedup:.6f}", f"{row.gmean_wrong_speedup:.6f}"] if row.wrong else ["", ""]
    return (
        f"{row.params['max_depth']:9} {row.params['min_samples_leaf']:16} {row.dataset:7} "
        f"{row.correct:7} {row.wrong:5} {row.unsure:6} {row.total:5} "
        f"{wrong[0]:>9} {wrong[1]:>11} {row.threshold:9.6f}{' *' if row.chosen else ''}"
    )


if __name__ == "__main__":
    main(*(sys.argv[1:] or [str(DATA / f"pad_mm_a100_{part}.txt.gz") for part in ("train", "val")]))
