"""Measuring the choices of one problem."""

from __future__ import annotations

import gc
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from autoheur.errors import PluginError
from autoheur.measure.interleaving import Effort, Measurement
from autoheur.measure.journal import Entry
from autoheur.measure.timers import Function, Stopwatch, Timer


def around(mean: float, spread: float, seed: int = 0) -> Callable[[], float]:
    """A function that takes ``mean`` milliseconds, give or take a relative ``spread``."""
    random = Random(seed)
    return lambda: mean * math.exp(random.gauss(0, spread))


def script(*times: float | Exception) -> Callable[[], float]:
    """A function that takes these times, or raises, call by call."""
    steps: Iterator[float | Exception] = iter(times)

    def run() -> float:
        step = next(steps)
        if isinstance(step, Exception):
            raise step
        return step

    return run


def measure(
    choices: Sequence[str], functions: Mapping[str, Function], timer: Timer, effort: Effort, turns: int | None = None
) -> Entry:
    """Measure a problem on its own, in a hurry after so many ``turns``."""
    measurement = Measurement(choices, lambda: functions, timer, effort)
    for turn in itertools.count():
        if not measurement.wants_another_turn(hurry=turns is not None and turn >= turns):
            return Entry((), measurement.times, measurement.failures)
        measurement.turn()
    raise AssertionError


def test_few_repetitions_where_one_choice_is_clearly_ahead(told: Timer) -> None:
    functions = {"orig": around(1.0, 0.01, 1), "pad": around(1.5, 0.01, 2)}
    measured = measure(("orig", "pad"), functions, told, Effort(first=3, most=15))
    assert {choice: len(times) for choice, times in measured.times.items()} == {"orig": 3, "pad": 3}
    assert measured.winner == "orig"
    assert not measured.failures


def test_most_repetitions_where_choices_are_as_close_as_the_noise(told: Timer) -> None:
    functions = {"orig": around(1.0, 0.05, 1), "pad": around(1.001, 0.05, 2)}
    measured = measure(("orig", "pad"), functions, told, Effort(first=3, most=15))
    assert [len(times) for times in measured.times.values()] == [15, 15]


def test_repetitions_stop_as_soon_as_the_choices_are_told_apart(told: Timer) -> None:
    functions = {
        "orig": script(1.0, 1.3, 1.0, *[1.0] * 12),
        "pad": script(1.2, 1.2, 1.2, *[1.4] * 12),
    }
    measured = measure(("orig", "pad"), functions, told, Effort(first=3, most=15, separation=0.0))
    assert [len(times) for times in measured.times.values()] == [15, 15], "they overlap: 1.3 against 1.2"
    functions = {"orig": script(1.0, 1.1, 0.8, 1.0, 1.0, 1.0), "pad": script(1.2, 1.5, 1.3, 1.3, 1.3, 1.3)}
    measured = measure(("orig", "pad"), functions, told, Effort(first=3, most=6, separation=2.5))
    assert [len(times) for times in measured.times.values()] == [4, 4]


def test_only_choices_that_may_still_be_the_best_are_repeated(told: Timer) -> None:
    functions = {"a": around(1.0, 0.05, 1), "b": around(1.0, 0.05, 2), "hopeless": around(9.0, 0.05, 3)}
    measured = measure(("a", "b", "hopeless"), functions, told, Effort(first=3, most=10))
    assert {choice: len(times) for choice, times in measured.times.items()} == {"a": 10, "b": 10, "hopeless": 3}


def test_choices_take_turns_and_every_second_turn_is_in_reverse_order(told: Timer) -> None:
    order: list[str] = []

    def noted(choice: str) -> Callable[[], float]:
        def run() -> float:
            order.append(choice)
            return 1.0 + len(order)

        return run

    measure(("a", "b", "c"), {choice: noted(choice) for choice in "abc"}, told, Effort(first=3, most=3))
    assert "".join(order) == "abccbaabc"


def test_drift_hits_all_choices_alike(told: Timer) -> None:
    clock = iter(range(1000))
    functions = {choice: lambda: 1.0 + next(clock) / 100 for choice in ("orig", "pad")}
    measured = measure(("orig", "pad"), functions, told, Effort(first=8, most=8))
    orig, pad = (sum(measured.times[choice]) for choice in ("orig", "pad"))
    assert orig == pytest.approx(pad)


