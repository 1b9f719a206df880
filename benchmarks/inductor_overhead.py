"""What autoheur costs a compile when it is enabled and no heuristic answers: paired with plain torch.compile.

Every round compiles the same graph three times from scratch, in random order and each in a cache folder of its own:
plain, plain again, and enabled. Reported are the ratios of CPU time to the first plain compile of the round; the second
plain one is the noise. The gates of Inductor's padding pass are opened, so that questions are asked on a CPU too, and
its benchmark is replaced by a constant, so that only what autoheur adds makes a difference.

    python benchmarks/inductor_overhead.py [--rounds 15] [--heuristic]

With ``--heuristic`` one that answers every question is installed for a fourth compile.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
import torch._inductor.compile_fx
from torch._inductor.fx_passes import pad_mm

import autoheur
from autoheur import fingerprint
from autoheur.heuristic.artifact import Artifact, Precondition, write
from autoheur.heuristic.installed import Store
from autoheur.heuristic.model import Forest, Policy, Tree
from autoheur.plugins import entry_point_sources
from autoheur.registry import Registry


def open_gates() -> None:
    """Let Inductor ask about padding on any device, and answer its own benchmark with a constant."""
    vars(pad_mm).update(
        check_device=lambda *_: True,
        has_triton=lambda *_: True,
        is_mm_compute_bound=lambda *_: True,
        get_do_bench=lambda: lambda function: 1.0,
    )


def model(x: Any, weights: list[Any], bias: Any) -> Any:
    for weight in weights:
        x = torch.addmm(bias, x, weight)
    batch = x.unsqueeze(0).expand(2, *x.shape)
    return torch.bmm(batch, batch.transpose(1, 2)) @ x


def compile_once(setting: AbstractContextManager[Any]) -> float:
    """CPU seconds for one compile with cold caches, and one run of its result; other programs do not count."""
    inputs = (torch.ones(13, 17), [torch.ones(17, 17) for _ in range(10)], torch.ones(17))
    torch._dynamo.reset()
    torch._inductor.utils.clear_caches()
    with torch._inductor.utils.fresh_cache():
        start = time.process_time()
        with setting:
            torch.compile(model)(*inputs)
        return time.process_time() - start


def answering(folder: Path) -> Registry:
    """A registry with a heuristic per operator that always answers ``orig``."""
    registry = Registry(entry_point_sources(), Store(folder / "store"))
    for name, plugin in registry.operators.items():
        if {choice.name for choice in plugin.choices()} != {"orig", "pad"}:
            continue
        artifact = Artifact(
            operator=name,
            name=f"always-{name}",
            features=list(plugin.raw_features),
            choices=["orig", "pad"],
            model=Forest([], [0.0, 0.0], [Tree([-1], [0.0], [0], [0], [[1.0, 0.0]])], layout="vector"),
            policy=Policy(0.1, guard=False),
            precondition=Precondition(fingerprint.cpu()),
        )
        write(artifact, folder / "new.json")
        Store(folder / "store").install(folder / "new.json")
    return registry


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--heuristic", action="store_true")
    options = parser.parse_args()
    open_gates()
    with tempfile.TemporaryDirectory() as name:
        empty = Registry(entry_point_sources(), Store(Path(name, "empty")))
        arms: dict[str, Callable[[], AbstractContextManager[Any]]] = {
            "plain": nullcontext,
            "plain again": nullcontext,
            "enabled, no heuristic": lambda: autoheur.enabled(registry=empty),
        }
        if options.heuristic:
            full = answering(Path(name))
            arms["enabled, heuristic answers"] = lambda: autoheur.enabled(registry=full)
        for setting in arms.values():
            compile_once(setting())  # what is done once a process is not of interest here
        rounds = [measure(arms) for _ in range(options.rounds)]
        asked = len(autoheur.last_decisions())
    print(f"torch {torch.__version__}, {options.rounds} rounds, {asked} questions a compile")
    for name in arms:
        ratios = sorted(row[name] / row["plain"] for row in rounds)
        quarter = len(ratios) // 4
        spread = f"middle half {ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f}"
        print(f"{name:28} median ratio {statistics.median(ratios):.3f} ({spread})")


def measure(arms: dict[str, Callable[[], AbstractContextManager[Any]]]) -> dict[str, float]:
    order = random.sample(sorted(arms), len(arms))
    return {name: compile_once(arms[name]()) for name in order}


if __name__ == "__main__":
    main()
