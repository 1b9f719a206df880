"""The compile that is going on: what it began with, and the identity that its cache keys carry.

A graph that was compiled with decisions of autoheur must never be found by a compile that would decide differently. So
the first question of a compile, which is its cache key, fixes the session and the state of plugins and artifacts; all
its later questions and keys use the same.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import torch

from autoheur import fingerprint
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.artifact import to_json
from autoheur.inductor import session as sessions
from autoheur.inductor import torch_seams
from autoheur.inductor.observed import Mode
from autoheur.inductor.session import Session
from autoheur.precedence import Heuristic
from autoheur.registry import Registry
from autoheur.site import Site

logger = logging.getLogger("autoheur.inductor")

_DECIDING_HOOKS = {
    "autoheur_choice_features",
    "autoheur_choices",
    "autoheur_codegen",
    "autoheur_extract",
    "autoheur_features",
    "autoheur_sites",
}
"""A plugin without an operator that implements one of these can change decisions."""


@attrs.frozen(eq=False)
class Snapshot:
    """Plugins and artifacts as they were at one moment; ``registry`` reads nothing later, so this does not change.

    ``sites`` are by the name of their seam, ``devices`` by torch's device type and index: those of this machine.
    """

    registry: Registry
    sites: Mapping[str, Site]
    devices: Mapping[tuple[str, int], Fingerprint]
    _identities: dict[tuple[str, bool], str | None] = attrs.field(factory=dict)

    def device(self, device: torch.device) -> Fingerprint | None:
        """What describes a device; ``None`` for a kind of device that autoheur does not know."""
        index = device.index
        if index is None:
            index = torch.cuda.current_device() if device.type == "cuda" else 0
        return self.devices.get((device.type, index))

    def heuristic(self, operator: str, device: Fingerprint) -> Heuristic | None:
        """The heuristic that answers, if any does."""
        return self.registry.selected(operator, device) if operator in self.registry.operators else None

    def answering(self) -> dict[tuple[str, Fingerprint], Heuristic]:
        """The heuristics that answer at any site, by operator and device."""
        operators = dict.fromkeys(operator for site in self.sites.values() for operator in site.operators)
        pairs = ((operator, device) for operator in operators for device in dict.fromkeys(self.devices.values()))
        return {pair: heuristic for pair in pairs if (heuristic := self.heuristic(*pair)) is not None}

    def identity(self, mode: Mode, deterministic: bool) -> str | None:
        """A digest of everything that can change a decision or whether one is measured; ``None``: nothing here does.

        That is the case in mode ``use`` where no heuristic answers on this machine's devices: Inductor's behaviour is
        then its own, and so are its cache keys.
        """
        key = (mode, deterministic)
        if key not in self._identities:
            self._identities[key] = self._identify(mode, deterministic)
        return self._identities[key]

    def _identify(self, mode: Mode, deterministic: bool) -> str | None:
        answering = self.answering()
        if mode == "use" and not answering and not deterministic:
            return None
        parts: list[object] = [importlib.metadata.version("autoheur-core"), mode]
        if mode != "collect":
            parts += [
                [operator, device.to_dict(), hashlib.sha256(to_json(heuristic.artifact).encode()).hexdigest()]
                for (operator, device), heuristic in answering.items()
            ]
            parts += [
                [str(plugin.provenance), plugin.operator.default_choice if plugin.operator else None]
                for plugin in self.registry.plugins
                if plugin.usable and (plugin.operator or _DECIDING_HOOKS.intersection(plugin.hooks))
            ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


_snapshots_lock = threading.RLock()
_snapshots: weakref.WeakKeyDictionary[Registry, Snapshot] = weakref.WeakKeyDictionary()
"""The latest one of each registry that a session has; sessions of one registry share it."""


def current_snapshot(registry: Registry) -> Snapshot:
    """The latest snapshot of a registry, taken anew where an artifact came, went or changed."""
    with _snapshots_lock:
        old = _snapshots.get(registry)
        if old is None or old.registry.is_stale():
            new = _take((old.registry if old else registry).renewed())
            _snapshots[registry] = new
            if old is not None:
                _report_changes(old, new)
            return new
        return old


def _take(registry: Registry) -> Snapshot:
    sites = {entry.site.seam.name: entry.site for entry in registry.sites if entry.site is not None}
    return Snapshot(registry, sites, local_devices())


def _report_changes(old: Snapshot, new: Snapshot) -> None:
    """Say so when a heuristic that answered is gone (of a broken one the registry has said so) or was replaced."""
    answering = new.answering()
    for (operator, device), heuristic in old.answering().items():
        now = answering.get((operator, device))
        if now is None and not heuristic.path.exists():
            logger.warning(
                "%s: the heuristic %s (%s) is gone; Inductor decides as without autoheur",
                operator,
                heuristic.name,
                heuristic.path,
            )
        elif now is not None and now.artifact != heuristic.artifact:
            logger.info("%s: heuristic %s now answers instead of %s", operator, now.name, heuristic.name)


def local_devices() -> dict[tuple[str, int], Fingerprint]:
    """The devices of this machine that a graph may be compiled for, the CPU included, by torch's type and index."""
    devices = {("cpu", 0): fingerprint.cpu()}
    try:
        if torch.cuda.is_available():
            devices |= {("cuda", index): fingerprint.cuda(index) for index in range(torch.cuda.device_count())}
        elif torch.xpu.is_available():
            devices |= {("xpu", index): fingerprint.current() for index in range(torch.xpu.device_count())}
    except Exception as error:  # a driver that fails here fails in torch too, with a better message
        logger.debug("cannot look at the accelerators: %s", error)
    return devices


@attrs.frozen(eq=False)
class Compile:
    """One compile: what it decides with. ``identity`` enters its cache keys; ``None`` leaves them as they are.

    ``compile_id`` is torch's name of it, where it has one.
    """

    session: Session
    snapshot: Snapshot
    deterministic: bool
    identity: str | None
    compile_id: str | None

    @property
    def leaves_nothing_to_torch(self) -> bool:
        """Whether torch may not be left to decide, since its caches of measurements would have a say."""
        return self.deterministic and self.session.mode == "use"


_lock = threading.Lock()
_compiles: weakref.WeakKeyDictionary[Any, Compile | None] = weakref.WeakKeyDictionary()


def current_compile() -> Compile | None:
    """The compile that the calling thread is in, or ``None`` where autoheur has no part in it. Never raises."""
    context = torch_seams.current_tracing()
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
        snapshot = current_snapshot(session.registry)
        deterministic = torch_seams.is_deterministic()
        identity = snapshot.identity(session.mode, deterministic)
        return Compile(session, snapshot, deterministic, identity, torch_seams.compile_id())
    except Exception as error:  # without an identity nothing may be decided
        session.warn_once("identity", f"autoheur has no part in a compile: {type(error).__name__}: {error}")
        return None


def identify(original: Callable[..., None]) -> Callable[..., None]:
    """Wrap the constructor of a graph cache key so that the key carries the identity beside the user's own tag."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        compile_ = current_compile()
        if compile_ is not None and compile_.identity is not None:
            self.autoheur_identity = compile_.identity

    return __init__
