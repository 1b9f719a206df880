"""The journal: what a collection has measured so far, safe against being killed at any moment.

JSON lines. The first describes the collection, each further one starts a session (a process that measures) or holds a
batch of measured problems. A line is written at once and flushed to the disk, so a kill loses the batch in flight; a
last line without its end is what the kill left of one, and is cut off on opening. Each process writes a journal of its
own.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import attrs

from autoheur import fingerprint
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint
from autoheur.measure.problems import Key
from autoheur.types import Feature

try:
    import fcntl
except ImportError:  # not on this platform: two processes on one journal go unnoticed
    fcntl = None  # type: ignore[assignment]

VERSION = 1


@attrs.frozen
class Header:
    """What a collection measures, and on what."""

    operator: str
    features: tuple[Feature, ...]
    device: Fingerprint

    def difference(self, other: Header) -> str | None:
        """Say why ``other`` cannot continue this collection, or return ``None``."""
        if self.operator != other.operator:
            return f"it holds measurements of {self.operator!r}, not of {other.operator!r}"
        ours, theirs = (
            [(feature.name, feature.kind, feature.integer) for feature in header.features] for header in (self, other)
        )
        if ours != theirs:
            return "its features are not those of the operator as it is now"
        mismatch = self.device.mismatch(other.device) or other.device.mismatch(self.device)
        if mismatch:
            return f"it was measured on another device ({self.device.label()}): {mismatch}"
        return None


@attrs.frozen
class Entry:
    """One measured problem; ``times`` in milliseconds, ``inf`` for a failed choice, of which ``failures`` say why."""

    key: Key
    times: dict[str, list[float]]
    failures: dict[str, str]

    @property
    def winner(self) -> str | None:
        """The choice with the smallest median; ``None`` where every choice failed."""
        medians = {choice: statistics.median(times) for choice, times in self.times.items()}
        best = min(medians, key=medians.__getitem__)
        return best if medians[best] < math.inf else None


@attrs.frozen
class Batch:
    """Problems measured together by one session, and the reference kernel's times before, along and after (ms)."""

    session: int
    entries: tuple[Entry, ...]
    reference_ms: tuple[float, ...]


@attrs.frozen
class Contents:
    """All that a journal holds. ``sessions`` describe the environments, in order."""

    header: Header
    sessions: tuple[dict[str, Any], ...]
    batches: tuple[Batch, ...]


class Journal:
    """An open journal, held against other processes until it is closed."""

    def __init__(self, path: Path, header: Header) -> None:
        """Open the journal at ``path``, or start one with ``header``.

        Raises:
            InputError: the folder cannot be written to, another process holds the journal, or it belongs to another
                collection.
        """
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise InputError(f"{path}: cannot write: {error.strerror}") from None
        try:
            self._lock()
            self.contents = self._recover(header)
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{self.path}: another process collects into it; wait, or choose another --out") from None

    def _recover(self, header: Header) -> Contents:
        data = self.path.read_bytes()
        complete = data.rfind(b"\n") + 1
        os.ftruncate(self._file, complete)
        if not complete:
            self._write({"autoheur_journal": VERSION, **_header_to_json(header)})
            _flush_folder(self.path.parent)
            return Contents(header, (), ())
        contents = parse(str(self.path), data[:complete])
        difference = contents.header.difference(header)
        if difference:
            raise InputError(f"{self.path}: {difference}; choose another --out")
        return contents

    def start_session(self, environment: dict[str, Any]) -> int:
        """Record the environment of the process that measures from here on; return the session's number."""
        self.contents = attrs.evolve(self.contents, sessions=(*self.contents.sessions, environment))
        self._write({"session": environment})
        return len(self.contents.sessions) - 1

    def append(self, batch: Batch) -> None:
        """Write a batch, and return when it is on the disk."""
        self._write({"batch": _batch_to_json(batch)})

    def read(self) -> Contents:
        """What the journal holds now."""
        data = self.path.read_bytes()
        return parse(str(self.path), data[: data.rfind(b"\n") + 1])

    def remove(self) -> None:
        """Delete the journal: what it held is kept elsewhere."""
        self.path.unlink()

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, record: dict[str, Any]) -> None:
        line = memoryview(json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n")
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError as error:
            raise InputError(f"{self.path}: cannot write: {error.strerror}") from None


def parse(source: str, data: bytes) -> Contents:
    """Read complete lines of a journal; ``source`` is its name in messages.

    Raises:
        InputError: a line is not what a journal holds.
    """
    header: Header | None = None
    sessions: list[dict[str, Any]] = []
    batches: list[Batch] = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            record = json.loads(line)
            if header is None:
                if record["autoheur_journal"] != VERSION:
                    raise ValueError(f"version {record['autoheur_journal']}, this autoheur reads {VERSION}")
                header = _header_from_json(record)
            elif "session" in record:
                sessions.append(record["session"])
            else:
                batches.append(_batch_from_json(record["batch"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{source}:{number}: not a line of a collection's journal ({error!r})") from None
    if header is None:
        raise InputError(f"{source}: the journal is empty")
    return Contents(header, tuple(sessions), tuple(batches))


def _header_to_json(header: Header) -> dict[str, Any]:
    features = [{"name": feature.name, "kind": feature.kind, "integer": feature.integer} for feature in header.features]
    return {
        "operator": header.operator,
        "features": features,
        "device": header.device.to_dict(),
    }


def _header_from_json(record: dict[str, Any]) -> Header:
    features = tuple(
        Feature(feature["name"], feature["kind"], integer=feature["integer"]) for feature in record["features"]
    )
    return Header(record["operator"], features, fingerprint.from_dict(record["device"]))


def _batch_to_json(batch: Batch) -> dict[str, Any]:
    # JSON has no infinity: a failed choice's time is null.
    entries = [
        {
            "problem": entry.key,
            "times_ms": {
                choice: [time if time < math.inf else None for time in times] for choice, times in entry.times.items()
            },
            "failures": entry.failures,
        }
        for entry in batch.entries
    ]
    return {"session": batch.session, "reference_ms": batch.reference_ms, "problems": entries}


def _batch_from_json(record: dict[str, Any]) -> Batch:
    entries = tuple(
        Entry(
            tuple(entry["problem"]),
            {choice: _from_nulls(times) for choice, times in entry["times_ms"].items()},
            entry["failures"],
        )
        for entry in record["problems"]
    )
    return Batch(record["session"], entries, tuple(map(float, record["reference_ms"])))


def _from_nulls(times: Sequence[float | None]) -> list[float]:
    return [math.inf if time is None else time for time in times]


def _flush_folder(folder: Path) -> None:
    """Make a new file's name durable; best effort, since some platforms cannot open folders."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
