"""Whether two collections of the same problems agree within the noise that they store, on machines made up."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from autoheur.dataset.dataset import Dataset
from autoheur.dataset.parquet import read_parquet
from autoheur.fingerprint import Fingerprint
from autoheur.measure.collection import collect
from autoheur.measure.reference import Reference
from autoheur.measure.timers import Timer
from autoheur.types import Choice, Feature, Problem

PROBLEMS = 200


@pytest.fixture(scope="module")
def benchmark() -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "repeatability.py"
    specification = importlib.util.spec_from_file_location("repeatability", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


class Machine:
    """Runs choices in made-up times: with one per cent of noise, and ``slowed`` as a function of turns taken."""

    name = "made_up"
    raw_features: Sequence[Feature] = (Feature("n", integer=True),)

    def __init__(self, seed: int, slowed: Callable[[int], float]) -> None:
        self.random = Random(seed)
        self.slowed = slowed
        self.turns = 0

    def choices(self, problem: Problem | None = None) -> Sequence[Choice]:
        return (Choice("orig"), Choice("pad"))

    def benchmark(self, problem: Problem, device: str) -> Mapping[str, Callable[[], object]]:
        self.turns += 1
        own = Random(int(problem["n"]))
        means = {choice: math.exp(own.gauss(0, 1)) for choice in ("orig", "pad")}
        return {choice: lambda mean=mean: self.time(mean) for choice, mean in means.items()}  # type: ignore[misc]

    def time(self, mean: float) -> float:
        return mean * self.slowed(self.turns) * math.exp(self.random.gauss(0, 0.01))

    def problems(self, random: Random, device: Fingerprint) -> Iterator[Problem]:
        while True:
            yield {"n": random.randint(1, 10**9)}


@pytest.fixture
def measured(told: Timer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Dataset]:
    def measured(seed: int, slowed: Callable[[int], float]) -> Dataset:
        machine = Machine(seed, slowed)
        monkeypatch.setattr(Reference, "time", lambda _: machine.time(1.0))
        out = tmp_path / f"{seed}.parquet"
        collect(machine, out, problems=PROBLEMS, timer=told)
        return read_parquet(out)

    return measured


def test_on_a_quiet_machine_medians_agree_within_the_stored_noise(
    benchmark: Any, measured: Callable[..., Dataset]
) -> None:
    first, second = (measured(seed, lambda _turn: 1.0) for seed in (1, 2))
    comparison = benchmark.compare(first, second, deviations=2.0)
    assert comparison.problems == comparison.quiet == PROBLEMS
    assert comparison.agree >= 0.95
    assert comparison.same_winner == 1.0
    assert comparison.median_difference < 0.02


def test_what_comes_and_goes_within_a_batch_is_in_the_stored_noise(
    benchmark: Any, measured: Callable[..., Dataset]
) -> None:
    """Slower by four fifths, a third of the time, in stretches of a hundred turns; not the same ones both times."""
    first = measured(1, lambda turn: 1.8 if turn // 100 % 3 == 0 else 1.0)
    second = measured(2, lambda turn: 1.8 if turn // 100 % 3 == 1 else 1.0)
    comparison = benchmark.compare(first, second, deviations=2.0)
    assert comparison.agree >= 0.95
    assert comparison.quiet < PROBLEMS


def test_a_machine_that_is_another_one_the_second_time_does_not_agree_and_is_not_quiet(
    benchmark: Any, measured: Callable[..., Dataset]
) -> None:
    comparison = benchmark.compare(measured(1, lambda _: 1.0), measured(2, lambda _: 1.3), deviations=2.0)
    assert comparison.agree < 0.1
    assert comparison.quiet == 0
    assert comparison.same_winner >= 0.98
