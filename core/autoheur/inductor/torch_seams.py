"""What autoheur uses of torch's internals, replaces there, and all that differs between torch's versions.

Sites name more seams of their own; they are looked for and replaced here too. Read in torch 2.11 to 2.14:

- Sizes of symbolic dimensions: ``optimization_hint`` from 2.12 on, ``node.hint`` before.
- A changed setting is kept to the calling thread from 2.13 on; see :func:`without_determinism`.

This module imports torch and Dynamo, but Inductor only when it is needed.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import torch
from torch._dynamo.utils import counters
from torch._guards import CompileContext, TracingContext
from torch._logging._internal import trace_structured

from autoheur.site import Seam, Site

if TYPE_CHECKING:
    from torch.fx import Graph

logger = logging.getLogger("autoheur.inductor")

OLDEST, NEWEST = (2, 11), (2, 14)
"""The torch versions that are supported, both included."""

GRAPH_KEY = Seam(
    "torch._inductor.codecache",
    "FxGraphHashDetails.__init__",
    ("self", "gm", "example_inputs", "fx_kwargs", "inputs_to_check"),
    "the keys of the graph caches",
)
_TRACING = Seam("torch._guards", "TracingContext.try_get", (), "telling compiles apart")
SEAMS = (GRAPH_KEY, _TRACING)
"""What no site can do without."""

current_tracing = TracingContext.try_get
"""What one compile, forward and backward, has of its own; ``None`` outside of one."""

__all__ = ["counters", "current_tracing", "trace_structured"]


@attrs.frozen
class Finding:
    """What became of looking for a seam; ``detail`` says what is wrong with it."""

    seam: Seam
    found: bool
    detail: str = ""


def find(seam: Seam) -> tuple[Any, str, Any]:
    """The module or class that has a seam's function, its name there, and the function.

    Raises:
        Exception: torch does not have it, or a part of torch cannot be imported.
    """
    found: Any = importlib.import_module(seam.module)
    *path, name = seam.attribute.split(".")
    for part in path:
        found = getattr(found, part)
    return found, name, getattr(found, name)


def look(seam: Seam) -> Finding:
    """Look for one seam in the torch that is installed; imports Inductor."""
    try:
        signature = inspect.signature(find(seam)[2])
    except Exception as error:  # importing parts of torch can fail in many ways
        return Finding(seam, False, f"{type(error).__name__}: {error}")
    try:
        signature.bind(*seam.parameters)
    except TypeError:
        return Finding(seam, False, f"takes {signature}, not ({', '.join(seam.parameters)})")
    return Finding(seam, True)


def torch_version() -> str:
    return str(torch.__version__)


def unsupported(version: str | None = None) -> str | None:
    """Say why autoheur does not work with the torch that is installed, or return ``None`` where it does."""
    text = version or torch_version()
    match = re.match(r"(\d+)\.(\d+)", text)
    if match is None or not OLDEST <= (int(match[1]), int(match[2])) <= NEWEST:
        span = f"{'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
        return f"torch {text} is not supported (supported: {span})"
    return _lacking(text, SEAMS)


def missing(site: Site) -> str | None:
    """Say what a site needs and the torch that is installed does not have."""
    return _lacking(torch_version(), site.needed)


def _lacking(version: str, seams: tuple[Seam, ...]) -> str | None:
    findings = [finding for finding in map(look, seams) if not finding.found]
    lines = [f"{finding.seam.name} ({finding.detail})" for finding in findings]
    return f"torch {version} lacks {'; '.join(lines)}" if lines else None


Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]


@attrs.frozen(eq=False)
class _Patch:
    owner: Any
    name: str
    original: Any
    replacement: Any

    @property
    def is_outermost(self) -> bool:
        return vars(self.owner).get(self.name) is self.replacement


_lock = threading.RLock()
_patches: dict[str, _Patch] = {}


def replace(seam: Seam, wrap: Wrapper) -> None:
    """Put a wrapper around a function of torch, unless there is one of ours already.

    Raises:
        Exception: see :func:`find`.
    """
    with _lock:
        if seam.name not in _patches:
            owner, name, original = find(seam)
            replacement = functools.wraps(original)(wrap(original))
            setattr(owner, name, replacement)
            _patches[seam.name] = _Patch(owner, name, original, replacement)


def restore() -> None:
    """Put the originals back. What somebody else has wrapped after us stays; ours inside it then only passes on."""
    with _lock:
        for name, patch in list(_patches.items()):
            if patch.is_outermost:
                setattr(patch.owner, patch.name, patch.original)
                del _patches[name]


def replaced() -> list[str]:
    """The names of the functions that are replaced now."""
    return list(_patches)


def hint(size: Any) -> int:
    """A symbolic size or stride as the number that Inductor assumes of it.

    Raises:
        Exception: a size of which nothing is known.
    """
    from torch.fx.experimental import symbolic_shapes

    if symbolic_shapes.free_unbacked_symbols(size):
        raise ValueError(f"nothing is known of the size {size}")
    if hasattr(symbolic_shapes, "optimization_hint"):
        return int(symbolic_shapes.optimization_hint(size))
    return int(size.node.hint)


def compile_id() -> str | None:
    """Torch's name of the compile that is going on, for example ``0/0``."""
    current = CompileContext.current_compile_id()
    return None if current is None else str(current)


