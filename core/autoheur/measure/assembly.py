"""Makes a dataset of a journal, and of what an earlier collection left in the same file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import polars as pl

from autoheur.dataset.combine import combine
from autoheur.dataset.dataset import PROBLEM_DTYPES, Dataset
from autoheur.dataset.parts import PARTS
from autoheur.dataset.summary import summarise
from autoheur.errors import InputError
from autoheur.measure.journal import Batch, Contents, Entry, Header
from autoheur.measure.problems import Key
from autoheur.measure.reference import is_quiet, undisturbed

MOST_FAILURES = 200
"""Reasons of failures kept in the environment; the failures themselves are all in the rows."""


def header_of(dataset: Dataset) -> Header:
    """The header of the collection that made a dataset."""
    return Header(dataset.operator, dataset.features, dataset.device)


def keys_of(dataset: Dataset) -> set[Key]:
    """The problems that a dataset holds."""
    return set(dataset.problems.rows())


def assemble(contents: Contents, choices: Sequence[str], previous: Dataset | None) -> Dataset:
    """The dataset of everything measured: ``previous`` first, then what the journal adds to it.

    ``choices`` are the operator's, in its order. A journal that was already assembled into ``previous`` adds nothing.

    Raises:
        InputError: neither holds a measured problem.
    """
    batches = _new_batches(contents.batches, keys_of(previous) if previous is not None else set())
    if not batches:
        if previous is None:
            raise InputError("nothing was measured")
        return previous
    added = _dataset(contents, batches, choices)
    if previous is None:
        return added
    together = combine([previous, added])
    if PARTS in previous.environment:
        return together
    return attrs.evolve(together, environment=_extend(previous.environment, len(previous.problems), added.environment))


def _new_batches(batches: Sequence[Batch], known: set[Key]) -> list[Batch]:
    """The batches without problems that are ``known`` already or recur."""
    new = []
    for batch in batches:
        entries = []
        for entry in batch.entries:
            if entry.key not in known:
                known.add(entry.key)
                entries.append(entry)
        if entries:
            new.append(attrs.evolve(batch, entries=tuple(entries)))
    return new


def _dataset(contents: Contents, batches: Sequence[Batch], choices: Sequence[str]) -> Dataset:
    header = contents.header
    entries = [entry for batch in batches for entry in batch.entries]
    numbers = {choice: number for number, choice in enumerate(choices)}
    problem_column: list[int] = []
    choice_column: list[int] = []
    time_column: list[float] = []
    for number, entry in enumerate(entries):
        for choice, times in entry.times.items():
            problem_column += [number] * len(times)
            choice_column += [numbers.setdefault(choice, len(numbers))] * len(times)
            time_column += times
    problems = pl.DataFrame(
        [
            pl.Series(feature.name, [entry.key[position] for entry in entries], _column_type(header, position))
            for position, feature in enumerate(header.features)
        ]
    )
    rows = pl.DataFrame(
        {"problem": problem_column, "choice": choice_column, "time_ms": time_column},
        schema={"problem": pl.UInt32, "choice": pl.UInt32, "time_ms": pl.Float64},
    )
    return Dataset(
        operator=header.operator,
        features=header.features,
        choices=tuple(numbers),
        device=header.device,
        metadata={},
        problems=problems,
        rows=rows,
        summary=summarise(rows, len(problems), len(numbers)),
        environment=_environment(contents.sessions, batches, entries),
    )


def _column_type(header: Header, position: int) -> pl.DataType | type[pl.DataType]:
    feature = header.features[position]
    return PROBLEM_DTYPES[feature.kind, feature.integer]


def _environment(
    sessions: Sequence[dict[str, Any]], batches: Sequence[Batch], entries: Sequence[Entry]
) -> dict[str, Any]:
    """What is known of the measuring: sessions, batches with their quietness, and why choices failed."""
    undisturbed_ms = undisturbed_references(batches)
    return {
        "sessions": list(sessions),
        "batches": [
            {
                "session": batch.session,
                "problems": len(batch.entries),
                "reference_ms": list(batch.reference_ms),
                "quiet": is_quiet(batch.reference_ms, undisturbed_ms[batch.session]),
            }
            for batch in batches
        ],
        "failures": [
            {"problem": number, "choice": choice, "reason": reason}
            for number, entry in enumerate(entries)
            for choice, reason in entry.failures.items()
        ][:MOST_FAILURES],
    }


def undisturbed_references(batches: Sequence[Batch]) -> dict[int, float]:
    """Session -> its reference time when nothing disturbs, in milliseconds."""
    times: dict[int, list[float]] = {}
    for batch in batches:
        times.setdefault(batch.session, []).extend(batch.reference_ms)
    return {session: undisturbed(each) for session, each in times.items()}


def _extend(before: dict[str, Any], problems: int, added: dict[str, Any]) -> dict[str, Any]:
    """Environments one after the other, sessions and problems numbered through; ``problems`` came before."""
    sessions = list(before.get("sessions", ()))
    batches = [{**batch, "session": batch["session"] + len(sessions)} for batch in added["batches"]]
    failures = [{**failure, "problem": failure["problem"] + problems} for failure in added["failures"]]
    return {
        **before,
        "sessions": [*sessions, *added["sessions"]],
        "batches": [*before.get("batches", ()), *batches],
        "failures": [*before.get("failures", ()), *failures][:MOST_FAILURES],
    }
