"""Switching autoheur on and off: sessions, and attaching to Inductor while any is open.

Where Inductor is loaded it is attached to at once, else when it is first imported; detaching leaves no trace.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

from autoheur.inductor import session as sessions
from autoheur.inductor.session import active, last_decisions
from autoheur.registry import Registry

__all__ = ["active", "disable", "enable", "enabled", "last_decisions", "when_imported"]

logger = logging.getLogger("autoheur.inductor")

TIME_BUDGET = 0.5
"""Seconds that one decision may take by default, features included: far more than any should, so that a busy machine
does not make a good plugin look slow."""

ENTRANCE = "torch._inductor.compile_fx"
"""Whatever compiles with Inductor imports this first, before any cache key is computed."""


def enable(mode: str = "use", registry: Registry | None = None, time_budget: float = TIME_BUDGET) -> None:
    """Let Inductor ask autoheur in the whole process, until :func:`disable`.

    Enabling again replaces the earlier settings; one :func:`disable` undoes it. Torch is not imported.

    Raises:
        InputError: an unknown mode, or a time budget (seconds per decision) that is not positive.
    """
    with _lock:
        sessions.open_for_process(mode, registry, time_budget)
        _attach()


def disable() -> None:
    """Switch autoheur off everywhere in the process, blocks of :func:`enabled` of all threads included.

    Nothing of torch stays patched. Leaving those blocks later changes nothing. Without anything enabled: no effect.
    """
    with _lock:
        sessions.close_all()
        _detach()


@contextlib.contextmanager
def enabled(mode: str = "use", registry: Registry | None = None, time_budget: float = TIME_BUDGET) -> Iterator[None]:
    """Let Inductor ask autoheur for what the calling thread compiles inside the block.

    Blocks nest: the innermost is in effect, and leaving one restores what was in effect around it, in whatever order
    they are left. Other threads are not affected.

    Raises:
        InputError: see :func:`enable`.
    """
    with _lock:
        session = sessions.open_block(mode, registry, time_budget)
        _attach()
    try:
        yield
    finally:
        with _lock:
            sessions.close_block(session)
            if not sessions.all_open():
                _detach()


_lock = threading.RLock()
_finder: _Finder | None = None
_waiting: list[Callable[[], None]] = []
"""What else is to be called when Inductor is imported."""


def when_imported(callback: Callable[[], None]) -> None:
    """Call back once Inductor is imported: at once where it is. What the callback raises is logged."""
    with _lock:
        _waiting.append(callback)
        if ENTRANCE in sys.modules:
            _call_waiting()
        else:
            _add_finder()


def _attach() -> None:
    """Have torch ask from now on. Does not import Inductor, which takes a second; never raises."""
    if ENTRANCE in sys.modules:
        _attach_now()
    else:
        _add_finder()


def _attach_now() -> None:
    try:
        importlib.import_module(ENTRANCE)  # waits where another thread is in the middle of importing it
        from autoheur.inductor import asking

        for registry in {session.registry for session in sessions.all_open()}:
            asking.attach(registry)
    except Exception as error:  # enabling, or an import of Inductor, must not fail because of us
        logger.warning("autoheur stays off: %s: %s", type(error).__name__, error)


def _detach() -> None:
    """Put everything in torch back as it was."""
    if not _waiting:
        _remove_finder()
    if "autoheur.inductor.asking" in sys.modules:
        from autoheur.inductor import torch_seams

        torch_seams.restore()


def _when_imported() -> None:
    with _lock:
        _remove_finder()
        if sessions.all_open():
            _attach_now()
        _call_waiting()


def _call_waiting() -> None:
    importlib.import_module(ENTRANCE)  # waits where another thread is in the middle of importing it
    while _waiting:
        callback = _waiting.pop(0)
        try:
            callback()
        except Exception as error:
            logger.warning("%s: %s", type(error).__name__, error)


def _add_finder() -> None:
    global _finder
    if _finder is None:
        _finder = _Finder(_when_imported)
        sys.meta_path.insert(0, _finder)


def _remove_finder() -> None:
    global _finder
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _finder = None


class _Finder(importlib.abc.MetaPathFinder):
    """Finds :data:`ENTRANCE` as Python would, and calls back after it was imported."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != ENTRANCE:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader, self.callback)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader, callback: Callable[[], None]) -> None:
        self.loader = loader
        self.callback = callback

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader  # the module is to look as if it had been imported without us
        module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.callback()
