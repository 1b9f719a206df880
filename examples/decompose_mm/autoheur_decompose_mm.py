"""Shall Inductor decompose a small matrix product into a multiplication and a sum, which can be fused with others?

A whole plugin with an operator and a site. Inductor asks where its pass is switched on, on GPU and CPU:
``torch._inductor.config.post_grad_fusion_options = {"decompose_mm_pass": {}}``. By itself it goes by fixed sizes; on
a CPU it decomposes products of one row and at most 2048 columns.
"""

import functools

from autoheur.plugin import Feature, Operator, hookimpl
from autoheur.site import Question, Seam, Site

MOST_ROWS = 64
"""A product of more rows is no candidate: it is not bound by memory."""


def _tensors(mat1, mat2):
    """The fake tensors of two nodes of the graph; nothing to ask where a node has none."""
    if "val" in mat1.meta and "val" in mat2.meta:
        return mat1.meta["val"], mat2.meta["val"]
    return None


def _question(operands, mat1, mat2):
    if all(len(operand.shape) == 2 and all(operand.static) for operand in operands):
        return Question("decompose_mm")
    return None  # of symbolic sizes Inductor decides by itself


DECOMPOSE = Site(
    name="decompose_mm",
    operators=("decompose_mm",),
    seam=Seam(
        "torch._inductor.fx_passes.decompose_mem_bound_mm",
        "should_decompose_mm",
        ("mat1", "mat2"),
        "whether products are decomposed",
    ),
    tensors=_tensors,
    question=_question,
    answer=lambda choice, mat1, mat2: choice == "decompose",
    meaning=lambda value: "decompose" if value else "keep",
)


@hookimpl
def autoheur_sites():
    return [DECOMPOSE]


@hookimpl
def autoheur_operator():
    return Operator("decompose_mm", "Decompose a small matrix product, or keep it", default_choice="keep")


@hookimpl
def autoheur_features():
    return [
        Feature("m", description="rows of mat1", integer=True),
        Feature("k", description="columns of mat1, rows of mat2", integer=True),
        Feature("n", description="columns of mat2", integer=True),
        Feature("dtype", "categorical"),
        Feature("m*k*n", description="multiplications", formula="m * k * n"),
        Feature("k*n", description="elements of mat2", formula="k * n"),
    ]


@hookimpl
def autoheur_extract(operands):
    mat1, mat2 = operands
    return {"m": mat1.shape[0], "k": mat1.shape[1], "n": mat2.shape[1], "dtype": mat1.dtype}


@hookimpl
def autoheur_choices(problem):
    return ["keep", "decompose"] if problem is None or problem["m"] <= MOST_ROWS else ["keep"]


@hookimpl
def autoheur_benchmark(problem, device):
    import torch

    m, k, n = (int(problem[size]) for size in "mkn")
    dtype = getattr(torch, problem["dtype"].removeprefix("torch."))
    mat1, mat2 = torch.randn(m, k, device=device, dtype=dtype), torch.randn(k, n, device=device, dtype=dtype)
    return {"keep": lambda: mat1 @ mat2, "decompose": lambda: _decomposed()(mat1, mat2)}


@functools.cache
def _decomposed():
    """What Inductor makes of a decomposed product, for any sizes."""
    import torch

    return torch.compile(lambda mat1, mat2: (mat1[:, :, None] * mat2[None, :, :]).sum(dim=1), dynamic=True)


@hookimpl
def autoheur_problems(random):
    while True:
        m, k, n = random.randint(1, MOST_ROWS), 2 ** random.randint(2, 11), 2 ** random.randint(2, 11)
        yield {"m": m, "k": k, "n": n, "dtype": "torch.float32"}
