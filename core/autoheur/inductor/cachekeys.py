"""The compile that is going on, and the identity that its cache keys carry.

A graph that was compiled with decisions of autoheur must never be found by a compile that would decide differently. So
the first question of a compile, which is its cache key, fixes the session and the state of plugins and artifacts; all
its later questions and keys use the same.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from autoheur.inductor import activation as sessions
from autoheur.inductor.activation import Session
from autoheur.inductor.records import warn_once
from autoheur.inductor.snapshot import Snapshot, current_snapshot

if TYPE_CHECKING:
    from torch._guards import TracingContext


@attrs.frozen(eq=False)
class Compile:
    """One compile: what it decides with. ``identity`` enters its cache keys; ``None`` leaves them as they are."""

    session: Session
    snapshot: Snapshot
    deterministic: bool
    identity: str | None


_lock = threading.Lock()
_compiles: weakref.WeakKeyDictionary[TracingContext, Compile | None] = weakref.WeakKeyDictionary()


def current_compile() -> Compile | None:
    """The compile that the calling thread is in, or ``None`` where autoheur has no part in it. Never raises."""
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    if context is None:
        return _begin()
    with _lock:
        if context in _compiles:
            return _compiles[context]
    compile_ = _begin()
    with _lock:
        return _compiles.setdefault(context, compile_)


def _begin() -> Compile | None:
    session = sessions.active()
    if session is None:
        return None
    try:
        from torch._inductor import config

        snapshot = current_snapshot(session)
        deterministic = bool(config.deterministic)
        return Compile(session, snapshot, deterministic, snapshot.identity(session.mode, deterministic))
    except Exception as error:  # without an identity nothing may be decided
        warn_once(session, "identity", f"autoheur has no part in a compile: {type(error).__name__}: {error}")
        return None


def identify(original: Callable[..., None]) -> Callable[..., None]:
    """Wrap the constructor of a graph cache key so that the key carries the identity beside the user's own tag."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        compile_ = current_compile()
        if compile_ is not None and compile_.identity is not None:
            self.autoheur_identity = compile_.identity

    return __init__
