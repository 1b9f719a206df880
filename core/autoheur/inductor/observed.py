"""What is known of a decision at compile time, and the files that the modes ``collect`` and ``shadow`` write.

The files are append-only, one per process, each row written at once, so that a kill loses nothing that was written.
Measurements are AutoHeuristic logs, which are accepted wherever a dataset is; comparisons are JSON lines.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from autoheur.dataset.autoheuristic_log.header import CHOICE, FEEDBACK
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.installed import home
from autoheur.types import Choice, Decision, Feature, Operand, Problem, Reason, Value

Mode = Literal["use", "collect", "shadow"]
"""``use``: decide. ``collect``: keep what Inductor measures. ``shadow``: decide, let Inductor measure, keep both."""


_UNASKED = Decision("", (), Reason.NO_HEURISTIC)


@attrs.define(eq=False)
class Record:
    """One decision at compile time. It fills up on its way from torch's question to torch's value.

    ``operands``, ``flags`` and ``offered`` (choices; ``None``: those that the operator enumerates) are what was asked;
    ``device`` is ``None`` where it is of a kind that autoheur cannot describe. ``compile_id`` is torch's, for example
    ``0/0``. ``problem`` holds the raw features; it is empty where no heuristic answers for the device, since none are
    needed then. ``microseconds`` is the time for features and decision. ``taken`` is what torch's graph got, and
    ``by`` who chose it: the heuristic, the operator's default choice (unsure under deterministic compilation) or
    Inductor. ``times`` (ms by choice) are what Inductor measured, empty where it took the answer from its cache or a
    rule; ``seconds`` is how long it took to choose. Both only in the modes ``collect`` and ``shadow``.
    """

    operator: str
    device: Fingerprint | None
    mode: Mode
    compile_id: str | None = None
    operands: Sequence[Operand] = attrs.field(default=(), repr=False)
    flags: Mapping[str, Value] = attrs.field(factory=dict, repr=False)
    offered: Sequence[str | Choice] | None = None
    problem: Problem = attrs.field(factory=dict)
    decision: Decision = _UNASKED
    microseconds: float = 0.0
    taken: str = ""
    by: Literal["heuristic", "default", "inductor"] = "inductor"
    times: Mapping[str, float] = attrs.field(factory=dict)
    seconds: float = 0.0

    @property
    def choice(self) -> str | None:
        """What the heuristic chose; ``None`` for unsure and for a shortlist."""
        return self.decision.choice

    @property
    def reason(self) -> Reason:
        return self.decision.reason

    @property
    def heuristic(self) -> str | None:
        return self.decision.heuristic

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as the compile trace gets it."""
        decision = self.decision
        return {
            "operator": self.operator,
            "problem": dict(self.problem),
            "choice": decision.choice,
            "shortlist": list(decision.shortlist),
            "reason": decision.reason.value,
            "confidence": decision.confidence if math.isfinite(decision.confidence) else None,
            "heuristic": decision.heuristic,
            "provenance": str(decision.provenance) if decision.provenance else None,
            "detail": decision.detail,
            "device": self.device.to_dict() if self.device else None,
            "mode": self.mode,
            "taken": self.taken,
            "by": self.by,
            "microseconds": round(self.microseconds, 1),
        }

    def line(self) -> str:
        """All of it as one line of a log."""
        decision = self.decision
        problem = " ".join(f"{name}={value}" for name, value in self.problem.items())
        answer = decision.choice or ("unsure" if decision.unsure else f"one of {', '.join(decision.shortlist)}")
        detail = f" ({decision.detail})" if decision.detail else ""
        return (
            f"{self.operator} [{problem}] -> {answer}: {decision.reason.value}{detail}; "
            f"heuristic {decision.heuristic or 'none'}; took {self.taken} by {self.by}; {self.microseconds:.0f} us"
        )


_lock = threading.Lock()


def measurements_folder() -> Path:
    """Where measurements go: one AutoHeuristic log per operator, device and process."""
    return home() / "collected"


def comparisons_folder() -> Path:
    """Where mode ``shadow`` writes its comparisons."""
    return home() / "shadow"


def add_measurement(record: Record, features: Sequence[Feature]) -> None:
    """Append the times of one problem to this process's log; ``features`` are the operator's raw ones.

    Raises:
        ValueError: the problem does not name the features, a value cannot stand in a log, or the device is unknown.
        OSError: the log cannot be written.
    """
    if record.device is None:
        raise ValueError("the device cannot be described")
    problem = record.problem
    if set(problem) != {feature.name for feature in features}:
        raise ValueError(f"the features {sorted(problem)} are not the operator's {[f.name for f in features]}")
    values = [str(problem[feature.name]) for feature in features]
    if any(re.search(r"[,\r\n]", text) for text in (*values, *record.times)):
        raise ValueError(f"a value or a choice with a comma or a line break: {values}, {list(record.times)}")
    path = measurements_folder() / f"{record.operator}-{_slug(record.device)}-{_process()}.txt"
    rows = "".join(f"{','.join([*values, choice])},{time_ms!r}\n" for choice, time_ms in record.times.items())
    with _lock:
        head = "" if path.exists() else _head(record.operator, record.device, features, list(record.times))
        _append(path, head + rows)


def _head(operator: str, device: Fingerprint, features: Sequence[Feature], choices: list[str]) -> str:
    metadata = {
        "shared_memory": device.shared_memory,
        "device_capa": [int(part) for part in device.capability.split(".")] if device.capability else [0, 0],
        "name": operator,
        "numerical_features": [feature.name for feature in features if feature.kind == "numerical"],
        "categorical_features": [feature.name for feature in features if feature.kind == "categorical"],
        "choices": choices,
        "device": device.to_dict(),
    }
    header = ",".join([*(feature.name for feature in features), CHOICE, FEEDBACK])
    return f"{json.dumps(metadata)}\n{header}\n"


def add_comparison(record: Record) -> None:
    """Append what a heuristic would have chosen beside what Inductor chose and measured.

    Raises:
        OSError: the file cannot be written.
    """
    row: dict[str, Any] = {
        "operator": record.operator,
        "heuristic": record.decision.heuristic,
        "device": record.device.label() if record.device else "unknown",
        "choice": record.decision.choice,
        "reason": record.decision.reason.value,
        "inductor": record.taken,
        "times_ms": dict(record.times),
        "inductor_ms": record.seconds * 1e3,
        "decision_ms": record.microseconds / 1e3,
        "problem": dict(record.problem),
    }
    with _lock:
        _append(comparisons_folder() / f"{_process()}.jsonl", json.dumps(row, allow_nan=False) + "\n")


def _append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)  # one write: rows of this process stay whole


def _slug(device: Fingerprint) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", device.label()).strip("-") or "device"


def _process() -> str:
    return process_name(os.getpid())


@functools.cache
def process_name(pid: int) -> str:
    """A name that no other process has had: process numbers are used again. By number, so that a fork gets its own."""
    return f"{time.strftime('%Y%m%dT%H%M%S')}-{pid}-{os.urandom(3).hex()}"
