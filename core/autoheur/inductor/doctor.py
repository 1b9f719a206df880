"""What ``autoheur doctor`` tells: versions, devices, seams, what is enabled, folders, which heuristics answer."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from pathlib import Path
from typing import Any

import autoheur
from autoheur import fingerprint
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.installed import Store, home
from autoheur.inductor import activation as session
from autoheur.inductor import journal
from autoheur.registry import Registry

AUTOLOAD_GROUP = "torch.backends"


def examine(registry: Registry) -> dict[str, Any]:
    """Look at everything; plain data. Imports Inductor where torch is installed."""
    has_torch = importlib.util.find_spec("torch") is not None
    devices = _devices(has_torch)
    return {
        "versions": _versions(),
        "torch": _torch() if has_torch else {"supported": False, "problem": "torch is not installed", "seams": []},
        "devices": [{"label": device.label(), **device.to_dict()} for device in devices],
        "enabled": _enabled(),
        "folders": _folders(has_torch),
        "heuristics": _heuristics(registry, devices),
        "problems": _problems(registry),
    }


def _versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {"autoheur": autoheur.__version__, "python": platform.python_version()}
    for name in ("torch", "triton"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def _torch() -> dict[str, Any]:
    from autoheur.inductor import seams

    try:
        problem = seams.unsupported()
        findings = [seams.look(seam) for seam in seams.SEAMS]
    except Exception as error:  # a torch that cannot be imported is what a doctor is for
        return {"supported": False, "problem": f"{type(error).__name__}: {error}", "seams": []}
    rows = [
        {
            "name": finding.seam.name,
            "purpose": finding.seam.purpose,
            "needed": finding.seam.needed,
            "found": finding.found,
            "detail": finding.detail,
        }
        for finding in findings
    ]
    return {"supported": problem is None, "problem": problem, "seams": rows}


def _devices(has_torch: bool) -> list[Fingerprint]:
    if not has_torch:
        return [fingerprint.cpu()]
    from autoheur.inductor.snapshot import local_devices

    try:
        return local_devices()
    except Exception:
        return [fingerprint.cpu()]


def _enabled() -> dict[str, Any]:
    active = session.active()
    entry_points = importlib.metadata.entry_points(group=AUTOLOAD_GROUP)
    settings = {name: value for name, value in sorted(os.environ.items()) if name.startswith("AUTOHEUR")}
    return {
        "mode": active.mode if active else None,
        "environment": settings,
        "autoload": any(entry_point.value.startswith("autoheur.") for entry_point in entry_points)
        and os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1",
    }


def _folders(has_torch: bool) -> dict[str, str]:
    folders = {
        "home": home(),
        "artifacts": Store.default().folder,
        "measurements": journal.measurements_folder(),
        "comparisons": journal.comparisons_folder(),
    }
    if has_torch:
        try:
            from torch._inductor.runtime.cache_dir_utils import cache_dir

            folders["inductor_cache"] = Path(cache_dir())
        except Exception:  # told under "torch" already
            pass
    return {name: str(path) for name, path in folders.items()}


def _heuristics(registry: Registry, devices: list[Fingerprint]) -> list[dict[str, Any]]:
    """Every heuristic that matches a device of this machine, in order of precedence."""
    rows = []
    for operator in registry.operator_names():
        for device in devices:
            matching = [h for h in registry.heuristics(operator) if h.device.mismatch(device) is None]
            answering = registry.selected(operator, device)
            rows += [
                {
                    "operator": operator,
                    "device": device.label(),
                    "name": heuristic.name,
                    "tier": heuristic.tier,
                    "provenance": str(heuristic.provenance),
                    "path": str(heuristic.path),
                    "answers": heuristic is answering,
                }
                for heuristic in matching
            ]
    return rows


def _problems(registry: Registry) -> list[str]:
    """Broken plugins and broken artifact files, one line each."""
    lines = [f"{plugin.provenance}: {plugin.error}" for plugin in registry.plugins if plugin.error]
    entries = [entry for name in registry.operator_names() for entry in registry.broken_heuristics(name)]
    return lines + list({entry.path: entry.error for entry in entries}.values())
