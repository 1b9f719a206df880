"""For authors of sites: the places in torch where operators are asked.

A :class:`Site` says what is special about one place: which function of torch decides there, how its arguments become a
question about an operator, and how a choice becomes what the function returns. Everything else is autoheur's: when
anybody is asked at all, the modes ``use``, ``collect`` and ``shadow``, the keys of torch's caches, deterministic
compilation, the time budget, records, logs and warnings. Whatever a site does wrong, torch answers as it would.

A plugin hands its sites over by the hook ``autoheur_sites``. ``examples/decompose_mm`` is a whole package that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from autoheur.types import Choice, Decision, Operand, Value

__all__ = ["Choice", "Decision", "Operand", "Question", "Seam", "Site", "Value"]


@attrs.frozen
class Seam:
    """A function of torch, by name, so that nothing of torch is imported before Inductor is.

    ``attribute`` may have dots, for a method of a class. ``parameters`` are passed by position: a function that cannot
    take them counts as missing in the torch that is installed. ``purpose`` is for ``autoheur doctor``.
    """

    module: str
    attribute: str
    parameters: tuple[str, ...] = ()
    purpose: str = ""

    @property
    def name(self) -> str:
        return f"{self.module}.{self.attribute}"


@attrs.frozen
class Question:
    """What a site asks: an operator, what the tensors do not tell, and the choices that are possible here.

    ``flags`` go to the operator's ``autoheur_extract``. ``choices`` ``None`` means those that the operator enumerates
    for the problem.
    """

    operator: str
    flags: Mapping[str, Value] = attrs.field(factory=dict)
    choices: Sequence[str | Choice] | None = None


_TEXTS: Any = attrs.validators.deep_iterable(attrs.validators.instance_of(str), attrs.validators.instance_of(tuple))
_SEAM = attrs.validators.instance_of(Seam)
_SEAMS = attrs.validators.deep_iterable(_SEAM, attrs.validators.instance_of(tuple))
_FUNCTION: Any = attrs.validators.is_callable()


@attrs.frozen(kw_only=True)
class Site:
    """One place where torch asks. Functions get the arguments of the seam as torch passes them.

    Attributes:
        name: the site's own name.
        operators: the names of the operators that it asks.
        seam: the function of torch that decides.
        tensors: returns the tensors that the decision is about, in the order of the operator's arguments; real, fake or
            symbolic ones. The first one's device is the one that counts. ``None``: torch shall answer as it would.
        question: gets these as :class:`~autoheur.types.Operand` values, then the seam's arguments; returns what to ask,
            or ``None`` where torch shall answer as it would, as where a setting of the user has settled it.
        answer: gets the name of a choice, then the seam's arguments; returns what the seam's function returns for it.
        meaning: gets what the seam's function returned; returns the name of the choice that this is.
        narrow: for a shortlist of several choices: gets the decision, the seam's own function, then its arguments;
            returns what the function returns where only the shortlist is benchmarked. Without it, torch decides.
        helpers: functions of torch that the others call. Where one is missing the site is left out.
        gate: a function of torch that says, before the seam is asked, whether there is anything to decide, and that
            says no under deterministic compilation since torch would have to measure. A decision measures nothing, so
            it is then asked again as if compilation were not deterministic.
        measured: functions that torch calls with times it has measured while it decides, each with a function of their
            arguments that returns the times in milliseconds by choice. They are kept in the modes ``collect`` and
            ``shadow``. Where one is missing the site still decides.
        keys: functions that return keys (texts) under which torch caches what it measured. In these two modes keys of
            our own are used, so that everything is measured once and the user's entries stay as they are.
        capture: for ``autoheur capture``: gets a node of a graph; returns the tensors and what would be asked of it, or
            ``None`` where it is nothing of this site's.
    """

    name: str = attrs.field(validator=attrs.validators.instance_of(str))
    operators: tuple[str, ...] = attrs.field(validator=[_TEXTS, attrs.validators.min_len(1)])
    seam: Seam = attrs.field(validator=_SEAM)
    tensors: Callable[..., Sequence[Any] | None] = attrs.field(validator=_FUNCTION)
    question: Callable[..., Question | None] = attrs.field(validator=_FUNCTION)
    answer: Callable[..., Any] = attrs.field(validator=_FUNCTION)
    meaning: Callable[[Any], str] = attrs.field(validator=_FUNCTION)
    narrow: Callable[..., Any] | None = None
    helpers: tuple[Seam, ...] = attrs.field(default=(), validator=_SEAMS)
    gate: Seam | None = attrs.field(default=None, validator=attrs.validators.optional(_SEAM))
    measured: tuple[tuple[Seam, Callable[..., Mapping[str, float]]], ...] = ()
    keys: tuple[Seam, ...] = attrs.field(default=(), validator=_SEAMS)
    capture: Callable[[Any], tuple[Sequence[Any], Question] | None] | None = None

    @property
    def needed(self) -> tuple[Seam, ...]:
        """Without one of these the site is left out."""
        return (self.seam, *((self.gate,) if self.gate else ()), *self.helpers)

    @property
    def optional(self) -> tuple[Seam, ...]:
        return (*self.keys, *(seam for seam, _ in self.measured))
