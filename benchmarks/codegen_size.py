"""Size and speed of generated code: a pair of depth-5 trees and an ensemble of 200 trees, both synthetic.

Prints, per model, the bytes of source, the time to compile it (once per process), and the time of one warm decision,
all features included. Run it with ``python benchmarks/codegen_size.py``.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from autoheur.codegen import compile_artifact, generate
from autoheur.heuristic.artifact import Artifact, Seen
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.types import Feature, Problem

SIZES = ("m", "k", "n", "mat1_stride_0", "mat2_stride_0")
DTYPES = ("torch.bfloat16", "torch.float16", "torch.float32")
FEATURES = [
    *(Feature(name, integer=True) for name in SIZES),
    Feature("mat1_dtype", "categorical"),
    Feature("m*n", formula="m * n"),
    Feature("k/(m*n)", formula="k / (m * n)"),
    Feature("arith_intensity", formula="m * k * n / (m * k + k * n + m * n)"),
    Feature("k_multiple_8", "categorical", formula="k % 8 == 0"),
]
INPUTS = [
    *(Input(feature.name) for feature in FEATURES if feature.kind == "numerical"),
    *(Input("mat1_dtype", dtype) for dtype in DTYPES),
    Input("k_multiple_8", "True"),
    Input(choice="orig"),
    Input(choice="pad"),
]
CHOICES = ["orig", "pad"]


def random_problem(source: random.Random) -> dict[str, float | str]:
    sizes = {name: float(source.randint(1, 16384)) for name in SIZES}
    return {**sizes, "mat1_dtype": source.choice(DTYPES)}


def random_threshold(column: Input, source: random.Random) -> float:
    if column.category is not None or column.choice is not None:
        return 0.5
    m, k, n = (source.randint(1, 16384) for _ in "mkn")
    values = {"m*n": m * n, "k/(m*n)": k / (m * n), "arith_intensity": m * k * n / (m * k + k * n + m * n)}
    return values.get(column.feature or "", m) + 1e-9


def random_tree(leaves: int, source: random.Random, start: int | None = None) -> Tree:
    """Grow a tree by splitting its shallowest leaf; the root tests input ``start`` where that is given."""
    tree = Tree([-1], [0.0], [0], [0], [[1.0 + source.gauss(0, 0.1)]])
    frontier = [0]
    while len(frontier) < leaves:
        node = frontier.pop(0)
        chosen = start if node == 0 and start is not None else source.randrange(len(INPUTS))
        tree.feature[node], tree.threshold[node] = chosen, random_threshold(INPUTS[chosen], source)
        for side in (tree.left, tree.right):
            side[node] = len(tree.feature)
            frontier.append(side[node])
            for column, value in ((tree.feature, -1), (tree.left, 0), (tree.right, 0)):
                column.append(value)
            tree.threshold.append(0.0)
            tree.value.append([1.0 + source.gauss(0, 0.1)])
    return tree


def synthetic(name: str, trees: list[Tree]) -> Artifact:
    seen = {size: Seen(1.0, 16384.0) for size in SIZES}
    seen["mat1_dtype"] = Seen(categories=list(DTYPES))
    return Artifact("pad_mm", name, FEATURES, CHOICES, Forest(INPUTS, [0.0], trees), Policy(1.1, guard=True), seen=seen)


def microseconds(decide: Callable[[Problem], object], problems: list[dict[str, float | str]]) -> float:
    """Median of 15 passes over the problems, per decision."""
    passes = []
    for _ in range(15):
        start = time.perf_counter()
        for problem in problems:
            decide(problem)
        passes.append((time.perf_counter() - start) / len(problems) * 1e6)
    return statistics.median(passes)


def main() -> None:
    source = random.Random(0)
    problems = [random_problem(source) for _ in range(500)]
    models = {
        "2 trees of depth 5": [random_tree(64, source, start=len(INPUTS) - 1)],  # the root tells the choices apart
        "200 trees of 31 leaves": [random_tree(31, source) for _ in range(200)],
    }
    table = Table("model", "bytes", "lines", "compile ms", "µs per decision")
    for name, trees in models.items():
        artifact = synthetic(name, trees)
        text = generate(artifact)
        start = time.perf_counter()
        decide = compile_artifact(artifact).decide
        elapsed = (time.perf_counter() - start) * 1e3
        cost = microseconds(decide, problems)
        table.add_row(name, f"{len(text):,}", f"{text.count(chr(10)):,}", f"{elapsed:.1f}", f"{cost:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
