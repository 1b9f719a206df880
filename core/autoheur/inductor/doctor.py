"""What ``autoheur doctor`` tells: versions, devices, torch, sites, what is enabled, folders, matching heuristics."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from typing import Any

from autoheur import fingerprint
from autoheur.errors import describe
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.installed import Store, home
from autoheur.inductor import observed, session
from autoheur.registry import BroughtSite, Registry
from autoheur.site import Seam

AUTOLOAD_GROUP = "torch.backends"


def examine(registry: Registry) -> dict[str, Any]:
    """Look at everything; plain data. Imports Inductor where torch is installed."""
    has_torch = importlib.util.find_spec("torch") is not None
    devices = _devices(has_torch)
    sites = [_site(entry, has_torch) for entry in registry.sites]
    return {
        "versions": _versions(),
        "torch": _torch(sites) if has_torch else {"supported": False, "problem": "torch is not installed", "seams": []},
        "sites": sites,
        "devices": [{"label": device.label(), **device.to_dict()} for device in devices],
        "enabled": _enabled(),
        "folders": _folders(has_torch),
        "heuristics": _heuristics(registry, devices),
        "problems": _problems(registry),
    }


def _versions() -> dict[str, str | None]:
    return {
        "autoheur": _version("autoheur-core"),
        "python": platform.python_version(),
        "torch": _version("torch"),
        "triton": _version("triton"),
    }


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _torch(sites: list[dict[str, Any]]) -> dict[str, Any]:
    """Whether torch can be asked; ``seams`` are those of core and then those of all sites."""
    from autoheur.inductor import torch_seams

    try:
        problem = torch_seams.unsupported()
        rows = [_seam(seam, True) for seam in torch_seams.SEAMS]
    except Exception as error:  # a torch that cannot be imported is what a doctor is for
        return {"supported": False, "problem": describe(error), "seams": []}
    rows += [row for site in sites for row in site["seams"]]
    return {"supported": problem is None, "problem": problem, "seams": rows}


def _site(entry: BroughtSite, has_torch: bool) -> dict[str, Any]:
    """A site with what torch has of it; ``problem`` says why it is left out."""
    site, problem, seams = entry.site, entry.fault, []
    if site is not None and has_torch:
        try:
            seams = [_seam(seam, seam in site.needed) for seam in (*site.needed, *site.optional)]
        except Exception as error:
            problem = describe(error)
        missing = [f"{row['name']} ({row['detail']})" for row in seams if row["needed"] and not row["found"]]
        if missing:
            problem = f"torch lacks {'; '.join(missing)}"
    return {
        "name": entry.name,
        "plugin": entry.provenance.plugin,
        "distribution": entry.provenance.distribution,
        "version": entry.provenance.version,
        "operators": list(site.operators) if site else [],
        "available": problem is None and has_torch,
        "problem": problem,
        "seams": seams,
    }


def _seam(seam: Seam, needed: bool) -> dict[str, Any]:
    from autoheur.inductor import torch_seams

    finding = torch_seams.look(seam)
    return {
        "name": seam.name,
        "purpose": seam.purpose,
        "needed": needed,
        "found": finding.found,
        "detail": finding.detail,
    }


def _devices(has_torch: bool) -> list[Fingerprint]:
    if not has_torch:
        return [fingerprint.cpu()]
    try:
        from autoheur.inductor.compile import local_devices

        return list(dict.fromkeys(local_devices().values()))
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
        "measurements": observed.measurements_folder(),
        "comparisons": observed.comparisons_folder(),
    }
    if has_torch:
        try:
            from autoheur.inductor import torch_seams

            folders["inductor_cache"] = torch_seams.cache_folder()
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
    lines += [f"{entry.provenance}: site {entry.name}: {entry.fault}" for entry in registry.sites if entry.fault]
    entries = [entry for name in registry.operator_names() for entry in registry.broken_heuristics(name)]
    return lines + list({entry.path: entry.error for entry in entries}.values())
