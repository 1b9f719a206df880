"""The state of plugins and artifacts that a compile decides with, and its identity."""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING

import attrs

from autoheur import fingerprint
from autoheur.fingerprint import Fingerprint
from autoheur.precedence import Heuristic
from autoheur.registry import Registry, default_registry

if TYPE_CHECKING:
    from autoheur.inductor.activation import Mode, Session

logger = logging.getLogger("autoheur.inductor")

OPERATORS = {"aten.mm": "pad_mm", "aten.addmm": "addmm", "aten.bmm": "bmm"}
"""What Inductor pads -> the operator that decides it."""

_DECIDING_HOOKS = {"autoheur_extract", "autoheur_features", "autoheur_codegen"}
"""A plugin without an operator that implements one of these wraps it for all, and so can change every decision."""


@attrs.frozen(eq=False)
class Snapshot:
    """Plugins and artifacts as they were at one moment; ``registry`` reads nothing later, so this does not change."""

    registry: Registry
    answering: dict[tuple[str, Fingerprint], Heuristic]
    """The heuristic that answers, by operator and device of this machine."""
    _identities: dict[tuple[str, bool], str | None] = attrs.field(factory=dict)

    def heuristic(self, operator: str, device: Fingerprint) -> Heuristic | None:
        return self.answering.get((operator, device))

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
        import autoheur
        from autoheur.heuristic.artifact import to_json

        if mode == "use" and not self.answering and not deterministic:
            return None
        parts: list[object] = [autoheur.__version__, mode]
        if mode != "collect":
            parts += [
                [operator, device.to_dict(), hashlib.sha256(to_json(heuristic.artifact).encode()).hexdigest()]
                for (operator, device), heuristic in self.answering.items()
            ]
            parts += [
                [str(plugin.provenance), plugin.operator.default_choice if plugin.operator else None]
                for plugin in self.registry.plugins
                if plugin.usable and (plugin.operator or _DECIDING_HOOKS.intersection(plugin.hooks))
            ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def current_snapshot(session: Session) -> Snapshot:
    """The session's snapshot, taken anew where an artifact came, went or changed since the last one."""
    with session.lock:
        old = session.snapshot
        registry = old.registry if old else session.registry or default_registry()
        if old is None or registry.is_stale():
            session.snapshot = _take(registry.renewed())
            if old is not None:
                _report_changes(old, session.snapshot)
        assert session.snapshot is not None
        return session.snapshot


def _take(registry: Registry) -> Snapshot:
    answering = {}
    for operator in OPERATORS.values():
        if operator in registry.operators:
            for device in local_devices():
                if (heuristic := registry.selected(operator, device)) is not None:
                    answering[operator, device] = heuristic
    return Snapshot(registry, answering)


def _report_changes(old: Snapshot, new: Snapshot) -> None:
    """Say so when a heuristic that answered is gone (of a broken one the registry has said so) or was replaced."""
    for (operator, device), heuristic in old.answering.items():
        now = new.answering.get((operator, device))
        if now is None and not heuristic.path.exists():
            logger.warning(
                "%s: the heuristic %s (%s) is gone; Inductor decides as without autoheur",
                operator,
                heuristic.name,
                heuristic.path,
            )
        elif now is not None and now.artifact != heuristic.artifact:
            logger.info("%s: heuristic %s now answers instead of %s", operator, now.name, heuristic.name)


def local_devices() -> list[Fingerprint]:
    """The devices of this machine that a graph may be compiled for, the CPU included."""
    import torch

    devices = [fingerprint.cpu()]
    try:
        if torch.cuda.is_available():
            devices += [fingerprint.cuda(index) for index in range(torch.cuda.device_count())]
        elif torch.xpu.is_available():
            devices.append(fingerprint.current())
    except Exception as error:  # a driver that fails here fails in torch too, with a better message
        logger.debug("cannot look at the accelerators: %s", error)
    return list(dict.fromkeys(devices))


def device_of(device: object) -> Fingerprint:
    """The fingerprint of a ``torch.device``."""
    import torch

    assert isinstance(device, torch.device)
    if device.type == "cuda":
        return fingerprint.cuda(torch.cuda.current_device() if device.index is None else device.index)
    return fingerprint.cpu() if device.type == "cpu" else fingerprint.current()
