"""Times one pad_mm decision of autoheur beside one of torch's AutoHeuristic, in the same process, in turn.

All start from the same problem on the same (assumed) device, an A100: autoheur from a mapping of raw features, torch
from the context that its pad_mm pass builds; all compute derived features, ask the heuristic, and compare its
confidence with the threshold. Autoheur is timed with the tree that torch ships, which makes it the same model on both
sides, and with the ensemble that it ships itself. Prints microseconds per decision (minimum and median of the rounds)
and the ratio of torch's median to each of ours.

    python benchmarks/decide.py
"""

from __future__ import annotations

import functools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch._inductor.autoheuristic.autoheuristic_utils import AHContext, AHMetadata, pad_mm_operations
from torch._inductor.autoheuristic.learned_heuristic_controller import LearnedHeuristicController

import autoheur
from autoheur import fingerprint
from autoheur.heuristic.artifact import write
from autoheur.heuristic.installed import Store
from autoheur.registry import Registry
from autoheur.types import Value

A100 = fingerprint.KNOWN["a100"]
ROUNDS, CALLS = 30, 1000

SIZES = [(4097, 2049, 1025), (1025, 8191, 513), (30001, 777, 2049), (8192, 4099, 4097)]


def problem(m: int, k: int, n: int) -> dict[str, Value]:
    a = autoheur.Operand((m, k), (k, 1), "torch.float16")
    b = autoheur.Operand((k, n), (n, 1), "torch.float16")
    return dict(autoheur.default_registry().operator("pad_mm").extract([a, b], {}))


def torch_decision(features: dict[str, Value]) -> Callable[[], str | None]:
    """What torch does for each product: a context, its derived features, the controller, the heuristic."""
    metadata = AHMetadata(166912, (8, 0), ["orig", "pad"], "pad_mm")
    values = {**features, "mat1_dtype": torch.float16, "mat2_dtype": torch.float16}

    def decide() -> str | None:
        context = AHContext()
        for name, value in values.items():
            context.add_feature(name, value)
        context.apply_operations(pad_mm_operations())
        return LearnedHeuristicController(metadata, context).get_decision()

    return decide


def time_in_turn(*functions: Callable[[], object]) -> list[list[float]]:
    """Microseconds per call, per function and round; the functions take turns, so that drift hits all alike."""
    for function in functions:
        function()
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(ROUNDS):
        for own, function in zip(times, functions, strict=True):
            start = time.perf_counter_ns()
            for _ in range(CALLS):
                function()
            own.append((time.perf_counter_ns() - start) / CALLS / 1000)
    return times


def import_milliseconds(statement: str) -> float:
    """The least wall time of a fresh interpreter that runs ``statement``, less that of an empty one."""

    def least(code: str) -> float:
        times = []
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - start)
        return min(times) * 1000

    return least(statement) - least("pass")


def registry_with(name: str, folder: Path) -> Registry:
    """A registry in which this one of the known heuristics has precedence."""
    known = {heuristic.name: heuristic.artifact for heuristic in autoheur.default_registry().heuristics("pad_mm")}
    source = folder / f"{name}.json"
    write(known[name], source)
    store = Store(folder / name)
    store.install(source)
    return Registry(store=store)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        registries = [registry_with(name, Path(folder)) for name in ("torch-PadMMA100", "pad_mm_a100")]
        for registry in registries:
            registry.selected("pad_mm", A100)  # reads and compiles it, before the folder goes
    print(f"{'m x k x n':>20} {'autoheur, tree':>20} {'autoheur, ensemble':>20} {'torch, tree':>20}  ratios")
    for size in SIZES:
        features = problem(*size)
        ours = [functools.partial(registry.decide, "pad_mm", features, A100) for registry in registries]
        times = time_in_turn(*ours, torch_decision(features))
        texts = [f"{min(own):.2f} / {statistics.median(own):.2f} µs" for own in times]
        first, second, theirs = map(statistics.median, times)
        columns = " ".join(f"{text:>20}" for text in texts)
        print(f"{' x '.join(map(str, size)):>20} {columns}  {theirs / first:.1f} {theirs / second:.1f}")
    print(f"import autoheur: {import_milliseconds('import autoheur'):.0f} ms (an empty interpreter subtracted)")
    print(f"the registry too: {import_milliseconds('import autoheur.registry'):.0f} ms")


if __name__ == "__main__":
    main()
