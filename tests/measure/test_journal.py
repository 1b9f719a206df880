"""The journal of a collection."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint
from autoheur.measure.journal import Batch, Entry, Header, Journal
from autoheur.types import Feature

HEADER = Header("toy", (Feature("m", integer=True), Feature("kind", "categorical")), Fingerprint("cpu", cores=2))
BATCH = Batch(
    0,
    (
        Entry((7, 'a",\n"'), {"orig": [0.1, 0.30000000000000004], "pad": [math.inf]}, {"pad": "OutOfMemoryError: ü"}),
        Entry((8, "b"), {"orig": [1e-7], "pad": [2.5]}, {}),
    ),
    (1.25, 1.5),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "d.parquet.journal"


def test_what_was_written_is_read_back_exactly(path: Path) -> None:
    with Journal(path, HEADER) as journal:
        journal.start_session({"torch": "2.13"})
        journal.append(BATCH)
    with Journal(path, HEADER) as journal:
        assert journal.contents.header == HEADER
        assert journal.contents.sessions == ({"torch": "2.13"},)
        assert journal.contents.batches == (BATCH,)
        assert journal.read() == journal.contents
        assert journal.start_session({}) == 1


def test_a_kill_at_any_byte_loses_the_batch_in_flight_only(path: Path) -> None:
    with Journal(path, HEADER) as journal:
        journal.start_session({"torch": "2.13"})
        journal.append(BATCH)
        whole = path.stat().st_size
        journal.append(BATCH)
    data = path.read_bytes()
    for cut in range(whole, len(data)):
        path.write_bytes(data[:cut])
        with Journal(path, HEADER) as journal:
            assert journal.contents.batches == (BATCH,)
            journal.append(BATCH)
            assert journal.read().batches == (BATCH, BATCH)


def test_a_kill_while_the_first_line_is_written_leaves_a_journal_that_can_be_started(path: Path) -> None:
    path.write_bytes(b'{"autoheur_journal":1,"oper')
    with Journal(path, HEADER) as journal:
        assert journal.contents.batches == ()
    with Journal(path, HEADER) as journal:
        assert journal.contents.header == HEADER


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Header("bmm", HEADER.features, HEADER.device), "measurements of 'toy', not of 'bmm'"),
        (Header("toy", HEADER.features[:1], HEADER.device), "features are not those"),
        (Header("toy", HEADER.features, Fingerprint("cpu", cores=64)), "another device .*cores"),
        (Header("toy", HEADER.features, Fingerprint("cuda", "NVIDIA H200")), "another device"),
    ],
)
def test_another_collection_cannot_continue_a_journal(path: Path, other: Header, message: str) -> None:
    Journal(path, HEADER).close()
    with pytest.raises(InputError, match=message):
        Journal(path, other)
    Journal(path, HEADER).close()


def test_a_damaged_line_is_named(path: Path) -> None:
    with Journal(path, HEADER) as journal:
        journal.append(BATCH)
    path.write_bytes(path.read_bytes() + b'{"batch":{"session":0}}\n')
    with pytest.raises(InputError, match=r"d\.parquet\.journal:3: not a line"):
        Journal(path, HEADER)


def test_a_journal_of_another_version_is_not_guessed_at(path: Path) -> None:
    path.write_bytes(b'{"autoheur_journal":2}\n')
    with pytest.raises(InputError, match="version 2, this autoheur reads 1"):
        Journal(path, HEADER)


def test_two_processes_cannot_collect_into_one_journal(path: Path) -> None:
    pytest.importorskip("fcntl")
    with Journal(path, HEADER), pytest.raises(InputError, match="another process"):
        Journal(path, HEADER)
    Journal(path, HEADER).close()


def test_a_folder_that_is_not_there_is_the_users_to_repair(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write: No such file"):
        Journal(tmp_path / "missing" / "d.journal", HEADER)
