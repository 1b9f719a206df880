"""The ceiling that noise sets: what could be decided by timing every problem twice on the device itself.

    python benchmarks/label_noise.py pad_mm_a100_train.txt.gz pad_mm_a100_val.txt.gz

Of three repetitions two predict the third one's winner, each third in turn; problems are decided from the clearest
gap down (over the two repetitions' spread, or as it is). The strict counting: every slower choice is wrong.
"""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
from numpy.typing import NDArray

from autoheur.dataset.combine import combine
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.files import read
from autoheur.train.bounds import threshold_for

REPETITIONS = 3
LEAST_SPREAD = 0.003


def repetitions(dataset: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of the times of the first two choices, for the problems with three repetitions of both: P x 3 each."""
    lists = dataset.rows.group_by("problem", "choice").agg("time_ms")
    complete = lists.filter(pl.col("time_ms").list.len() == REPETITIONS)
    first, second = (complete.filter(pl.col("choice") == choice) for choice in (0, 1))
    both = first.join(second, on="problem", suffix="_second")
    logs = [np.log(np.array(both[name].to_list(), np.float64)) for name in ("time_ms", "time_ms_second")]
    return logs[0], logs[1]


def main() -> None:
    first, second = repetitions(combine([read(path) for path in sys.argv[1:]]))
    gap = np.median(first, axis=1) - np.median(second, axis=1)
    apart = (first.min(axis=1) > second.max(axis=1)) | (first.max(axis=1) < second.min(axis=1))
    near = np.mean(np.abs(gap) < 0.01)
    print(f"{len(gap):,} problems: all repetitions on one side in {apart.mean():.1%}, medians within 1 % in {near:.1%}")
    print("| decided from | wrong allowed | decided % |\n|---|---|---|")
    for over_spread in (False, True):
        for allowed in (3, 4, 8):
            decided = []
            for third in range(REPETITIONS):
                known = [position for position in range(REPETITIONS) if position != third]
                seen = first[:, known].mean(axis=1) - second[:, known].mean(axis=1)
                spread = np.sqrt(first[:, known].var(axis=1) + second[:, known].var(axis=1) + LEAST_SPREAD**2)
                sure = np.abs(seen) / spread if over_spread else np.abs(seen)
                wrong = np.sign(seen) != np.sign(first[:, third] - second[:, third])
                decided.append(100 * float((sure > threshold_for(sure, wrong, allowed)).mean()))
            label = "gap over spread" if over_spread else "gap"
            print(f"| {label} | {allowed} | {np.mean(decided):.1f} ({min(decided):.1f} to {max(decided):.1f}) |")


if __name__ == "__main__":
    main()
