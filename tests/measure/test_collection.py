"""Collecting."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from autoheur.dataset.dataset import Dataset
from autoheur.dataset.parquet import read_parquet
from autoheur.errors import AutoheurError, InputError, PluginError
from autoheur.fingerprint import Fingerprint
from autoheur.measure import collection, worker
from autoheur.measure import collector as session
from autoheur.measure.collection import collect
from autoheur.measure.collector import Progress
from autoheur.measure.engines import Event, Finished, InProcess, Started, Tell
from autoheur.measure.interleaving import Effort
from autoheur.measure.journal import Entry
from autoheur.measure.reference import Reference
from autoheur.measure.timers import Timer
from autoheur.measure.worker import Job, Measurable, Outcome, Shard, Worker
from autoheur.types import Choice, Feature, Problem


class ToyOperator:
    """Problems are one number and one category; each choice's function returns the time that it is to have taken."""

    name = "toy"
    raw_features: Sequence[Feature] = (Feature("m", integer=True), Feature("scale"), Feature("kind", "categorical"))

    def __init__(self) -> None:
        self.turns: list[int] = []

    @property
    def measured(self) -> list[int]:
        """The problems that had a turn, in the order of their first."""
        return list(dict.fromkeys(self.turns))

    def choices(self, problem: Problem | None = None) -> Sequence[Choice]:
        return (Choice("slow"), Choice("quick"))

    def benchmark(self, problem: Problem, device: str) -> Mapping[str, Callable[[], object]]:
        self.turns.append(int(problem["m"]))
        part = int(problem["m"]) / 1e12
        return {"slow": lambda: 2.0 + part, "quick": lambda: 1.0 + part}

    def problems(self, random: Random, device: Fingerprint) -> Iterator[Problem]:
        while True:
            yield {"m": random.randint(1, 10**9), "scale": random.random(), "kind": random.random() < 0.5}


@pytest.fixture
def toy() -> ToyOperator:
    return ToyOperator()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "d.parquet"


def numbers(dataset: Dataset) -> list[int]:
    values: list[int] = dataset.problems.get_column("m").to_list()
    return values


def times(dataset: Dataset, problem: int, choice: str) -> list[float]:
    number = dataset.choices.index(choice)
    rows = dataset.rows.filter((dataset.rows["problem"] == problem) & (dataset.rows["choice"] == number))
    values: list[float] = rows.get_column("time_ms").to_list()
    return values


def test_a_dataset_holds_every_repetition_the_device_and_the_environment(
    toy: ToyOperator, told: Timer, out: Path
) -> None:
    result = collect(toy, out, problems=5, seed=3, timer=told)
    dataset = read_parquet(out)
    assert (result.problems, result.measured, result.repetitions, result.failed) == (5, 5, 30, 0)
    assert result.wins == {"quick": 5}
    assert numbers(dataset) == toy.measured
    assert dataset.operator == "toy"
    assert dataset.choices == ("slow", "quick")
    assert dataset.device.kind == "cpu"
    assert [str(dtype) for dtype in dataset.problems.dtypes] == ["Int64", "Float64", "String"]
    assert toy.turns == toy.measured * 3
    assert times(dataset, 0, "quick") == [1.0 + numbers(dataset)[0] / 1e12] * 3
    described = dataset.environment["sessions"][0]
    assert described["torch"] == str(torch.__version__)
    assert described["seed"] == 3
    assert described["timer"] == {"timer": "told"}
    assert described["threads"] == torch.get_num_threads()
    assert dataset.environment["batches"][0]["problems"] == 5
    assert not list(out.parent.glob("*.journal"))


