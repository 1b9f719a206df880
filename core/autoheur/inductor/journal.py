"""Where the modes ``collect`` and ``shadow`` write: what Inductor measured, and what a heuristic would have chosen.

Both are append-only, one file per process, each row written at once, so that a kill loses nothing that was written.
Measurements are AutoHeuristic logs, which are accepted wherever a dataset is; comparisons are JSON lines.
"""

from __future__ import annotations

import functools
import json
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autoheur.dataset.autoheuristic_log.header import CHOICE, FEEDBACK
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.installed import home
from autoheur.inductor.asking import Answer, Question
from autoheur.inductor.measuring import Measurement
from autoheur.types import Feature, Problem

_lock = threading.Lock()


def measurements_folder() -> Path:
    """Where measurements go: one AutoHeuristic log per operator, device and process."""
    return home() / "collected"


def comparisons_folder() -> Path:
    """Where mode ``shadow`` writes its comparisons."""
    return home() / "shadow"


def add_measurement(
    question: Question, features: Sequence[Feature], problem: Problem, times: Mapping[str, float]
) -> None:
    """Append the times (ms, by choice) of one problem to this process's log.

    Raises:
        ValueError: the problem does not name the features, or a value cannot stand in a log.
        OSError: the log cannot be written.
    """
    if set(problem) != {feature.name for feature in features}:
        raise ValueError(f"the features {sorted(problem)} are not the operator's {[f.name for f in features]}")
    values = [str(problem[feature.name]) for feature in features]
    if any(re.search(r"[,\r\n]", value) for value in values):
        raise ValueError(f"a feature value with a comma or a line break: {values}")
    path = measurements_folder() / f"{question.operator}-{_slug(question.device)}-{_process()}.txt"
    rows = "".join(f"{','.join(values)},{choice},{milliseconds!r}\n" for choice, milliseconds in times.items())
    with _lock:
        head = "" if path.exists() else _head(question, features, list(times))
        _append(path, head + rows)


def _head(question: Question, features: Sequence[Feature], choices: list[str]) -> str:
    device = question.device
    metadata = {
        "shared_memory": device.shared_memory,
        "device_capa": [int(part) for part in device.capability.split(".")] if device.capability else [0, 0],
        "name": question.operator,
        "numerical_features": [feature.name for feature in features if feature.kind == "numerical"],
        "categorical_features": [feature.name for feature in features if feature.kind == "categorical"],
        "choices": choices,
        "device": device.to_dict(),
    }
    header = ",".join([*(feature.name for feature in features), CHOICE, FEEDBACK])
    return f"{json.dumps(metadata)}\n{header}\n"


def add_comparison(question: Question, answer: Answer, measurement: Measurement) -> None:
    """Append what a heuristic would have chosen beside what Inductor chose and measured.

    Raises:
        OSError: the file cannot be written.
    """
    decision = answer.decision
    row: dict[str, Any] = {
        "operator": question.operator,
        "heuristic": decision.heuristic,
        "device": question.device.label(),
        "choice": decision.choice,
        "reason": decision.reason.value,
        "inductor": "pad" if measurement.pads else "orig",
        "times_ms": measurement.times,
        "inductor_ms": measurement.seconds * 1e3,
        "decision_ms": answer.microseconds / 1e3,
        "problem": dict(answer.problem),
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
    return _name_process(os.getpid())


@functools.cache
def _name_process(pid: int) -> str:
    """A name that no other process has had: process numbers are used again. By number, so that a fork gets its own."""
    return f"{time.strftime('%Y%m%dT%H%M%S')}-{pid}-{os.urandom(3).hex()}"
