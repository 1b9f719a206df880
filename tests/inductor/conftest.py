"""Inductor's padding pass on the CPU, with its device gates opened, and heuristics made to measure."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import autoheur
from autoheur import fingerprint
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic import artifact as artifacts
from autoheur.heuristic.artifact import Artifact, Precondition
from autoheur.heuristic.installed import Store
from autoheur.heuristic.model import Forest, Policy, Tree
from autoheur.plugins import Source
from autoheur.registry import Registry
from autoheur.types import Provenance

torch = pytest.importorskip("torch")

PLUGINS = {"pad_mm": "autoheur_pad_mm.plugin", "addmm": "autoheur_addmm.plugin", "bmm": "autoheur_bmm.plugin"}
SCORES = {"pad": [0.0, 1.0], "orig": [1.0, 0.0], None: [0.5, 0.5]}


def constant(operator: str, choice: str | None, device: Fingerprint, name: str = "constant") -> Artifact:
    """An artifact that always takes ``choice``; ``None``: it is always unsure."""
    features = importlib.import_module(PLUGINS[operator]).features.FEATURES
    leaf = Tree([-1], [0.0], [0], [0], [SCORES[choice]])
    return Artifact(
        operator=operator,
        name=name,
        features=[feature for feature in features if not feature.derived],
        choices=["orig", "pad"],
        model=Forest([], [0.0, 0.0], [leaf], layout="vector", statistic="difference"),
        policy=Policy(0.1, guard=False),
        precondition=Precondition(device),
    )


@attrs.define
class Bench:
    """Plugins and a store of their own; ``put`` installs an artifact that always gives the same answer."""

    folder: Path
    sources: list[Source]

    @property
    def store(self) -> Store:
        return Store(self.folder / "artifacts")

    def registry(self, **replaced: Any) -> Registry:
        """A registry over the operator plugins; ``replaced`` are other plugin modules by operator."""
        sources = [
            attrs.evolve(source, target=replaced.get(source.provenance.plugin, source.target))
            for source in self.sources
        ]
        return Registry(sources, self.store)

    def put(self, operator: str, choice: str | None, device: Fingerprint | None = None) -> Path:
        made = constant(operator, choice, device or fingerprint.cpu(), f"always-{operator}")
        path = self.folder / "new.json"
        artifacts.write(made, path)
        return self.store.install(path)[1]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    sources = [
        Source(Provenance(name, f"autoheur-{name}", "1"), importlib.import_module(module))
        for name, module in PLUGINS.items()
    ]
    return Bench(tmp_path, sources)


@attrs.define
class Timer:
    """Stands in for Inductor's benchmark: answers the next of ``times`` (ms), over and over, and counts.

    It does not run what it is to time: on a CPU Inductor leaves the bias out, and addmm cannot do without.
    """

    times: tuple[float, ...] = (1.0, 2.0)
    calls: int = 0

    def __call__(self, function: Callable[[], object], **_: object) -> float:
        self.calls += 1
        return self.times[(self.calls - 1) % len(self.times)]


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Timer]:
    """Let Inductor pad on the CPU, in a cache folder of its own; yields the timer of its benchmarks."""
    import torch._inductor.compile_fx
    from torch._inductor.fx_passes import pad_mm
    from torch._inductor.utils import clear_caches

    timer = Timer()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setattr(pad_mm, "check_device", lambda *_: True)
    monkeypatch.setattr(pad_mm, "has_triton", lambda *_: True)
    monkeypatch.setattr(pad_mm, "is_mm_compute_bound", lambda M, K, N, dtype: True)
    monkeypatch.setattr(pad_mm, "get_do_bench", lambda: timer)
    clear_caches()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield timer
    autoheur.disable()
    torch._dynamo.reset()
    clear_caches()


@attrs.define
class Graphs:
    """A backend that runs Inductor's passes and keeps the graphs, then executes them without generating code."""

    modules: list[Any] = attrs.field(factory=list)

    def compile(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """Compile from scratch."""
        torch._dynamo.reset()
        self.modules.clear()
        compiled: Callable[..., Any] = torch.compile(function, backend=self._backend, **options)
        return compiled

    def _backend(self, module: Any, inputs: Any) -> Any:
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(module, inputs, inner_compile=self._keep)

    def _keep(self, module: Any, inputs: Any, **_: Any) -> Any:
        self.modules.append(module)

        def run(arguments: list[Any]) -> Any:
            values = list(arguments)
            arguments.clear()
            return module(*values)

        run._boxed_call = True  # type: ignore[attr-defined]  # torch's convention for callables that take one list
        return run

    @property
    def pads(self) -> int:
        """How many operands are padded, in all graphs together."""
        target = torch.ops.aten.constant_pad_nd.default
        return sum(node.target is target for module in self.modules for node in module.graph.nodes)


@pytest.fixture
def graphs(gates: Timer) -> Graphs:
    return Graphs()