@pytest.mark.parametrize(("hurry_after", "turns"), [(0, 3), (2, 3), (4, 4)])
def test_in_a_hurry_a_problem_has_its_first_repetitions_and_no_more(told: Timer, hurry_after: int, turns: int) -> None:
    functions = {"orig": around(1.0, 0.05, 1), "pad": around(1.0, 0.05, 2)}
    measured = measure(("orig", "pad"), functions, told, Effort(first=3, most=15), turns=hurry_after)
    assert [len(times) for times in measured.times.values()] == [turns, turns]


def test_each_turn_has_operands_of_its_own(told: Timer) -> None:
    prepared: list[list[float]] = []

    def prepare() -> Mapping[str, Function]:
        operands = [1.0 + len(prepared)]
        prepared.append(operands)
        return {"orig": lambda: operands[0], "pad": lambda: operands[0]}

    measurement = Measurement(("orig", "pad"), prepare, told, Effort(first=3, most=3))
    while measurement.wants_another_turn(hurry=False):
        measurement.turn()
    assert measurement.times == {"orig": [1.0, 2.0, 3.0], "pad": [1.0, 2.0, 3.0]}
    assert len(prepared) == 3


@pytest.mark.parametrize("turns_before", [0, 4])
def test_where_operands_cannot_be_made_every_choice_has_failed(told: Timer, turns_before: int) -> None:
    """Also those that were measured before: what is left of them would win unopposed."""
    attempts = itertools.count()
    a, b = around(1.0, 0.05, 1), around(1.0, 0.05, 2)

    def prepare() -> Mapping[str, Function]:
        if next(attempts) >= turns_before:
            raise MemoryError("no room")
        return {"a": a, "b": b, "hopeless": lambda: 9.0}

    measurement = Measurement(("a", "b", "hopeless"), prepare, told, Effort())
    while measurement.wants_another_turn(hurry=False):
        measurement.turn()
    assert measurement.failures == dict.fromkeys(("a", "b", "hopeless"), "MemoryError: no room")
    assert set(itertools.chain(*measurement.times.values())) == {math.inf}


def test_an_operator_that_breaks_the_contract_is_no_failure_of_a_choice(told: Timer) -> None:
    def prepare() -> Mapping[str, Function]:
        raise PluginError("wrong")

    with pytest.raises(PluginError):
        Measurement(("a",), prepare, told, Effort()).turn()


@pytest.mark.parametrize(
    ("failing", "reason"),
    [
        (script(1.0, RuntimeError("CUDA out of memory.\nTried to allocate")), "RuntimeError: CUDA out of memory."),
        (script(1.0, math.nan), "timed as nan ms"),
        (script(0.0), "timed as 0.0 ms"),
        (script(math.inf), "timed as inf ms"),
        (script(-1.0), "timed as -1.0 ms"),
    ],
)
def test_a_choice_that_fails_is_recorded_as_failed_and_the_other_goes_on(
    told: Timer, failing: Callable[[], float], reason: str
) -> None:
    measured = measure(("orig", "pad"), {"orig": around(1.0, 0.01), "pad": failing}, told, Effort())
    assert measured.times["pad"] == [math.inf]
    assert measured.failures == {"pad": reason}
    assert len(measured.times["orig"]) == 3
    assert measured.winner == "orig"


def test_a_choice_that_cannot_be_timed_or_is_not_offered_has_failed() -> None:
    class Picky:
        @property
        def settings(self) -> dict[str, Any]:
            return {}

        def stopwatch(self) -> Stopwatch:
            def time_ms(function: Function) -> float:
                function()
                return 1.0

            return time_ms

    measured = measure(("a", "b", "c"), {"a": script(MemoryError()), "b": lambda: 1.0}, Picky(), Effort())
    assert measured.failures == {"a": "MemoryError", "c": "the operator does not offer it for this problem"}
    assert measured.times == {"a": [math.inf], "b": [1.0, 1.0, 1.0], "c": [math.inf]}
    assert list(measured.times) == ["a", "b", "c"]


def test_where_every_choice_fails_nothing_wins(told: Timer) -> None:
    measured = measure(("a", "b"), {}, told, Effort())
    assert measured.winner is None
    assert measured.times == {"a": [math.inf], "b": [math.inf]}


def test_interrupting_is_not_a_failure_of_the_choice(told: Timer) -> None:
    def interrupted() -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(("a",), {"a": interrupted}, told, Effort())
    assert gc.isenabled()


def test_the_garbage_collector_rests_while_measuring(told: Timer) -> None:
    resting: list[bool] = []

    def function() -> float:
        resting.append(not gc.isenabled())
        return 1.0

    measure(("a",), {"a": function}, told, Effort())
    assert resting == [True] * 3
    assert gc.isenabled()
