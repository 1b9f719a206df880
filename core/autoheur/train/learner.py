"""What a learner gets and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import attrs
import numpy as np
from numpy.typing import NDArray

from autoheur.heuristic.model import Forest, Input

Floats = NDArray[np.float64]


@attrs.frozen(eq=False)
class Examples:
    """Measured problems as a learner sees them: P problems, F problem inputs, C choices.

    ``inputs`` describes the F columns of ``matrix`` (P x F, float64). ``times`` (P x C) holds medians in
    milliseconds: NaN where a choice was not measured, did not pass the protocol's filter, or failed. ``spread``
    (P x C) is the relative standard deviation of the repetitions (0.02 is 2 %), NaN likewise. Every problem has at
    least two finite times. ``noise`` (P x C) is the standard error of the logarithm of each median, NaN likewise.
    ``weights`` (P) says how much each problem counts in fitting; ``None`` is 1 for all, and a learner may have a
    method that knows no weights. ``draw`` makes up to so many further problems within the range of these, without
    times: N x F, always the same ones. It is ``None`` where the operator cannot.
    """

    inputs: tuple[Input, ...]
    choices: tuple[str, ...]
    matrix: Floats
    times: Floats
    spread: Floats
    noise: Floats | None = None
    weights: Floats | None = None
    draw: Callable[[int], Floats] | None = None

    def take(self, indices: NDArray[np.intp]) -> Examples:
        """The examples at ``indices``, in that order."""
        return attrs.evolve(
            self,
            matrix=self.matrix[indices],
            times=self.times[indices],
            spread=self.spread[indices],
            noise=None if self.noise is None else self.noise[indices],
            weights=None if self.weights is None else self.weights[indices],
        )

    def __len__(self) -> int:
        return len(self.matrix)


def concatenate(parts: Sequence[Examples]) -> Examples:
    """All examples of several parts, which have the same inputs and choices, in that order."""

    def join(arrays: Sequence[Floats | None]) -> Floats | None:
        present = [array for array in arrays if array is not None]
        return np.concatenate(present) if len(present) == len(arrays) else None

    return attrs.evolve(
        parts[0],
        matrix=np.concatenate([part.matrix for part in parts]),
        times=np.concatenate([part.times for part in parts]),
        spread=np.concatenate([part.spread for part in parts]),
        noise=join([part.noise for part in parts]),
        weights=join([part.weights for part in parts]),
    )


class FittedModel(Protocol):
    """A fitted model: scores for training and evaluation, a forest for the artifact. Both agree bit for bit."""

    def scores(self, matrix: Floats) -> Floats:
        """Score every choice on every problem: P x F in, P x C out; higher is better."""
        ...

    def forest(self) -> Forest:
        """The model as data; ``Forest.inputs`` starts with the inputs of the examples it was fitted on."""
        ...


class Learner(Protocol):
    """Fits examples. ``name`` is how the command line calls it.

    ``grid`` is the default search grid: parameter -> values to try, in order. ``statistic`` is the policy statistic
    that suits its scores: ``ratio`` for scores that are speed-ups, ``difference`` for logarithms of them, ``score``
    for probabilities.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def grid(self) -> Mapping[str, Sequence[Any]]: ...

    @property
    def statistic(self) -> Literal["ratio", "difference", "score"]: ...

    def fit(self, examples: Examples, parameters: Mapping[str, Any]) -> FittedModel:
        """Fit one model; deterministic for the same examples and parameters.

        Raises:
            InputError: a parameter that the learner does not have, or a value out of its range.
        """
        ...


@runtime_checkable
class ToleranceAware(Protocol):
    """A learner that scores otherwise where a choice within a tolerance of the best is as good as the best."""

    def for_tolerance(self, tolerance: float) -> Learner:
        """The same learner, of the same name, for that tolerance (1.05: up to 5 % slower is good enough)."""
        ...
