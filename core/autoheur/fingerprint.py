"""What identifies the device that measurements hold for."""

from __future__ import annotations

import functools
import json
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from autoheur.errors import InputError


@attrs.frozen(cache_hash=True)
class Fingerprint:
    """A device, described by as many of these fields as are known.

    A fingerprint plays two parts. One *of a device* has every field that the machine reveals. One *in an artifact or
    a dataset* is a requirement: it holds the fields that must agree, the others are ``None``.

    ``kind`` is torch's device type. ``name`` of a GPU in a requirement is a prefix, since one model is sold under
    several names (``NVIDIA A100`` matches ``NVIDIA A100-SXM4-40GB``). ``capability`` is written ``8.0``.
    ``shared_memory`` is bytes per block (opt-in maximum), ``memory_gib`` the device memory in whole GiB.
    ``vendor``, ``isa`` (the widest vector extension) and ``cores`` (physical and logical alike: what the operating
    system lets us use) describe a CPU.
    """

    kind: str | None = None
    name: str | None = None
    capability: str | None = None
    sm_count: int | None = None
    memory_gib: int | None = None
    shared_memory: int | None = None
    vendor: str | None = None
    isa: str | None = None
    cores: int | None = None

    def mismatch(self, device: Fingerprint) -> str | None:
        """Say how ``device`` fails this requirement, or return ``None`` when it meets it."""
        for field in attrs.fields(Fingerprint):
            required, actual = getattr(self, field.name), getattr(device, field.name)
            if required is None or required == actual:
                continue
            if field.name == "name" and actual is not None and _is_model(required, actual):
                continue
            return f"{field.name} is {actual!r}, not {required!r}"
        return None

    def label(self) -> str:
        """A short text for tables, such as ``NVIDIA A100`` or ``cuda sm_80``."""
        if self.name:
            return self.name
        if self.vendor:
            return " ".join(str(part) for part in (self.vendor, self.isa, f"{self.cores} cores") if part)
        if self.capability:
            return f"{self.kind or 'cuda'} sm_{self.capability.replace('.', '')}"
        return self.kind or "any device"

    def to_dict(self) -> dict[str, str | int]:
        """The known fields only."""
        return {name: value for name, value in attrs.asdict(self).items() if value is not None}


def _is_model(required: str, actual: str) -> bool:
    """Whether ``actual`` names the model ``required`` (a whole-word prefix: A100 is not A1000)."""
    return actual.startswith(required) and not actual[len(required) : len(required) + 1].isalnum()


KNOWN: Mapping[str, Fingerprint] = {
    "a100": Fingerprint("cuda", "NVIDIA A100", "8.0", sm_count=108, shared_memory=166912),
    "h100": Fingerprint("cuda", "NVIDIA H100", "9.0", shared_memory=232448),
    "h200": Fingerprint("cuda", "NVIDIA H200", "9.0", sm_count=132, shared_memory=232448),
}
"""Devices that can be named on the command line without being at hand."""


def from_log_metadata(metadata: Mapping[str, Any]) -> Fingerprint:
    """The requirement that an AutoHeuristic log's metadata supports: compute capability and shared memory.

    Torch writes capability (0, 0) where no CUDA device is present; such a log is taken as measured on the CPU. A log
    that autoheur wrote while compiling has the whole fingerprint beside them, as ``device``.
    """
    if isinstance(device := metadata.get("device"), Mapping):
        try:
            return from_dict(device)
        except (ValueError, TypeError):
            pass  # somebody else's "device"
    capability = metadata.get("device_capa")
    memory = metadata.get("shared_memory")
    if isinstance(capability, (list, tuple)) and len(capability) == 2 and tuple(capability) != (0, 0):
        shared = memory if isinstance(memory, int) and memory > 0 else None
        return Fingerprint("cuda", capability=f"{capability[0]}.{capability[1]}", shared_memory=shared)
    if isinstance(capability, (list, tuple)):
        return Fingerprint("cpu")
    return Fingerprint()


