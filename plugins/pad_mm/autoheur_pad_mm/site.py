"""The place where Inductor decides about padding: one site, at which pad_mm, addmm and bmm are asked.

It stands beside the operator, not in core, so that core knows no operator; the packages of addmm and bmm, which hand
over this same site, build on this one anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from autoheur.site import Operand, Question, Seam, Site, Value
from autoheur_pad_mm.features import CHOICES

OPERATORS = {"aten.mm": "pad_mm", "aten.addmm": "addmm", "aten.bmm": "bmm"}
"""What Inductor pads -> the operator that decides it."""

_MODULE = "torch._inductor.fx_passes.pad_mm"
_PRODUCT = ("mat1", "mat2", "op", "input")
_MATCHED = ("match", *_PRODUCT)


def _tensors(match: Any, mat1: Any, mat2: Any, op: Any, input: Any = None) -> Sequence[Any]:
    return (mat1, mat2) if input is None else (input, mat1, mat2)


def _question(
    operands: Sequence[Operand], match: Any, mat1: Any, mat2: Any, op: Any, input: Any = None
) -> Question | None:
    operator = OPERATORS.get(str(op))
    if operator is None or _is_settled(mat1.dtype, *operands[-2:]):
        return None
    return Question(operator, _flags(match), CHOICES)


def _is_settled(dtype: Any, mat1: Operand, mat2: Operand) -> bool:
    """Whether Inductor answers from its settings or a rule, without a benchmark.

    These answers stand: padding that the user forces, the bfloat16 rule that the user configures, and products that are
    not compute-bound, for which nobody has measured padding.
    """
    from torch._inductor import config
    from torch._inductor.fx_passes import pad_mm

    if config.force_shape_pad:
        return True
    m, k = mat1.shape[-2:]
    n = mat2.shape[-1]
    if "pad_aten_mm_pass" in config.post_grad_fusion_options and pad_mm.should_pad_mm_bf16(dtype, m, n, k):
        return True
    return not pad_mm.is_mm_compute_bound(m, k, n, dtype)


def _flags(match: Any) -> dict[str, Value]:
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


def uses_tf32() -> bool:
    """Whether float32 products may use TF32, as torch's own logs record it."""
    import torch

    return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")


def _answer(choice: str, *_: Any, **__: Any) -> bool:
    return choice == "pad"


def _meaning(pads: Any) -> str:
    return "pad" if pads else "orig"


def _times(key: str, ori_time: float, pad_time: float) -> dict[str, float]:
    return {"orig": float(ori_time), "pad": float(pad_time)}


def _capture(node: Any) -> tuple[Sequence[Any], Question] | None:
    operator = OPERATORS.get(str(getattr(node.target, "overloadpacket", "")))
    if operator is None:
        return None
    # As the pattern match of Inductor's padding pass, as far as the question goes.
    match = SimpleNamespace(kwargs={**node.kwargs, "mat1": node.args[-2], "mat2": node.args[-1]})
    return [tensor.meta["val"] for tensor in node.args], Question(operator, _flags(match), CHOICES)


PADDING = Site(
    name="padding",
    operators=tuple(OPERATORS.values()),
    # Inductor asks should_pad_mm and its like, but its pattern matcher has captured those; this one lies behind them.
    seam=Seam(_MODULE, "_should_pad", _MATCHED, "the padding decision"),
    tensors=_tensors,
    question=_question,
    answer=_answer,
    meaning=_meaning,
    helpers=(
        Seam(_MODULE, "is_mm_compute_bound", ("M", "K", "N", "dtype"), "what is never padded or measured"),
        Seam(_MODULE, "should_exclude_padding_time", ("match", "arg_name"), "padding that costs nothing"),
    ),
    gate=Seam(_MODULE, "can_pad", _PRODUCT, "padding under deterministic compilation"),
    measured=((Seam(_MODULE, "is_padded_faster", ("key", "ori_time", "pad_time"), "Inductor's measurements"), _times),),
    keys=(Seam(_MODULE, "should_pad_bench_key", _MATCHED, "the key of Inductor's own padding cache"),),
    capture=_capture,
)
