"""Sessions: requests to be asked, and which of them is in effect.

``autoheur.enable`` opens the one that holds for the whole process, ``autoheur.enabled`` opens one that holds for the
calling thread inside its block. The innermost open one of the thread is in effect, else the process's.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextvars import ContextVar
from typing import get_args

import attrs

from autoheur.errors import InputError
from autoheur.inductor.observed import Mode, Record
from autoheur.registry import Registry, default_registry

logger = logging.getLogger("autoheur.inductor")
"""``TORCH_LOGS="+autoheur"`` shows one line a decision."""

HISTORY = 10_000
"""How many decisions a session remembers."""


@attrs.define(eq=False)
class Session:
    """One request to be asked.

    ``given`` is the registry that the user handed in, if any. ``overruns`` counts, per operator, the decisions that
    took longer than ``time_budget`` seconds. ``warned`` are the topics that a warning was given about.
    """

    mode: Mode
    given: Registry | None
    time_budget: float
    is_open: bool = True
    records: deque[Record] = attrs.field(factory=lambda: deque(maxlen=HISTORY))
    overruns: dict[str, int] = attrs.field(factory=dict)
    warned: set[str] = attrs.field(factory=set)
    lock: threading.RLock = attrs.field(factory=threading.RLock)

    @property
    def registry(self) -> Registry:
        """The registry that was handed in, or the process's default one, which is built at first use."""
        return self.given or default_registry()

    def warn_once(self, topic: str, message: str) -> None:
        """Log a warning, the first time that its topic comes up; later ones at debug level."""
        with self.lock:
            first = topic not in self.warned
            self.warned.add(topic)
        logger.log(logging.WARNING if first else logging.DEBUG, "%s", message)


_lock = threading.RLock()
_process: Session | None = None
_blocks: list[Session] = []
"""The open sessions of ``enabled`` blocks, of all threads."""
_stack: ContextVar[tuple[Session, ...]] = ContextVar("autoheur_sessions", default=())
_latest: Session | None = None
"""The session that was opened last, for those who ask what was decided after it was closed."""


def _new(mode: str, registry: Registry | None, time_budget: float) -> Session:
    global _latest
    if mode not in get_args(Mode):
        raise InputError(f"there is no mode {mode!r} (known: {', '.join(get_args(Mode))})")
    if not time_budget > 0:
        raise InputError(f"the time budget must be a positive number of seconds, not {time_budget!r}")
    _latest = Session(mode, registry, time_budget)  # type: ignore[arg-type]  # checked above
    return _latest


def open_for_process(mode: str, registry: Registry | None, time_budget: float) -> None:
    """Open a session for the whole process; it replaces an earlier one.

    Raises:
        InputError: an unknown mode, or a time budget that is not positive.
    """
    global _process
    with _lock:
        session = _new(mode, registry, time_budget)
        if _process is not None:
            _process.is_open = False
        _process = session


def open_block(mode: str, registry: Registry | None, time_budget: float) -> Session:
    """Open a session for the calling thread; close it with :func:`close_block`.

    Raises:
        InputError: see :func:`open_for_process`.
    """
    with _lock:
        session = _new(mode, registry, time_budget)
        _blocks.append(session)
        _stack.set((*_stack.get(), session))
        return session


def close_block(session: Session) -> None:
    with _lock:
        session.is_open = False
        _stack.set(tuple(other for other in _stack.get() if other is not session))
        if session in _blocks:
            _blocks.remove(session)


def close_all() -> None:
    """Close the process's session and the blocks of all threads."""
    global _process
    with _lock:
        for session in all_open():
            session.is_open = False
        _blocks.clear()
        _process = None


def all_open() -> list[Session]:
    """The open sessions of the process and of all threads."""
    with _lock:
        return [*_blocks, *([_process] if _process else ())]


def active() -> Session | None:
    """The session in effect in the calling thread."""
    for session in reversed(_stack.get()):
        if session.is_open:
            return session
    return _process


def last_decisions() -> list[Record]:
    """The decisions made since autoheur was enabled last, oldest first; they can still be read after disabling.

    At most :data:`HISTORY` are kept. Inside an ``enabled`` block: those of the session in effect.
    """
    session = active() or _latest
    return list(session.records) if session else []
