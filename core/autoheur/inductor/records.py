"""What is kept and told of decisions: records, counters, log lines, events in the compile trace, warnings."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

from autoheur.fingerprint import Fingerprint
from autoheur.types import Decision, Reason, Value

if TYPE_CHECKING:
    from autoheur.inductor.activation import Mode, Session

logger = logging.getLogger("autoheur.inductor")
"""``TORCH_LOGS="+autoheur"`` shows one line a decision."""


@attrs.frozen
class Record:
    """One decision at compile time.

    ``problem`` holds the raw features; it is empty where no heuristic answers for the device, since none are needed
    then. ``taken`` is what the graph got, and ``by`` who chose it: the heuristic, the operator's default choice (unsure
    under deterministic compilation) or Inductor. ``microseconds`` is the time for features and decision.
    ``compile_id`` is torch's, for example ``0/0``.
    """

    decision: Decision
    problem: Mapping[str, Value]
    device: Fingerprint
    mode: Mode
    taken: str
    by: Literal["heuristic", "default", "inductor"]
    microseconds: float
    compile_id: str | None

    @property
    def operator(self) -> str:
        return self.decision.operator

    @property
    def choice(self) -> str | None:
        """What the heuristic chose; ``None`` for unsure."""
        return self.decision.choice

    @property
    def reason(self) -> Reason:
        return self.decision.reason

    @property
    def heuristic(self) -> str | None:
        return self.decision.heuristic

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as the compile trace gets it."""
        return {
            "operator": self.operator,
            "problem": dict(self.problem),
            "choice": self.choice,
            "reason": self.reason.value,
            "confidence": self.decision.confidence if abs(self.decision.confidence) < float("inf") else None,
            "heuristic": self.heuristic,
            "provenance": str(self.decision.provenance) if self.decision.provenance else None,
            "detail": self.decision.detail,
            "device": self.device.to_dict(),
            "mode": self.mode,
            "taken": self.taken,
            "by": self.by,
            "microseconds": round(self.microseconds, 1),
        }


def publish(session: Session, record: Record) -> None:
    """Remember a decision, count it, log it and put it into the compile trace."""
    from torch._dynamo.utils import counters

    session.records.append(record)
    counters["autoheur"][f"{record.operator}.{record.choice or 'unsure'}"] += 1
    counters["autoheur"][f"reason.{record.reason.value}"] += 1
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("%s", _line(record))
    _trace(record)


def _line(record: Record) -> str:
    problem = " ".join(f"{name}={value}" for name, value in record.problem.items())
    detail = f" ({record.decision.detail})" if record.decision.detail else ""
    return (
        f"{record.operator} [{problem}] -> {record.choice or 'unsure'}: {record.reason.value}{detail}; "
        f"heuristic {record.heuristic or 'none'}; took {record.taken} by {record.by}; {record.microseconds:.0f} us"
    )


def _trace(record: Record) -> None:
    """An artifact event, as ``tlparse`` shows them; written only where a trace is being written."""
    from torch._logging._internal import trace_structured

    trace_structured(
        "artifact",
        metadata_fn=lambda: {"name": f"autoheur_{record.operator}", "encoding": "json"},
        payload_fn=record.to_dict,
    )


def warn_once(session: Session, topic: str, message: str) -> None:
    """Log a warning, the first time in a session that its topic comes up; later ones at debug level."""
    with session.lock:
        first = topic not in session.warned
        session.warned.add(topic)
    logger.log(logging.WARNING if first else logging.DEBUG, "%s", message)
