"""The device that is measured on: its fingerprint, its software, and torch's settings while measuring."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import torch

from autoheur import fingerprint
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint


def device_fingerprint(device: str) -> Fingerprint:
    """The fingerprint of a device of this machine, named as torch does: ``cpu``, ``cuda``, ``cuda:1``, ``xpu``.

    Raises:
        InputError: torch does not know the name, or this machine has no such device.
    """
    try:
        parsed = torch.device(device)
    except RuntimeError:
        raise InputError(f"device {device!r} is not one that torch knows; use cpu, cuda or xpu") from None
    if parsed.type == "cpu":
        return fingerprint.cpu()
    if parsed.type == "cuda" and torch.cuda.is_available():
        index = torch.cuda.current_device() if parsed.index is None else parsed.index
        if index < torch.cuda.device_count():
            return fingerprint.cuda(index)
    if parsed.type == "xpu" and torch.xpu.is_available():
        properties = torch.xpu.get_device_properties(parsed)
        return Fingerprint("xpu", properties.name, memory_gib=round(properties.total_memory / 2**30))
    raise InputError(f"device {device!r}: torch sees none on this machine; use --device cpu, or a torch built for it")


def environment(device: str, threads: int) -> dict[str, Any]:
    """What measurements depend on besides the device: versions, thread count, a GPU's clock where it can be read."""
    described: dict[str, Any] = {
        "device": device,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "threads": threads,
    }
    with suppress(importlib.metadata.PackageNotFoundError):
        described["triton"] = importlib.metadata.version("triton")
    if torch.device(device).type == "cuda":
        described["cuda"] = torch.version.cuda
        with suppress(Exception):  # needs NVIDIA's management library, which many machines lack
            described["clock_mhz"] = torch.cuda.clock_rate(torch.device(device))
    return described


def selected(device: str) -> AbstractContextManager[object]:
    """Make ``device`` the current one: timers record their events on the current device."""
    parsed = torch.device(device)
    if parsed.type == "cuda":
        return torch.cuda.device(parsed)
    return torch.xpu.device(parsed) if parsed.type == "xpu" else nullcontext()


@contextmanager
def pinned_settings(threads: int | None = None) -> Iterator[int]:
    """Pin torch's thread count while measuring (default: the current one); yield it and restore what was set before.

    The precision of float32 products, which benchmarks set, is restored as well.
    """
    before = torch.get_num_threads()
    precision = torch.get_float32_matmul_precision()
    torch.set_num_threads(threads or before)
    try:
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(before)
        torch.set_float32_matmul_precision(precision)


def release_memory(device: str) -> None:
    """Give cached device memory back, so that the next problem does not fail for what the last one left behind."""
    kind = torch.device(device).type
    if kind == "cuda":
        torch.cuda.empty_cache()
    elif kind == "xpu":
        torch.xpu.empty_cache()