def is_deterministic() -> bool:
    """Whether Inductor compiles deterministically, and so benchmarks nothing."""
    from torch._inductor import config

    return bool(config.deterministic)


def is_distributed() -> bool:
    """Whether this process is one of several that run the same program, and have to compile the same graphs."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


_deterministic_lock = threading.Lock()


def without_determinism(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """What a function of torch returns as if compilation were not deterministic.

    Before torch 2.13 the change lasts some microseconds for all threads.
    """
    from torch._inductor import config

    with _deterministic_lock, config.patch(deterministic=False):
        return function(*arguments, **keywords)


def cache_folder() -> Path:
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return Path(cache_dir())


def compile_for_inspection(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Run Inductor's passes on a function without measuring or generating code; return the function's result."""

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        from torch._inductor import compile_fx, config

        with config.patch(shape_padding=False):  # which would measure, on tensors that are no fakes
            return compile_fx.compile_fx(module, inputs, inner_compile=_do_not_compile)

    return torch.compile(function, backend=backend)(*arguments, **keywords)


def _do_not_compile(module: Any, inputs: Any, **_: Any) -> Any:
    """Stands in for code generation: the graph itself is run."""

    def run(arguments: list[Any]) -> Any:
        values = list(arguments)
        arguments.clear()
        return module(*values)

    run._boxed_call = True  # type: ignore[attr-defined]  # torch's convention for callables that take one list
    return run


GraphReader = Callable[["Graph"], None]

_reading: tuple[Callable[..., Any], Callable[..., Any]] | None = None
"""Inductor's function, and ours in its place."""


def read_graphs(read: GraphReader, is_wanted: Callable[[], bool]) -> None:
    """Have Inductor show every graph, forward and backward together, before it decides anything, to ``read``.

    It runs ``config.joint_custom_pre_pass`` then. Ours is put in front of the user's own while a graph is compiled, in
    whatever thread, and has no identity, which makes Inductor neither read nor write its graph caches: a graph taken
    from a cache would not be seen.
    """
    global _reading
    module: Any = importlib.import_module("torch._inductor.compile_fx")  # not under the lock: imports have locks too
    with _lock:
        if _reading is None:
            _reading = module.compile_fx, _showing(module.compile_fx, read, is_wanted)
            module.compile_fx = _reading[1]


def stop_reading() -> None:
    """Put Inductor's function back, unless somebody has wrapped ours; it then only passes on."""
    global _reading
    with _lock:
        if _reading is not None:
            module: Any = importlib.import_module("torch._inductor.compile_fx")
            if module.compile_fx is _reading[1]:
                module.compile_fx, _reading = _reading[0], None


def _showing(compile_fx: Callable[..., Any], read: GraphReader, is_wanted: Callable[[], bool]) -> Callable[..., Any]:
    @functools.wraps(compile_fx)
    def showing(*args: Any, **kwargs: Any) -> Any:
        from torch._inductor import config

        theirs = config.joint_custom_pre_pass
        if not is_wanted() or isinstance(theirs, _pass_class()):
            return compile_fx(*args, **kwargs)
        with config.patch(joint_custom_pre_pass=_pass_class()(read, theirs)):
            return compile_fx(*args, **kwargs)

    return showing


@functools.cache
def _pass_class() -> type[Any]:
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Reading(CustomGraphPass):  # type: ignore[misc, unused-ignore]
        """Reads, then runs what the user has set."""

        def __init__(self, read: GraphReader, theirs: Any) -> None:
            self.read = read
            listed = theirs if isinstance(theirs, list | tuple) else [theirs]
            self.theirs = [each for each in listed if each is not None]

        def __call__(self, graph: Graph) -> None:
            self.read(graph)
            for each in self.theirs:
                each(graph)

        def uuid(self) -> None:
            """No identity: no graph cache."""

    return Reading
