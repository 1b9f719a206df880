"""Replacing functions of torch while a session is open, and putting them back."""

from __future__ import annotations

import functools
import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

import attrs

from autoheur.inductor import cachekeys, measuring, padding, seams
from autoheur.inductor.seams import Seam

logger = logging.getLogger("autoheur.inductor")

Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]

_WRAPPERS: tuple[tuple[Seam, Wrapper], ...] = (
    (seams.SHOULD_PAD, padding.steer),
    (seams.CAN_PAD, padding.allow_deterministic),
    (seams.GRAPH_KEY, cachekeys.identify),
    (seams.BENCH_KEY, measuring.separate),
    (seams.MEASURED, measuring.overhear),
)


@attrs.frozen(eq=False)
class _Patch:
    owner: Any
    name: str
    original: Any
    replacement: Any

    @property
    def is_outermost(self) -> bool:
        return vars(self.owner).get(self.name) is self.replacement


_lock = threading.RLock()
_patches: dict[str, _Patch] = {}
_reported: set[str] = set()


def install() -> None:
    """Replace what has to be replaced; with a torch that is not supported, log one warning and replace nothing."""
    with _lock:
        if (reason := seams.unsupported()) is not None:
            if reason not in _reported:
                _reported.add(reason)
                logger.warning("autoheur stays off: %s", reason)
            return
        try:
            for seam, wrap in _WRAPPERS:
                if seam.name not in _patches and seams.look(seam).found:
                    _patches[seam.name] = _replace(seam, wrap)
        except BaseException:
            remove()  # all or nothing: a decision without its identity in the cache keys would outlive us
            raise


def _replace(seam: Seam, wrap: Wrapper) -> _Patch:
    original = seam.find()
    owner = sys.modules[seam.module]
    *path, name = seam.attribute.split(".")
    for part in path:
        owner = getattr(owner, part)
    replacement = functools.wraps(original)(wrap(original))
    setattr(owner, name, replacement)
    return _Patch(owner, name, original, replacement)


def remove() -> None:
    """Put the originals back. What somebody else has wrapped after us stays; ours inside it then only passes on."""
    with _lock:
        for name, patch in list(_patches.items()):
            if patch.is_outermost:
                setattr(patch.owner, patch.name, patch.original)
                del _patches[name]


def installed() -> list[str]:
    """The names of what is replaced now."""
    with _lock:
        return list(_patches)
