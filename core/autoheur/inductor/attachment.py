"""Attaching to Inductor: at once where it is loaded, else when it is first imported; and detaching without a trace."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType

logger = logging.getLogger("autoheur.inductor")

ENTRANCE = "torch._inductor.compile_fx"
"""Whatever compiles with Inductor imports this first, before any cache key is computed."""

_lock = threading.RLock()
_finder: _Finder | None = None
_wanted = False
_waiting: list[Callable[[], None]] = []
"""What else is to be called when Inductor is imported."""


def attach() -> None:
    """Have torch ask from now on. Does not import Inductor, which takes a second; never raises."""
    global _wanted
    with _lock:
        _wanted = True
        if ENTRANCE in sys.modules:
            _attach_now()
        else:
            _add_finder()


def when_imported(callback: Callable[[], None]) -> None:
    """Call back once Inductor is imported: at once where it is. What the callback raises is logged."""
    with _lock:
        _waiting.append(callback)
        if ENTRANCE in sys.modules:
            _call_waiting()
        else:
            _add_finder()


def detach() -> None:
    """Put everything in torch back as it was."""
    global _wanted
    with _lock:
        _wanted = False
        if not _waiting:
            _remove_finder()
        if "autoheur.inductor.patches" in sys.modules:
            from autoheur.inductor import patches

            patches.remove()


def _when_imported() -> None:
    with _lock:
        _remove_finder()
        if _wanted:
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


def _attach_now() -> None:
    try:
        importlib.import_module(ENTRANCE)  # waits where another thread is in the middle of importing it
        from autoheur.inductor import patches

        patches.install()
    except Exception as error:  # enabling, or an import of Inductor, must not fail because of us
        logger.warning("autoheur stays off: %s: %s", type(error).__name__, error)


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
