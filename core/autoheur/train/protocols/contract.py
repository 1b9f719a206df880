"""What a training protocol gets and what it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from autoheur.errors import InputError
from autoheur.heuristic.model import Forest, Policy
from autoheur.learning import Examples, Learner, Mask
from autoheur.train.examples import Filter
from autoheur.train.figures import Row
from autoheur.train.search import Candidate, Progress


@attrs.frozen
class Options:
    """What the user asks of a heuristic.

    ``max_wrong_rate`` bounds the rate of wrong decisions among all problems, with ``confidence``; ``None`` is the
    protocol's default, or as close to it as the data supports. A choice up to ``tolerance`` times slower than the best
    is good enough; at 1 every choice but the quickest is wrong. ``seed`` is that of random splits.
    """

    max_wrong_rate: float | None = None
    confidence: float = 0.95
    tolerance: float = 1.05
    seed: int = 42

    def check(self) -> None:
        """Raises:
        InputError: a value out of its range.
        """
        for name in ("max_wrong_rate", "confidence"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise InputError(f"{name.replace('_', ' ')} must be between 0 and 1, not {value}")
        if not self.tolerance >= 1:
            raise InputError(f"tolerance must be at least 1 (1.05 allows 5 % slower), not {self.tolerance}")
        if not 0 <= self.seed < 2**32:
            raise InputError(f"seed must be a whole number from 0 to 4294967295, not {self.seed}")


@attrs.frozen(eq=False)
class Data:
    """Examples for training and judging, all with the same inputs and choices.

    ``train`` and ``val`` may be used in any way, ``test`` (where there is one) and ``evals`` are only judged.
    ``within`` (P) says of their problems, and ``trusted`` (P x C) of their choices, whether they lie within the ranges
    and categories of train and val. Choices that train and val do not have come after the others.
    """

    train: Examples
    val: Examples
    test: Examples | None = None
    evals: Mapping[str, Examples] = attrs.field(factory=dict)
    within: Mapping[str, Mask] = attrs.field(factory=dict)
    trusted: Mapping[str, Mask] = attrs.field(factory=dict)

    def named(self) -> dict[str, Examples]:
        """Every set under its name, in the order of the result table."""
        sets = {"train": self.train, "val": self.val}
        if self.test is not None:
            sets["test"] = self.test
        return {**sets, **self.evals}


@attrs.frozen(eq=False)
class Outcome:
    """The model a protocol settles on, the policy for it, and the rows of the result table, chosen or not.

    ``notes`` are lines for the user; ``evidence`` is what the artifact's provenance says of the threshold.
    """

    learner: Learner
    parameters: Mapping[str, Any]
    forest: Forest
    policy: Policy
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    evidence: Mapping[str, Any] = attrs.field(factory=dict)


class TrainingProtocol(Protocol):
    """How candidates are fitted, compared and given a threshold.

    ``rule`` filters train, val and test; datasets of ``Data.evals`` are not filtered. ``default_learner`` is used where
    none is asked for.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def rule(self) -> Filter: ...

    @property
    def default_learner(self) -> str: ...

    def run(
        self, data: Data, candidates: Sequence[Candidate], options: Options, progress: Progress | None
    ) -> Outcome: ...
