"""Overhearing what Inductor measures when it decides about padding itself."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

import attrs


@attrs.define
class Measurement:
    """What Inductor chose and measured.

    ``times`` are in milliseconds by choice; empty where it took the answer from its cache or a rule. ``seconds`` is how
    long it took to choose.
    """

    key_prefix: str
    pads: bool = False
    times: dict[str, float] = attrs.field(factory=dict)
    seconds: float = 0.0


_current = threading.local()


def measure(should_pad: Callable[..., bool], identity: str | None, *question: Any) -> Measurement:
    """Let Inductor decide, and note the times that it measures.

    Its memoizer is left out, and its padding cache is read and written under keys of our own (by ``identity``): what
    was measured earlier without us is measured once more, and the user's own entries stay untouched.
    """
    measurement = Measurement(f"autoheur {identity}: " if identity else "")
    outer = getattr(_current, "measurement", None)
    _current.measurement = measurement
    start = time.perf_counter()
    try:
        measurement.pads = bool(inspect.unwrap(should_pad)(*question))
    finally:
        measurement.seconds = time.perf_counter() - start
        _current.measurement = outer
    return measurement


def separate(original: Callable[..., str]) -> Callable[..., str]:
    """Wrap the function that computes keys of Inductor's padding cache."""

    def should_pad_bench_key(*args: Any, **kwargs: Any) -> str:
        measurement: Measurement | None = getattr(_current, "measurement", None)
        return (measurement.key_prefix if measurement else "") + original(*args, **kwargs)

    return should_pad_bench_key


def overhear(original: Callable[..., bool]) -> Callable[..., bool]:
    """Wrap the function that compares the measured times."""

    def is_padded_faster(key: str, ori_time: float, pad_time: float) -> bool:
        measurement: Measurement | None = getattr(_current, "measurement", None)
        if measurement is not None:
            measurement.times = {"orig": float(ori_time), "pad": float(pad_time)}
        return original(key, ori_time, pad_time)

    return is_padded_faster
