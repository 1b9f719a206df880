"""Problems worth measuring for addmm."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from autoheur.plugin import Fingerprint, Operand, Problem
from autoheur_addmm.features import bias_shape, extract
from autoheur_pad_mm import sampling

FORMS = {"n": 0.6, "1n": 0.1, "m1": 0.05, "mn": 0.2, "1": 0.05}
"""bias form -> probability: a linear layer's bias most of all."""

BETAS = {1.0: 0.9, 0.0: 0.05, 0.5: 0.05}


def sample(random: Random, device: Fingerprint) -> Iterator[Problem]:
    """Sample problems that fit on ``device`` and need padding, without end."""
    while True:
        dtype = random.choice(sampling.DTYPES)
        m, k, n = sampling.draw_sizes(random, sampling.Limits.draw(random, device, dtype))
        transposed1, transposed2 = sampling.draw_transposed(random)
        shape = bias_shape(random.choices(list(FORMS), list(FORMS.values()))[0], m, n)
        beta = random.choices(list(BETAS), list(BETAS.values()))[0]
        bias = Operand(shape, (*shape[1:], 1), dtype)
        operands = sampling.matrix(m, k, dtype, transposed1), sampling.matrix(k, n, dtype, transposed2)
        flags = {**sampling.draw_flags(random, device, *operands), "beta": beta}
        problem = extract((bias, *operands), flags)
        if sampling.needs_padding(problem):
            yield problem