def test_the_same_seed_gives_the_same_problems(toy: ToyOperator, told: Timer, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        collect(toy, tmp_path / name, problems=4, seed=seed, timer=told)
    first, again, other = (numbers(read_parquet(tmp_path / name)) for name in "abc")
    assert first == again
    assert set(other).isdisjoint(first)


def test_resuming_a_finished_collection_measures_only_what_is_missing(
    toy: ToyOperator, told: Timer, tmp_path: Path
) -> None:
    collect(toy, tmp_path / "whole.parquet", problems=50, timer=told)
    whole = toy.measured
    toy.turns.clear()
    out = tmp_path / "d.parquet"
    for problems in (3, 30, 50, 50):
        result = collect(toy, out, problems=problems, resume=True, timer=told)
        assert result.problems == problems
    assert result.measured == 0
    assert toy.measured == whole, "in the same order"
    assert len(toy.turns) == 50 * 3, "each once"
    dataset = read_parquet(out)
    assert numbers(dataset) == whole
    assert len(dataset.rows) == 50 * 6
    assert [batch["session"] for batch in dataset.environment["batches"]] == [0, 1, 2]
    assert sum(batch["problems"] for batch in dataset.environment["batches"]) == 50
    assert len(dataset.environment["sessions"]) == 3


def test_resuming_with_another_seed_is_refused(toy: ToyOperator, told: Timer, out: Path) -> None:
    collect(toy, out, problems=2, seed=5, timer=told)
    with pytest.raises(InputError, match="started with seed 5, not 6"):
        collect(toy, out, problems=4, seed=6, resume=True, timer=told)
    assert collect(toy, out, problems=4, seed=5, resume=True, timer=told).problems == 4


def test_resuming_refuses_other_operators_features_and_devices(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(toy, out, problems=2, timer=told)
    before = out.read_bytes()
    other = ToyOperator()
    other.name = "other"
    with pytest.raises(InputError, match="measurements of 'toy', not of 'other'"):
        collect(other, out, problems=4, resume=True, timer=told)
    more = ToyOperator()
    more.raw_features = (*toy.raw_features, Feature("k", integer=True))
    with pytest.raises(InputError, match="features are not those"):
        collect(more, out, problems=4, resume=True, timer=told)
    monkeypatch.setattr("autoheur.fingerprint.cpu", lambda: Fingerprint("cpu", vendor="Acme", cores=1024))
    with pytest.raises(InputError, match="another device"):
        collect(toy, out, problems=4, resume=True, timer=told)
    assert out.read_bytes() == before
    assert not list(out.parent.glob("*.journal"))


def test_nothing_is_overwritten_unasked(toy: ToyOperator, told: Timer, out: Path) -> None:
    out.write_bytes(b"mine")
    with pytest.raises(InputError, match=r"d\.parquet exists: add --resume"):
        collect(toy, out, problems=2, timer=told)
    assert out.read_bytes() == b"mine"
    out.rename(out.with_name("d.parquet.journal"))
    with pytest.raises(InputError, match="interrupted collection: add --resume"):
        collect(toy, out, problems=2, timer=told)


@pytest.mark.parametrize(
    ("limits", "message"),
    [({}, "nothing says when to stop"), ({"problems": 0}, "at least 1"), ({"time_budget_s": 0.0}, "more than 0 s")],
)
def test_limits_must_make_sense(toy: ToyOperator, told: Timer, out: Path, limits: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        collect(toy, out, timer=told, **limits)
    assert not list(out.parent.iterdir())


def test_devices_must_be_there(toy: ToyOperator, told: Timer, out: Path) -> None:
    for device, message in (("toaster", "not one that torch knows"), ("cuda:99", "torch sees none")):
        with pytest.raises(InputError, match=message):
            collect(toy, out, device, problems=1, timer=told)


def test_a_time_budget_ends_a_collection_after_one_problem_at_least(
    toy: ToyOperator, told: Timer, out: Path, tmp_path: Path
) -> None:
    assert collect(toy, out, time_budget_s=1e-9, timer=told).measured == 1
    result = collect(toy, tmp_path / "e.parquet", time_budget_s=1.0, timer=told)
    assert result.measured > 20
    assert len(read_parquet(tmp_path / "e.parquet").problems) == result.measured


def test_problems_from_a_source_are_measured_once_each(toy: ToyOperator, told: Timer, out: Path) -> None:
    source: list[Problem] = [{"m": m, "scale": 0.5, "kind": "x"} for m in (4, 5, 4, 6)]
    seen: list[Progress] = []
    assert collect(toy, out, source=source, problems=2, timer=told).problems == 2
    result = collect(toy, out, source=source, resume=True, timer=told, progress=seen.append)
    assert toy.turns == [4, 5, 4, 5, 4, 5, 6, 6, 6]
    assert (result.problems, result.measured) == (3, 1)
    assert [(progress.problems, progress.goal) for progress in seen] == [(3, 3)]
    assert collect(toy, out, source=source, resume=True, timer=told).measured == 0


def test_what_a_dataset_cannot_take_the_place_of_is_refused_before_anything_is_measured(
    toy: ToyOperator, told: Timer, out: Path
) -> None:
    os.mkfifo(out)
    with pytest.raises(InputError, match="cannot write: not a regular file"):
        collect(toy, out, problems=1, timer=told, resume=True)
    assert not toy.turns
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def test_a_sampler_that_has_nothing_new_ends_the_collection(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(random: Random, device: Fingerprint) -> Iterator[Problem]:
        while True:
            yield {"m": random.randint(1, 3), "scale": 1, "kind": "x"}

    monkeypatch.setattr(toy, "problems", few)
    monkeypatch.setattr(collection, "MOST_REPEATS", 100)
    assert collect(toy, out, problems=10, timer=told).problems == 3


def test_progress_tells_the_wins_so_far(toy: ToyOperator, told: Timer, out: Path) -> None:
    seen: list[Progress] = []
    collect(toy, out, problems=3, timer=told, progress=seen.append)
    assert [(progress.problems, progress.goal, progress.wins["quick"]) for progress in seen] == [
        (1, 3, 1),
        (2, 3, 2),
        (3, 3, 3),
    ]


def failing(toy: ToyOperator, monkeypatch: pytest.MonkeyPatch, fail: Callable[[Problem], bool]) -> None:
    """Make the toy's choice ``quick`` run out of memory on some problems."""
    benchmark = toy.benchmark

    def out_of_memory() -> object:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 99 GiB")

    def changed(problem: Problem, device: str) -> Mapping[str, Callable[[], object]]:
        functions = dict(benchmark(problem, device))
        return {**functions, "quick": out_of_memory} if fail(problem) else functions

    monkeypatch.setattr(toy, "benchmark", changed)


def test_a_failing_choice_is_recorded_and_collection_goes_on(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(toy, monkeypatch, lambda problem: toy.measured.index(int(problem["m"])) == 1)
    result = collect(toy, out, problems=4, timer=told)
    dataset = read_parquet(out)
    assert (result.failed, dict(result.wins)) == (1, {"quick": 3, "slow": 1})
    assert times(dataset, 1, "quick") == [math.inf]
    assert len(times(dataset, 1, "slow")) == 3
    reason = "OutOfMemoryError: CUDA out of memory. Tried to allocate 99 GiB"
    assert dataset.environment["failures"] == [{"problem": 1, "choice": "quick", "reason": reason}]


def test_a_problem_that_cannot_be_built_has_failed_for_every_choice(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(problem: Problem, device: str) -> Mapping[str, Callable[[], object]]:
        raise torch.OutOfMemoryError("no room for the operands")

    monkeypatch.setattr(toy, "benchmark", too_large)
    result = collect(toy, out, problems=2, timer=told)
    assert (result.problems, result.failed, result.repetitions) == (2, 4, 0)
    assert read_parquet(out).rows.get_column("time_ms").to_list() == [math.inf] * 4


def test_an_operator_that_benchmarks_what_is_no_choice_is_broken(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy, "benchmark", lambda _problem, _device: {"fastest": lambda: 1.0})
    with pytest.raises(PluginError, match="'fastest', none of its choices"):
        collect(toy, out, problems=1, timer=told)


def test_a_sampler_whose_problems_lack_a_feature_is_broken(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy, "problems", lambda _random, _device: iter([{"m": 1.5, "scale": 1, "kind": "x"}]))
    with pytest.raises(PluginError, match=r"m must be a whole number, not 1\.5"):
        collect(toy, out, problems=1, timer=told)


def told_reference(monkeypatch: pytest.MonkeyPatch, *answers: float | Exception) -> None:
    """Let the reference kernel take these times, or fail."""
    steps = iter(answers)

    def answer(_reference: Reference) -> float:
        step = next(steps)
        if isinstance(step, Exception):
            raise step
        return step

    monkeypatch.setattr(Reference, "time", answer)


def test_batches_measured_on_a_noisy_machine_are_flagged(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MOST_PROBLEMS", 2)
    disturbed = [1.5, 1.6, 1.4, 1.5]
    batches = [[1.0, 1.01, 0.99, 1.0], disturbed, [1.0, 1.3, 1.0, 1.05], disturbed, [1.0, 1.0, 1.5, 1.0]]
    told_reference(monkeypatch, *itertools.chain(*batches))
    result = collect(toy, out, problems=9, timer=told)
    found = read_parquet(out).environment["batches"]
    assert [batch["reference_ms"] for batch in found] == batches
    assert [batch["quiet"] for batch in found] == [True, False, True, False, False]
    assert [batch["problems"] for batch in found] == [2, 2, 2, 2, 1]
    assert (result.batches, result.noisy_batches) == (5, 3)


def test_the_first_repetitions_take_half_of_a_batchs_time_and_close_choices_the_other(
    toy: ToyOperator, told: Timer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn takes a second, and the times are close."""
    noise = itertools.cycle([1.0, 1.1, 1.05])
    benchmark = toy.benchmark
    monkeypatch.setattr(worker, "time", SimpleNamespace(monotonic=lambda: float(len(toy.turns))))
    monkeypatch.setattr(
        toy, "benchmark", lambda problem, device: dict.fromkeys(benchmark(problem, device), lambda: next(noise))
    )
    keys = tuple((m, 0.5, "x") for m in range(1, 41))
    outcome = Worker(Job("toy", "cpu", Effort(first=3, most=15), told), toy, 1).measure(Shard(keys, 30.0))
    assert [entry.key for entry in outcome.entries] == list(keys[:5])
    assert outcome.rest == keys[5:]
    assert [len(entry.times["quick"]) for entry in outcome.entries] == [6] * 5
    assert len(outcome.reference_ms) == 1 + 6


class PatientEngine:
    """Four workers, of which one at a time takes all the time that it is given."""

    in_process = False
    workers = 4
    settings: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.now = 0.0
        self.shards: list[Shard] = []
        self.events: list[Event] = []

    def fingerprint(self, device: str) -> Fingerprint:
        return Fingerprint("cpu", cores=1)

    def start(self, job: Job, operator: Measurable, tell: Tell) -> None:
        self.events.append(Started("1", self.fingerprint("cpu"), {}))

    def wants(self) -> bool:
        return not self.events

    def submit(self, shard: Shard) -> None:
        entries = tuple(Entry(key, {"slow": [2.0], "quick": [1.0]}, {}) for key in shard.keys)
        self.shards.append(shard)
        self.events.append(Finished("1", shard, Outcome(entries, (1.0,), ())))
        self.now += shard.seconds

    @property
    def in_flight(self) -> int:
        return len(self.events)

    def wait(self) -> Event:
        return self.events.pop()

    def close(self) -> None:
        pass


def test_batches_last_longer_as_time_goes_by_and_are_smaller_near_the_goal(
    toy: ToyOperator, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = PatientEngine()
    for module in (collection, session):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: engine.now))
    collect(toy, out, problems=1000, engine=engine)
    assert [shard.seconds for shard in engine.shards[:7]] == [10.0, 10.0, 10.0, 15.0, 22.5, 33.75, 50.625]
    assert max(shard.seconds for shard in engine.shards) == 60.0
    sizes = [len(shard.keys) for shard in engine.shards]
    assert sizes == [250, 188, 141, 106, 79, 59, 45, 33, 25, 20, 20, 20, 14]


def test_the_end_of_a_time_budget_is_no_batch_of_its_own(
    toy: ToyOperator, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few problems would take their turns there, in a row."""
    engine = PatientEngine()
    for module in (collection, session):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: engine.now))
    collect(toy, out, time_budget_s=26.5, engine=engine)
    assert [shard.seconds for shard in engine.shards] == [10.0, 10.0, 6.5]
    collect(toy, out, time_budget_s=11.9, engine=engine, resume=True)
    assert [shard.seconds for shard in engine.shards[3:]] == [10.0]


CUDA_ERROR = "CUDA error: an illegal memory access was encountered"


def test_a_device_that_stops_working_ends_the_collection_and_its_culprit_is_not_tried_again(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MOST_PROBLEMS", 2)
    benchmark = toy.benchmark

    def broken_from_the_fourth_on(problem: Problem, device: str) -> Mapping[str, Callable[[], object]]:
        functions = benchmark(problem, device)
        if len(toy.measured) >= 4:
            raise RuntimeError(CUDA_ERROR)
        return functions

    monkeypatch.setattr(toy, "benchmark", broken_from_the_fourth_on)
    with monkeypatch.context() as patches:
        told_reference(patches, *[1.0] * 5, RuntimeError(CUDA_ERROR))
        with pytest.raises(AutoheurError, match=r"stopped working .*illegal memory access") as raised:
            collect(toy, out, problems=10, timer=told)
    first, second, third, culprit = toy.measured
    assert str(culprit) in str(raised.value)
    dataset = read_parquet(out)
    assert numbers(dataset) == [first, second, culprit], "the third lacks repetitions"
    assert times(dataset, 2, "slow") == times(dataset, 2, "quick") == [math.inf]
    monkeypatch.setattr(toy, "benchmark", benchmark)
    result = collect(toy, out, problems=10, resume=True, timer=told)
    assert result.measured == 7
    assert third in numbers(read_parquet(out))
    assert toy.turns.count(culprit) == 1


def test_a_device_found_broken_without_a_failing_choice_blames_no_problem(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_reference(monkeypatch, *[1.0] * 3, RuntimeError(CUDA_ERROR))
    with pytest.raises(AutoheurError, match=r"stopped working \(.*\); what was measured before is kept"):
        collect(toy, out, problems=10, timer=told)
    assert read_parquet(out).rows.get_column("time_ms").is_finite().all()
    assert len(read_parquet(out).problems) == 10


def test_an_interruption_keeps_what_had_its_first_repetitions(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = toy.benchmark

    def interrupted(problem: Problem, device: str) -> Mapping[str, Callable[[], object]]:
        if len(toy.turns) == 2 * 60 + 27:
            raise KeyboardInterrupt
        return benchmark(problem, device)

    with monkeypatch.context() as patches:
        patches.setattr(toy, "benchmark", interrupted)
        result = collect(toy, out, problems=60, timer=told)
    assert result.interrupted
    assert (result.problems, result.measured) == (27, 27)
    assert numbers(read_parquet(out)) == toy.measured[:27]
    assert not collect(toy, out, problems=60, resume=True, timer=told).interrupted
    assert numbers(read_parquet(out)) == toy.measured
    assert {toy.turns.count(number) for number in toy.measured[:27]} == {3}


def test_an_interruption_before_anything_was_measured_leaves_nothing_behind(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(problem: Problem, device: str) -> Mapping[str, Callable[[], object]]:
        raise KeyboardInterrupt

    monkeypatch.setattr(toy, "benchmark", interrupted)
    result = collect(toy, out, problems=60, timer=told)
    assert result.interrupted
    assert result.problems == 0
    assert not list(out.parent.iterdir())


def test_a_journal_left_by_a_kill_after_the_dataset_was_written_adds_nothing_twice(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patches:
        patches.setattr("autoheur.measure.journal.Journal.remove", lambda _journal: None)
        collect(toy, out, problems=5, timer=told)
    assert list(out.parent.glob("*.journal"))
    result = collect(toy, out, problems=8, resume=True, timer=told)
    dataset = read_parquet(out)
    assert (result.problems, result.measured) == (8, 3)
    assert len(dataset.problems) == 8
    assert len(dataset.rows) == 8 * 6
    assert sum(batch["problems"] for batch in dataset.environment["batches"]) == 8


def test_torchs_settings_are_pinned_while_measuring_and_restored(
    toy: ToyOperator, told: Timer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    seen: list[int] = []
    benchmark = toy.benchmark

    def noting(problem: Problem, device: str) -> Mapping[str, Callable[[], object]]:
        seen.append(torch.get_num_threads())
        torch.set_float32_matmul_precision("medium")
        return benchmark(problem, device)

    monkeypatch.setattr(toy, "benchmark", noting)
    collect(toy, out, problems=2, timer=told, engine=InProcess(threads + 1))
    assert seen == [threads + 1] * 6
    assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == (threads, precision)
    assert read_parquet(out).environment["sessions"][0]["threads"] == threads + 1


def test_shipped_operators_are_measured_for_real(tmp_path: Path) -> None:
    from autoheur import default_registry

    for name in ("pad_mm", "bmm", "addmm"):
        operator = default_registry().operator(name)
        small: list[Problem] = []
        for problem in operator.problems(Random(0), Fingerprint("cpu", cores=1)):
            if math.prod(int(problem[dim]) for dim in ("m", "k", "n", *("b" * (name == "bmm")))) < 200_000:
                small.append(problem)
            if len(small) == 3:
                break
        result = collect(operator, tmp_path / f"{name}.parquet", source=small, effort=Effort(most=4))
        dataset = read_parquet(tmp_path / f"{name}.parquet")
        assert (result.problems, result.failed, dataset.choices) == (3, 0, ("orig", "pad"))
        assert set(dataset.rows.group_by("problem", "choice").len().get_column("len")) <= {3, 4}
        values = dataset.rows.get_column("time_ms")
        assert values.is_between(0, 60_000, closed="none").all()
