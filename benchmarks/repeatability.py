"""How well measurements repeat: the same problems, collected twice on this machine.

    python benchmarks/repeatability.py [--operator pad_mm] [--problems 100] [--device cpu] [--seed 0]

Two collections agree on a problem when, for every choice, their medians lie no further apart than the noise that they
stored with them: so many standard deviations of the repetitions (default 2; both collections' taken together). Also
printed: how often both name the same winner, or the first one's winner is a tie with it.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs

from autoheur import default_registry
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.store import read_parquet
from autoheur.measure.collection import collect

Times = dict[tuple[int, str], list[float]]
"""(problem, choice) -> repetitions in milliseconds."""


@attrs.frozen
class Comparison:
    """What two collections of the same problems have in common; shares of problems.

    ``quiet`` problems were measured both times while the reference kernel's time was as usual.
    """

    problems: int
    agree: float
    quiet: int
    agree_when_quiet: float
    same_winner: float
    median_difference: float
    ratio_difference: float


def repetitions(dataset: Dataset) -> Times:
    """The repetitions of every choice on every problem."""
    times: Times = {}
    for problem, choice, time_ms in dataset.rows.iter_rows():
        times.setdefault((problem, dataset.choices[choice]), []).append(time_ms)
    return times


def quiet_problems(dataset: Dataset) -> list[bool]:
    """Whether each problem was measured in a quiet batch."""
    return [batch["quiet"] for batch in dataset.environment["batches"] for _ in range(batch["problems"])]


def spread(times: Sequence[float]) -> float:
    """The relative standard deviation of repetitions; infinite where there is only one."""
    return statistics.stdev(times) / statistics.fmean(times) if len(times) > 1 else math.inf


def difference(one: Sequence[float], other: Sequence[float]) -> float:
    """How far two medians lie apart, as a natural logarithm: 0.01 is one per cent. 0 where both failed."""
    medians = statistics.median(one), statistics.median(other)
    if math.inf in medians:
        return 0.0 if medians[0] == medians[1] else math.inf
    return abs(math.log(medians[0] / medians[1]))


def within_noise(one: Sequence[float], other: Sequence[float], deviations: float) -> bool:
    """Whether two medians lie no further apart than ``deviations`` of the repetitions' spreads, taken together."""
    apart = difference(one, other)
    return apart == 0 or apart <= deviations * math.hypot(spread(one), spread(other))


def speedup(times: Times, problem: int, choices: Sequence[str]) -> float:
    """The logarithm of slowest over fastest choice, which is what a decision rests on; 0 where one failed."""
    medians = [statistics.median(times[problem, choice]) for choice in choices]
    return 0.0 if math.inf in medians else math.log(max(medians) / min(medians))


def winner(times: Times, problem: int, choices: Sequence[str]) -> str:
    return min(choices, key=lambda choice: statistics.median(times[problem, choice]))


def compare(first: Dataset, second: Dataset, deviations: float) -> Comparison:
    """Compare two collections of the same problems in the same order."""
    one, other = repetitions(first), repetitions(second)
    problems = range(len(first.problems))
    agree = [
        all(within_noise(one[problem, choice], other[problem, choice], deviations) for choice in first.choices)
        for problem in problems
    ]
    ratios = [
        abs(speedup(one, problem, first.choices) - speedup(other, problem, first.choices)) for problem in problems
    ]
    same = []
    for problem in problems:
        winners = [winner(times, problem, first.choices) for times in (one, other)]
        first_winner, second_winner = (one[problem, choice] for choice in winners)
        same.append(winners[0] == winners[1] or within_noise(first_winner, second_winner, deviations))
    calm = zip(quiet_problems(first), quiet_problems(second), strict=True)
    quiet = [agreed for agreed, both in zip(agree, calm, strict=True) if all(both)]
    return Comparison(
        problems=len(problems),
        agree=statistics.fmean(agree),
        quiet=len(quiet),
        agree_when_quiet=statistics.fmean(quiet) if quiet else math.nan,
        same_winner=statistics.fmean(same),
        median_difference=statistics.median(difference(one[key], other[key]) for key in one),
        ratio_difference=statistics.median(ratios),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Collect the same problems twice and compare.")
    parser.add_argument("--operator", default="pad_mm")
    parser.add_argument("--problems", type=int, default=100)
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
