"""Switching autoheur on and off.

A *session* is one request to be asked: ``enable`` opens the one that holds for the whole process, ``enabled`` opens one
that holds for the calling thread inside its block. The innermost open one of the thread is in effect, else the
process's. Torch is patched while any session is open.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, get_args

import attrs

from autoheur.errors import InputError
from autoheur.inductor import attachment

if TYPE_CHECKING:
    from autoheur.inductor.records import Record
    from autoheur.inductor.snapshot import Snapshot
    from autoheur.registry import Registry

Mode = Literal["use", "collect", "shadow"]
"""``use``: decide. ``collect``: keep what Inductor measures. ``shadow``: decide, let Inductor measure, keep both."""

TIME_BUDGET = 0.5
"""Seconds that one decision may take by default, features included: far more than any should, so that a busy machine
does not make a good plugin look slow."""

HISTORY = 10_000
"""How many decisions a session remembers."""


@attrs.define(eq=False)
class Session:
    """One request to be asked; ``registry`` ``None`` means the process's default registry.

    ``overruns`` counts, per operator, the decisions that took longer than ``time_budget`` seconds. ``warned`` are the
    topics that a warning was given about. ``snapshot`` is the
    state of plugins and artifacts that the latest compile began with.
    """

    mode: Mode
    registry: Registry | None
    time_budget: float
    is_open: bool = True
    records: deque[Record] = attrs.field(factory=lambda: deque(maxlen=HISTORY))
    overruns: dict[str, int] = attrs.field(factory=dict)
    warned: set[str] = attrs.field(factory=set)
    snapshot: Snapshot | None = None
    lock: threading.RLock = attrs.field(factory=threading.RLock)


_lock = threading.RLock()
_process: Session | None = None
_blocks: list[Session] = []
"""The open sessions of ``enabled`` blocks, of all threads."""
_stack: ContextVar[tuple[Session, ...]] = ContextVar("autoheur_sessions", default=())
_latest: Session | None = None
"""The session that was opened last, for those who ask what was decided after it was closed."""


def _open(mode: str, registry: Registry | None, time_budget: float) -> Session:
    global _latest
    if mode not in get_args(Mode):
        raise InputError(f"there is no mode {mode!r} (known: {', '.join(get_args(Mode))})")
    if not time_budget > 0:
        raise InputError(f"the time budget must be a positive number of seconds, not {time_budget!r}")
    _latest = Session(mode, registry, time_budget)  # type: ignore[arg-type]  # checked above
    return _latest


def enable(mode: str = "use", registry: Registry | None = None, time_budget: float = TIME_BUDGET) -> None:
    """Let Inductor ask autoheur in the whole process, until :func:`disable`.

    Enabling again replaces the earlier settings; one :func:`disable` undoes it. Torch is not imported.

    Raises:
        InputError: an unknown mode, or a time budget (seconds per decision) that is not positive.
    """
    global _process
    with _lock:
        session = _open(mode, registry, time_budget)
        if _process is not None:
            _process.is_open = False
        _process = session
        attachment.attach()


def disable() -> None:
    """Switch autoheur off everywhere in the process, blocks of :func:`enabled` of all threads included.

    Nothing of torch stays patched. Leaving those blocks later changes nothing. Without anything enabled: no effect.
    """
    global _process
    with _lock:
        for session in (*_blocks, *([_process] if _process else ())):
            session.is_open = False
        _blocks.clear()
        _process = None
        attachment.detach()


@contextlib.contextmanager
def enabled(mode: str = "use", registry: Registry | None = None, time_budget: float = TIME_BUDGET) -> Iterator[None]:
    """Let Inductor ask autoheur for what the calling thread compiles inside the block.

    Blocks nest: the innermost is in effect, and leaving one restores what was in effect around it, in whatever order
    they are left. Other threads are not affected.

    Raises:
        InputError: see :func:`enable`.
    """
    with _lock:
        session = _open(mode, registry, time_budget)
        _blocks.append(session)
        _stack.set((*_stack.get(), session))
        attachment.attach()
    try:
        yield
    finally:
        with _lock:
            session.is_open = False
            _stack.set(tuple(other for other in _stack.get() if other is not session))
            if session in _blocks:
                _blocks.remove(session)
            if not _blocks and _process is None:
                attachment.detach()


def active() -> Session | None:
    """The session in effect in the calling thread."""
    for session in reversed(_stack.get()):
        if session.is_open:
            return session
    return _process


def last_decisions() -> list[Record]:
    """The decisions made since autoheur was enabled last, oldest first; they can still be read after disabling.

    At most :data:`HISTORY` are kept. Inside an :func:`enabled` block: those of the session in effect.
    """
    session = active() or _latest
    return list(session.records) if session else []
