"""The processor cores of this machine, divided among workers so that none disturbs another more than it must."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from autoheur.errors import InputError

TOPOLOGY = Path("/sys/devices/system/cpu")


def usable_cores() -> list[int]:
    """The logical cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def physical_cores(cores: Collection[int], topology: Path = TOPOLOGY) -> list[tuple[int, ...]]:
    """Group logical cores by the physical one that they share; each is one of its own where nothing tells."""
    groups: dict[str, list[int]] = {}
    for core in sorted(cores):
        try:
            shared = (topology / f"cpu{core}" / "topology" / "thread_siblings_list").read_text().strip()
        except OSError:
            shared = str(core)
        groups.setdefault(shared, []).append(core)
    return [tuple(group) for group in groups.values()]


def divide(workers: int, cores: Collection[int] | None = None, topology: Path = TOPOLOGY) -> list[tuple[int, ...]]:
    """As many equal sets of logical cores as there are workers; no two share a physical core.

    Raises:
        InputError: there are more workers than physical cores.
    """
    physical = physical_cores(usable_cores() if cores is None else cores, topology)
    share = len(physical) // workers
    if not share:
        raise InputError(f"{workers} workers need a core each, but this process has {len(physical)}; use fewer workers")
    parts = [physical[worker * share : (worker + 1) * share] for worker in range(workers)]
    return [tuple(core for group in part for core in group) for part in parts]


def pin(cores: Collection[int]) -> None:
    """Keep the calling process on these cores, where the operating system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
