"""Reproduces the published pad_mm table for A100 and prints it with wall time and peak memory.

    python benchmarks/published_table.py TRAIN VAL

TRAIN and VAL are AutoHeuristic logs or datasets; by default those of ../shared/data. PyTorch's own trainer takes
429 s and 819 MB for the same table.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

START = time.perf_counter()

from autoheur_learners.regression_tree import RegressionTree  # noqa: E402
from autoheur_pad_mm.features import FEATURES  # noqa: E402

from autoheur.dataset.reading import read  # noqa: E402
from autoheur.train.training import TrainRequest, train  # noqa: E402

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def main(train_path: str, val_path: str) -> None:
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
    wall = time.perf_counter() - START
    print("depth leaf dataset  correct wrong unsure total max_wrong gmean_wrong threshold  chosen")
    for row in result.rows:
        wrong = [f"{figure:9.6f}" if figure is not None else f"{'':9}" for figure in (row.max_wrong_speedup, row.gmean_wrong_speedup)]
        print(
            f"{row.params['max_depth']:5} {row.params['min_samples_leaf']:4} {row.dataset:8} {row.correct:7} {row.wrong:5} "
            f"{row.unsure:6} {row.total:5} {wrong[0]}   {wrong[1]}  {row.threshold:.6f}  {'*' if row.chosen else ''}"
        )
    for note in result.notes:
        print(note)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{wall:.2f} s wall with imports, {peak:.0f} MB peak")


if __name__ == "__main__":
    given = sys.argv[1:] or [str(DATA / f"pad_mm_a100_{part}.txt.gz") for part in ("train", "val")]
    main(*given)
