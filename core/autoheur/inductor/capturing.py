"""Recording every matrix product that torch.compile meets.

Inductor runs ``config.joint_custom_pre_pass`` on each graph, forward and backward together, before it decides about
padding; this is where products are recorded. The pass is put in front of the user's own while a graph is compiled, in
whatever thread, and has no identity, which makes Inductor neither read nor write its graph caches: a graph taken from
a cache would not be seen.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from autoheur.files import check_writable
from autoheur.inductor import attachment, seams
from autoheur.inductor.shapes import Shape, Shapes, to_line, write_shapes
from autoheur.inductor.snapshot import OPERATORS
from autoheur.registry import default_registry

if TYPE_CHECKING:
    import torch
    from torch.fx import Graph, Node

logger = logging.getLogger("autoheur.inductor")

Sink = Callable[[list[Shape]], None]

_lock = threading.RLock()
_sinks: list[Sink] = []
"""Who wants to know, in the whole process."""


@contextlib.contextmanager
def capture(path: str | os.PathLike[str] | None = None) -> Iterator[Shapes]:
    """Record every mm, addmm and bmm that torch.compile meets inside the block, in any thread; yield their counts.

    At the end they are written to ``path`` (CSV or Parquet), for ``autoheur collect --from``, also where the block
    ends with an exception. What was compiled before the block is not compiled again, so not recorded.

    Raises:
        InputError: the file cannot be written; found out at the beginning.
    """
    if path is not None:
        check_writable(path)
    shapes: Shapes = Counter()
    with _lock:
        _sinks.append(shapes.update)
    try:
        _install()
        yield shapes
    finally:
        with _lock:
            _sinks.remove(shapes.update)
            if not _sinks:
                _remove()
        if path is not None:
            write_shapes(shapes, path)


def trace(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Have torch.compile meet ``function``, a model for example, without generating a kernel; return its result.

    Made for fake tensors: under ``torch._subclasses.FakeTensorMode`` a model of any size is built, called and recorded
    in seconds, without its memory and without a GPU. With parameters that need gradients the backward graph is
    recorded as well, whether or not it is run.
    """
    import torch

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        from torch._inductor import compile_fx, config

        with config.patch(shape_padding=False):  # which would measure, on tensors that are no fakes
            return compile_fx.compile_fx(module, inputs, inner_compile=_do_not_compile)

    return torch.compile(function, backend=backend)(*args, **kwargs)


def _do_not_compile(module: Any, inputs: Any, **_: Any) -> Any:
    """Stands in for code generation: the graph itself is run."""

    def run(arguments: list[Any]) -> Any:
        values = list(arguments)
        arguments.clear()
        return module(*values)

    run._boxed_call = True  # type: ignore[attr-defined]  # torch's convention for callables that take one list
    return run


def capture_into(folder: str | os.PathLike[str]) -> None:
    """Append what this process and those that it forks compile to part files in ``folder``, from now on for good.

    One file per process, each graph written at once: neither a kill nor ``os._exit`` loses what was recorded.
    """

    def append(shapes: list[Shape]) -> None:
        with (Path(folder) / f"{_process(os.getpid())}.jsonl").open("a", encoding="utf-8") as file:
            file.write("".join(map(to_line, shapes)))

    with _lock:
        _sinks.append(append)
    attachment.when_imported(_install)


@functools.cache
def _process(pid: int) -> str:
    """A name that no other process has had: process numbers are used again."""
    return f"{time.strftime('%Y%m%dT%H%M%S')}-{pid}-{os.urandom(3).hex()}"


_patch: tuple[Callable[..., Any], Callable[..., Any]] | None = None
"""Inductor's function, and ours in its place."""


def _install() -> None:
    """Have Inductor run our pass whenever it compiles."""
    global _patch
    module: Any = importlib.import_module(attachment.ENTRANCE)  # not under the lock: an import has locks of its own
    with _lock:
        if _patch is None:
            _patch = module.compile_fx, _recording(module.compile_fx)
            module.compile_fx = _patch[1]


def _remove() -> None:
    """Put Inductor's function back, unless somebody has wrapped ours; it then only passes on."""
    global _patch
    module: Any = sys.modules.get(attachment.ENTRANCE)
    if _patch is not None and module.compile_fx is _patch[1]:
        module.compile_fx, _patch = _patch[0], None


def _recording(compile_fx: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compile_fx)
    def recording(*args: Any, **kwargs: Any) -> Any:
        from torch._inductor import config

        theirs = config.joint_custom_pre_pass
        if not _sinks or isinstance(theirs, _pass_class()):
            return compile_fx(*args, **kwargs)
        with config.patch(joint_custom_pre_pass=_pass_class()(theirs)):
            return compile_fx(*args, **kwargs)

    return recording


@functools.cache
def _pass_class() -> type[Any]:
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Recorder(CustomGraphPass):  # type: ignore[misc, unused-ignore]
        """Records, then runs what the user has set."""

        def __init__(self, theirs: Any) -> None:
            listed = theirs if isinstance(theirs, list | tuple) else [theirs]
            self.theirs = [each for each in listed if each is not None]

        def __call__(self, graph: Graph) -> None:
            _record(graph)
            for each in self.theirs:
                each(graph)

        def uuid(self) -> None:
            """No identity: no graph cache."""

    return Recorder


def _record(graph: Graph) -> None:
    """Tell all sinks of a graph's products; never raises."""
    shapes = []
    for node in graph.nodes:
        operator = OPERATORS.get(str(getattr(node.target, "overloadpacket", "")))
        if node.op == "call_function" and operator is not None:
            try:
                shapes.append(_shape(node, operator))
            except Exception as error:  # a size of which nothing is known, or a broken plugin
                logger.warning("%s is not captured: %s: %s", node, type(error).__name__, error)
    for sink in list(_sinks):
        try:
            sink(shapes)
        except Exception as error:
            logger.warning("captured shapes are not kept: %s: %s", type(error).__name__, error)


def _shape(node: Node, operator: str) -> Shape:
    tensors: list[Any] = list(node.args)
    # As the pattern match of Inductor's padding pass, as far as the question goes.
    match: Any = SimpleNamespace(kwargs={**node.kwargs, "mat1": tensors[-2], "mat2": tensors[-1]})
    operands = [seams.operand(tensor.meta["val"]) for tensor in tensors]
    return Shape.of(operator, default_registry().operator(operator).extract(operands, seams.flags(match)))
