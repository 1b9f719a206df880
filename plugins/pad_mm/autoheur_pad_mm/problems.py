"""Problems worth measuring for pad_mm."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from autoheur.plugin import Fingerprint, Problem
from autoheur_pad_mm import sampling
from autoheur_pad_mm.features import extract, smallest_size


def sample(random: Random, device: Fingerprint) -> Iterator[Problem]:
    """Sample problems that fit on ``device``, need padding and meet the precondition, without end."""
    smallest = smallest_size(device)
    while True:
        dtype = random.choice(sampling.DTYPES)
        m, k, n = sampling.draw_sizes(random, sampling.Limits.draw(random, device, dtype))
        transposed1, transposed2 = sampling.draw_transposed(random)
        operands = sampling.matrix(m, k, dtype, transposed1), sampling.matrix(k, n, dtype, transposed2)
        problem = extract(operands, sampling.draw_flags(random, device, *operands))
        if sampling.needs_padding(problem) and min(m, k, n) >= smallest:
            yield problem