def parse(text: str) -> Fingerprint:
    """Read a fingerprint as the command line takes it.

    Accepted: ``current`` (this machine), a known device's short name (``a100``), a JSON object, or
    ``field=value,field=value``.

    Raises:
        InputError: none of these.
    """
    short = text.strip()
    if short == "current":
        return current()
    if short.lower() in KNOWN:
        return KNOWN[short.lower()]
    if short in ("cpu", "cuda", "xpu"):
        here = current()
        if here.kind == short:
            return here
        raise InputError(f"device {short!r}: this machine has none; name one of {', '.join(KNOWN)} or give its fields")
    try:
        fields: dict[str, Any]
        if short.startswith("{"):
            fields = json.loads(short)
        else:
            fields = dict(part.split("=", 1) for part in short.split(",") if part)
        return from_dict(fields)
    except (ValueError, TypeError, RecursionError) as error:
        names = ", ".join(field.name for field in attrs.fields(Fingerprint))
        raise InputError(
            f"device {text!r} is neither 'current', one of {', '.join(KNOWN)}, nor field=value,… "
            f"with the fields {names} ({error})"
        ) from None


def from_dict(fields: Mapping[str, Any]) -> Fingerprint:
    """Build a fingerprint from plain data, converting whole numbers written as text.

    Raises:
        ValueError: an unknown field, or a value of the wrong type.
    """
    if not isinstance(fields, Mapping):
        raise ValueError(f"fields by name expected, not {fields!r}")
    known = {field.name for field in attrs.fields(Fingerprint)}
    values: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in known:
            raise ValueError(f"unknown field {name!r}")
        if value is None:
            continue
        if name in ("sm_count", "memory_gib", "shared_memory", "cores"):
            try:
                values[name] = int(value)
            except OverflowError:
                raise ValueError(f"field {name!r} must be a whole number, not {value!r}") from None
        elif isinstance(value, str):
            values[name] = value
        else:
            raise ValueError(f"field {name!r} must be text, not {value!r}")
    return Fingerprint(**values)


@functools.cache
def current() -> Fingerprint:
    """The device that torch would compile for on this machine: the GPU where there is one, else the CPU.

    Torch is imported only where a GPU driver is present or the program has imported it already; never raises.
    """
    if "torch" in sys.modules or _has_gpu_driver():
        try:
            import torch

            if torch.cuda.is_available():
                return cuda(torch.cuda.current_device())
            if torch.xpu.is_available():
                properties = torch.xpu.get_device_properties()
                return Fingerprint("xpu", properties.name, memory_gib=round(properties.total_memory / 2**30))
        except Exception:  # a broken driver must not break a decision; the CPU is always there
            pass
    return cpu()


def _has_gpu_driver() -> bool:
    return any(Path(path).exists() for path in ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg", "/dev/dri"))


@functools.cache
def cuda(index: int) -> Fingerprint:
    """The fingerprint of a CUDA device; imports torch."""
    import torch

    properties = torch.cuda.get_device_properties(index)
    return Fingerprint(
        kind="cuda",
        name=properties.name,
        capability=f"{properties.major}.{properties.minor}",
        sm_count=properties.multi_processor_count,
        memory_gib=round(properties.total_memory / 2**30),
        shared_memory=getattr(properties, "shared_memory_per_block_optin", None),
    )


@functools.cache
def cpu() -> Fingerprint:
    """The fingerprint of this machine's CPU, without importing torch."""
    vendor, flags, name = _cpu_description()
    isa = next((isa for isa, flag in _ISA_FLAGS if flag in flags), platform.machine() or None)
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        cores = os.cpu_count() or 1
    return Fingerprint(kind="cpu", name=name, vendor=vendor, isa=isa, cores=cores)


_ISA_FLAGS = (
    ("amx", "amx_tile"),
    ("avx512_bf16", "avx512_bf16"),
    ("avx512", "avx512f"),
    ("avx2", "avx2"),
    ("sve", "sve"),
    ("neon", "asimd"),
)


def _cpu_description() -> tuple[str | None, frozenset[str], str | None]:
    """Vendor, feature flags and model name, from the operating system; unknown parts are empty."""
    fields: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if not key.strip():
                    break  # the first processor is enough
                fields[key.strip()] = value.strip()
    except OSError:
        pass
    vendor = fields.get("vendor_id") or fields.get("CPU implementer") or platform.processor() or None
    flags = fields.get("flags") or fields.get("Features") or ""
    return vendor, frozenset(flags.split()), fields.get("model name")
