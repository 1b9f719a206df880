"""The places in torch where autoheur attaches, and all that differs between torch's versions.

Read in torch 2.11 to 2.14:

- ``_should_pad`` decides for mm, addmm and bmm, after ``can_pad`` has found padding safe.
- Up to 2.12 ``can_pad`` refuses under deterministic compilation, from 2.13 on only where torch's own AutoHeuristic is
  switched off for pad_mm; see :func:`is_paddable`.
- Sizes of symbolic dimensions: ``optimization_hint`` from 2.12 on, ``node.hint`` before.
"""

from __future__ import annotations

import importlib
import inspect
import re
import threading
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from autoheur.types import Operand, Value

OLDEST, NEWEST = (2, 11), (2, 14)
"""The torch versions that are supported, both included."""

PAD_MM = "torch._inductor.fx_passes.pad_mm"


@attrs.frozen
class Seam:
    """A function of torch that autoheur replaces or calls, with ``parameters`` by position."""

    module: str
    attribute: str
    parameters: tuple[str, ...]
    purpose: str
    needed: bool = True
    """Without a seam that is needed autoheur stays off."""

    @property
    def name(self) -> str:
        return f"{self.module}.{self.attribute}"

    def find(self) -> Any:
        """The object itself.

        Raises:
            ImportError, AttributeError: torch does not have it.
        """
        found: Any = importlib.import_module(self.module)
        for part in self.attribute.split("."):
            found = getattr(found, part)
        return found


_PROBLEM = ("match", "mat1", "mat2", "op", "input")

SHOULD_PAD = Seam(PAD_MM, "_should_pad", _PROBLEM, "the padding decision")
CAN_PAD = Seam(PAD_MM, "can_pad", _PROBLEM[1:], "padding under deterministic compilation")
BENCH_KEY = Seam(PAD_MM, "should_pad_bench_key", _PROBLEM, "the key of Inductor's own padding cache", needed=False)
MEASURED = Seam(PAD_MM, "is_padded_faster", ("key", "ori_time", "pad_time"), "Inductor's measurements", needed=False)
GRAPH_KEY = Seam(
    "torch._inductor.codecache",
    "FxGraphHashDetails.__init__",
    ("self", "gm", "example_inputs", "fx_kwargs", "inputs_to_check"),
    "the keys of the graph caches",
)
_COMPUTE_BOUND = Seam(PAD_MM, "is_mm_compute_bound", ("M", "K", "N", "dtype"), "what is never padded or measured")
_PREPADDED = Seam(PAD_MM, "should_exclude_padding_time", ("match", "arg_name"), "padding that costs nothing")
_TRACING = Seam("torch._guards", "TracingContext.try_get", (), "telling compiles apart")

SEAMS = (SHOULD_PAD, CAN_PAD, GRAPH_KEY, _COMPUTE_BOUND, _PREPADDED, _TRACING, BENCH_KEY, MEASURED)


@attrs.frozen
class Finding:
    """What became of looking for a seam; ``detail`` says what is wrong with it."""

    seam: Seam
    found: bool
    detail: str = ""


def look(seam: Seam) -> Finding:
    """Look for one seam in the torch that is installed; imports Inductor."""
    try:
        signature = inspect.signature(seam.find())
    except Exception as error:  # importing parts of torch can fail in many ways
        return Finding(seam, False, f"{type(error).__name__}: {error}")
    try:
        signature.bind(*seam.parameters)
    except TypeError:
        return Finding(seam, False, f"takes {signature}, not ({', '.join(seam.parameters)})")
    return Finding(seam, True)


def torch_version() -> str:
    import torch

    return str(torch.__version__)


def unsupported(version: str | None = None) -> str | None:
    """Say why autoheur does not work with the torch that is installed, or return ``None`` where it does."""
    text = version or torch_version()
    match = re.match(r"(\d+)\.(\d+)", text)
    if match is None or not OLDEST <= (int(match[1]), int(match[2])) <= NEWEST:
        span = f"{'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
        return f"torch {text} is not supported (supported: {span})"
    missing = [finding for finding in map(look, SEAMS) if finding.seam.needed and not finding.found]
    if missing:
        return f"torch {text} lacks {'; '.join(f'{finding.seam.name} ({finding.detail})' for finding in missing)}"
    return None


def hints(sizes: Iterable[Any]) -> tuple[int, ...]:
    """Sizes or strides as plain integers: symbolic ones are replaced by what Inductor assumes of them.

    Raises:
        Exception: a symbolic size of which nothing is known.
    """
    return tuple(size if isinstance(size, int) else _hint(size) for size in sizes)


def _hint(size: Any) -> int:
    from torch.fx.experimental import symbolic_shapes

    if hasattr(symbolic_shapes, "optimization_hint"):
        return int(symbolic_shapes.optimization_hint(size))
    return int(size.node.hint)


def operand(tensor: Any) -> Operand:
    """A real, fake or symbolic tensor as far as a decision is concerned."""
    return Operand(
        shape=hints(tensor.shape),
        stride=hints(tensor.stride()),
        dtype=str(tensor.dtype),
        static=tuple(isinstance(size, int) for size in tensor.shape),
    )


def flags(match: Any) -> dict[str, Value]:
    """What the tensors of a product do not tell; ``match.kwargs`` holds the nodes ``mat1`` and ``mat2`` and factors."""
    from torch._inductor.fx_passes.pad_mm import should_exclude_padding_time

    found: dict[str, Value] = {
        "prepadded_mat1": should_exclude_padding_time(match, "mat1"),
        "prepadded_mat2": should_exclude_padding_time(match, "mat2"),
        "using_tf32": uses_tf32(),
    }
    for factor in ("beta", "alpha"):
        if isinstance(value := match.kwargs.get(factor), int | float):
            found[factor] = value
    return found


def decided_without_measuring(op: Any, mat1: Any, mat2: Any) -> bool:
    """Whether Inductor answers this padding question from its settings or a rule, without a benchmark.

    These answers stand: padding that the user forces, the bfloat16 rule that the user configures, and products that are
    not compute-bound, for which nobody has measured padding.
    """
    from torch._inductor import config
    from torch._inductor.fx_passes import pad_mm

    if config.force_shape_pad:
        return True
    *_, m, k = hints(mat1.shape)
    n = hints(mat2.shape)[-1]
    if "pad_aten_mm_pass" in config.post_grad_fusion_options and pad_mm.should_pad_mm_bf16(mat1.dtype, m, n, k):
        return True
    return not pad_mm.is_mm_compute_bound(m, k, n, mat1.dtype)


def uses_tf32() -> bool:
    """Whether float32 products may use TF32, as torch's own logs record it."""
    import torch

    return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")


_deterministic_lock = threading.Lock()


def is_paddable(can_pad: Callable[..., bool], *args: Any, **kwargs: Any) -> bool:
    """What ``can_pad`` says of safety alone, under deterministic compilation.

    There it may refuse because Inductor would have to benchmark. We would not, so it is asked as if compilation were
    not deterministic. Torch keeps such a change to the calling thread from 2.13 on; before, it lasts some
    microseconds for all threads.
    """
    from torch._inductor import config

    with _deterministic_lock, config.patch(deterministic=False):
        return can_pad(*args, **kwargs)
