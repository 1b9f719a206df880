"""The small vocabulary types that every layer shares. Standard library and attrs only."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

Value = float | int | bool | str
"""One raw feature value. Categories may be any of these; they are compared by their ``str()``."""

Problem = Mapping[str, Value]
"""One concrete instance of a decision: raw feature name -> value."""

FeatureKind = Literal["numerical", "categorical"]


@attrs.frozen
class Feature:
    """One named number or category that a heuristic may look at.

    A *raw* feature is stored in datasets. It belongs to the problem, which hands it in, or, with ``of="choice"``, to
    each choice: a block size, say. A *derived* feature has a ``formula`` over raw ones of either kind (see
    :mod:`autoheur.formula`) and is computed wherever it is needed: vectorised in training, inline in generated code.
    Its ``of`` says nothing; what it belongs to follows from the names it reads. A formula that yields a truth value is
    a categorical feature with the categories ``False`` and ``True``.

    ``integer`` says that a numerical feature only takes whole numbers; generated code then shows whole thresholds.
    ``protocol`` names the one training protocol that looks at the feature (``None``: all do): one that reproduces a
    published method sees exactly what that had, and others need not see it.
    """

    name: str
    kind: FeatureKind = "numerical"
    description: str = ""
    formula: str | None = None
    integer: bool = False
    protocol: str | None = None
    of: Literal["problem", "choice"] = "problem"

    @property
    def derived(self) -> bool:
        return self.formula is not None


@attrs.frozen
class Choice:
    """One of the alternatives that a problem has.

    ``features`` are the raw features that its operator declares with ``of="choice"``, all of them; a number that does
    not apply (the block size of a library call) is 0. An operator without such features needs no ``Choice``: there a
    plain name will do, and the name is all that tells choices apart.
    """

    name: str
    features: Mapping[str, Value] = attrs.field(factory=dict, hash=False)


@attrs.frozen
class Operator:
    """What an operator is called and how it behaves when nobody knows better.

    ``default_choice`` is taken under deterministic compilation when the heuristic is unsure. ``overrides`` names
    distributions whose operator of the same name this one replaces on purpose.
    """

    name: str
    description: str = ""
    default_choice: str | None = None
    overrides: tuple[str, ...] = ()


@attrs.frozen
class Operand:
    """A tensor as far as a decision is concerned; built from real, fake or symbolic tensors alike.

    ``shape`` and ``stride`` are in elements, with symbolic sizes replaced by their hints; ``static`` tells per
    dimension whether the size was a plain integer (Inductor pads only those). ``dtype`` is torch's spelling, for
    example ``torch.float16``.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    static: tuple[bool, ...] | None = None

    def is_static(self, dim: int) -> bool:
        return self.static is None or self.static[dim]


class Reason(enum.StrEnum):
    """Why a decision came out as it did."""

    DECIDED = "decided"
    ONLY_CHOICE = "only_choice"
    SHORTLISTED = "shortlisted"
    BELOW_THRESHOLD = "below_threshold"
    OUT_OF_RANGE = "out_of_range"
    NO_HEURISTIC = "no_heuristic"
    PRECONDITION = "precondition"
    PLUGIN_ERROR = "plugin_error"


INSTALLED = "installed"
"""Stands for the distribution of what no plugin brought, but the user installed."""


@attrs.frozen
class Provenance:
    """Where a value came from: the plugin (entry-point name), its distribution and that distribution's version."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        if self.distribution == INSTALLED:
            return "the installed artifacts"
        return f"{self.plugin} ({self.distribution} {self.version})"


@attrs.frozen
class Decision:
    """What is left of the choices that were offered, and why.

    ``shortlist`` holds those that may be the best, the best-scored first, and nothing that was not offered. One:
    decided. Some: only these need to be benchmarked. All that were offered: *unsure*, and autotuning happens as if
    nobody had been asked; the shortlist is empty where nobody knows what was offered.

    ``confidence`` is the policy's statistic of the best-scored choice against the next one and is compared with the
    heuristic's threshold; 0.0 where no heuristic was evaluated. ``detail`` adds words where the reason alone does not
    say enough.
    """

    operator: str
    shortlist: tuple[str, ...]
    reason: Reason
    confidence: float = 0.0
    heuristic: str | None = None
    provenance: Provenance | None = None
    detail: str = ""

    @property
    def choice(self) -> str | None:
        """The choice, where it is decided."""
        return self.shortlist[0] if self.reason in _DECIDES else None

    @property
    def unsure(self) -> bool:
        """Whether every choice that was offered is left."""
        return self.reason not in _DECIDES and self.reason is not Reason.SHORTLISTED

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "operator": self.operator,
            "decision": self.choice or ("unsure" if self.unsure else "shortlist"),
            "choice": self.choice,
            "shortlist": list(self.shortlist),
            "unsure": self.unsure,
            "reason": self.reason.value,
            "confidence": self.confidence if math.isfinite(self.confidence) else None,
            "heuristic": self.heuristic,
            "provenance": str(self.provenance) if self.provenance else None,
            "detail": self.detail,
        }


_DECIDES = frozenset((Reason.DECIDED, Reason.ONLY_CHOICE))


def check_names(given: Sequence[str], expected: Sequence[str]) -> str | None:
    """Describe how ``given`` differs from ``expected`` names, or return ``None`` when they agree as sets."""
    missing = [name for name in expected if name not in given]
    unknown = [name for name in given if name not in expected]
    if not missing and not unknown:
        return None
    parts = []
    if missing:
        parts.append(f"missing {', '.join(missing)}")
    if unknown:
        parts.append(f"unknown {', '.join(map(str, unknown))}")
    return f"{'; '.join(parts)} (expected exactly: {', '.join(expected)})"
