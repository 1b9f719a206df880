"""How well measurements repeat: the same problems, collected twice on this machine.

    python benchmarks/repeatability.py [--operator pad_mm] [--problems 300] [--device cpu] [--seed 0]

Two collections agree on a problem when, for every choice, their medians lie no further apart than the noise that they
stored with them: so many standard deviations of the repetitions (default 2), both collections' taken together, as
training estimates them. Quiet problems are those during whose batches the reference kernel was, both times, as quick as
the quicker collection knows it. Also printed: how often both name the same winner, or their winners are a tie.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import attrs
import numpy as np
import polars as pl
from numpy.typing import NDArray

from autoheur import default_registry
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.parquet import read_parquet
from autoheur.measure.collection import collect
from autoheur.measure.reference import is_quiet, undisturbed
from autoheur.train.noise import spreads

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@attrs.frozen(eq=False)
class Measured:
    """P problems of C choices, in the order of their features: ``medians`` in milliseconds, ``inf`` where a choice
    failed, ``spreads`` as standard deviations of logarithms (both P x C), and the reference kernel's times (ms) during
    each problem's batch."""

    medians: Floats
    spreads: Floats
    references: list[list[float]]

    @classmethod
    def of(cls, dataset: Dataset) -> Measured:
        order = dataset.problems.with_row_index("").sort(dataset.problems.columns)[""].to_numpy()
        found = dataset.rows.group_by("problem", "choice").agg(pl.col("time_ms").median())
        medians = np.full((len(order), len(dataset.choices)), np.nan)
        medians[found["problem"].to_numpy(), found["choice"].to_numpy()] = found["time_ms"].to_numpy()
        batches = dataset.environment["batches"]
        references = [batch["reference_ms"] for batch in batches for _ in range(batch["problems"])]
        return cls(medians[order], spreads(dataset)[0][order], [references[problem] for problem in order])

    def quiet(self, undisturbed_ms: float) -> Mask:
        return np.array([is_quiet(times, undisturbed_ms) for times in self.references])

    @property
    def undisturbed_ms(self) -> float:
        return undisturbed([time_ms for times in self.references for time_ms in times])

    @property
    def speedups(self) -> Floats:
        """The logarithm of slowest over fastest choice, which is what a decision rests on (P)."""
        lowest, highest = self.medians.min(axis=1), self.medians.max(axis=1)
        speedups: Floats = np.log(highest / lowest)
        return speedups


@attrs.frozen
class Comparison:
    """What two collections of the same problems have in common; shares of problems."""

    problems: int
    agree: float
    quiet: int
    agree_when_quiet: float
    same_winner: float
    median_difference: float
    ratio_difference: float


def compare(first: Dataset, second: Dataset, deviations: float) -> Comparison:
    """Compare two collections of the same problems."""
    one, other = Measured.of(first), Measured.of(second)
    both_failed = np.isinf(one.medians) & np.isinf(other.medians)
    with np.errstate(invalid="ignore"):  # inf / inf
        apart = np.where(both_failed, 0.0, np.abs(np.log(one.medians / other.medians)))
        ratios = np.abs(one.speedups - other.speedups)
    within = both_failed | (apart <= deviations * np.hypot(one.spreads, other.spreads))
    agree: Mask = np.logical_and.reduce(within, axis=1)
    undisturbed_ms = min(one.undisturbed_ms, other.undisturbed_ms)
    quiet = one.quiet(undisturbed_ms) & other.quiet(undisturbed_ms)
    rows = np.arange(len(agree))
    winners = one.medians.argmin(axis=1), other.medians.argmin(axis=1)
    tie = np.ones(len(agree), bool)
    for measured in (one, other):
        gap = np.abs(np.log(measured.medians[rows, winners[0]] / measured.medians[rows, winners[1]]))
        tie &= gap <= deviations * np.hypot(*(measured.spreads[rows, winner] for winner in winners))
    return Comparison(
        problems=len(agree),
        agree=float(agree.mean()),
        quiet=int(quiet.sum()),
        agree_when_quiet=float(agree[quiet].mean()) if quiet.any() else float("nan"),
        same_winner=float(((winners[0] == winners[1]) | tie).mean()),
        median_difference=float(np.nanmedian(apart)),
        ratio_difference=float(np.nanmedian(ratios)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Collect the same problems twice and compare.")
    parser.add_argument("--operator", default="pad_mm")
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--deviations", type=float, default=2.0, help="how much of the noise medians may differ by")
    arguments = parser.parse_args()
    operator = default_registry().operator(arguments.operator)
    datasets = []
    with tempfile.TemporaryDirectory() as folder:
        for run in ("first", "second"):
            out = Path(folder) / f"{run}.parquet"
            result = collect(operator, out, arguments.device, problems=arguments.problems, seed=arguments.seed)
            spent = f"{result.repetitions} repetitions in {result.seconds:.0f} s"
            print(f"{run} collection: {result.problems} problems, {spent}")
            datasets.append(read_parquet(out))
    comparison = compare(datasets[0], datasets[1], arguments.deviations)
    print(f"medians agree within the stored noise: {comparison.agree:.1%} of {comparison.problems} problems")
    print(f"of those measured on a quiet machine:  {comparison.agree_when_quiet:.1%} of {comparison.quiet} problems")
    print(f"same winner, or a tie:                 {comparison.same_winner:.1%}")
    print(f"median difference of two medians:      {comparison.median_difference:.2%}")
    print(f"the same, of slowest over fastest:     {comparison.ratio_difference:.2%}")


if __name__ == "__main__":
    main()
