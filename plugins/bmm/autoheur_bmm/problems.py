"""Problems worth measuring for bmm."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from autoheur.plugin import Fingerprint, Operand, Problem
from autoheur_bmm.features import extract
from autoheur_pad_mm import sampling

LARGEST_BATCH = 256
LARGEST = 4096
"""The largest m, k and n: the matrices of a batch are small."""

EXPANDED = 0.1
"""Probability that an operand is one matrix expanded to the batch (stride 0)."""

INTERLEAVED = 0.1
"""Probability that the batch runs inside the rows, as where attention heads are split off the last dimension."""


def sample(random: Random, device: Fingerprint) -> Iterator[Problem]:
    """Sample problems that fit on ``device`` and need padding, without end."""
    while True:
        dtype = random.choice(sampling.DTYPES)
        b = sampling.draw_batch(random, LARGEST_BATCH)
        m, k, n = sampling.draw_sizes(random, sampling.Limits.draw(random, device, dtype), LARGEST, b)
        transposed1, transposed2 = sampling.draw_transposed(random)
        operands = (
            _draw_batched(random, b, m, k, dtype, transposed1),
            _draw_batched(random, b, k, n, dtype, transposed2),
        )
        problem = extract(operands, sampling.draw_flags(random, device, *operands))
        if sampling.needs_padding(problem):
            yield problem


def _draw_batched(random: Random, b: int, rows: int, columns: int, dtype: str, transposed: bool) -> Operand:
    """A batch of row-major (or, transposed, column-major) matrices: dense, expanded, or interleaved."""
    inner = rows if transposed else columns
    layout = random.random()
    if layout < EXPANDED:
        batch_stride, outer_stride = 0, inner
    elif layout < EXPANDED + INTERLEAVED:
        batch_stride, outer_stride = inner, b * inner
    else:
        batch_stride, outer_stride = rows * columns, inner
    stride = (batch_stride, 1, outer_stride) if transposed else (batch_stride, outer_stride, 1)
    return Operand((b, rows, columns), stride, dtype)
