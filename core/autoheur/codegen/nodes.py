"""What generated code is made of: a small typed tree that knows neither models nor any target's syntax.

Variables are finished identifiers here; every other name is data and becomes a string literal. Trees test variables
and end in numbers. A :class:`Statements` model is printed as nested ``if``; an :class:`Ensemble` as one conditional
expression per tree and a loop that adds them up.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from autoheur.formula import Formula
from autoheur.heuristic.model import Statistic
from autoheur.types import Value

Number = float | int


@attrs.frozen
class Read:
    """Fetch a raw feature: as text when ``categorical``, else as a float."""

    variable: str
    feature: str
    categorical: bool


@attrs.frozen
class InRange:
    """Guard: ``low <= variable <= high``."""

    variable: str
    low: Number
    high: Number


@attrs.frozen
class OneOf:
    """Guard: the variable is one of the categories."""

    variable: str
    categories: tuple[str, ...]


Guard = InRange | OneOf


@attrs.frozen
class Derive:
    """Compute a derived feature."""

    variable: str
    formula: Formula


@attrs.frozen
class AtMost:
    """``variable <= limit``, compared in float64."""

    variable: str
    limit: Number


@attrs.frozen
class Matches:
    """The text variable equals the category, or, with ``equal`` false, differs from it."""

    variable: str
    category: str
    equal: bool


@attrs.frozen
class Truth:
    """The truth variable is as expected."""

    variable: str
    expected: bool


@attrs.frozen
class IsChoice:
    """The choice being scored is number ``index``, or, with ``equal`` false, another one."""

    index: int
    equal: bool


Test = AtMost | Matches | Truth | IsChoice


@attrs.frozen
class Assign:
    """Set the scores of the choices ``targets`` to ``value``, or add ``value`` to them."""

    targets: tuple[int, ...]
    value: float
    add: bool


@attrs.frozen
class Split:
    test: Test
    then: Block
    orelse: Block


Block = tuple[Assign | Split, ...]


@attrs.frozen
class Statements:
    """A small model: after the block, every choice has its score. ``scores`` names the variables, one per choice."""

    block: Block
    scores: tuple[str, ...]


@attrs.frozen(eq=False)
class Leaf:
    """The end of a tree: one number, or one per choice."""

    values: tuple[float, ...]


@attrs.frozen(eq=False)
class Branch:
    test: Test
    then: Expression
    orelse: Expression


@attrs.frozen(eq=False)
class Part:
    """A subtree moved out, because the whole would be nested too deeply for Python's parser."""

    index: int


Expression = Leaf | Branch | Part


@attrs.frozen
class Argument:
    """One input of an ensemble: ``name`` inside its trees, ``variable`` outside, where ``test`` gives its value.

    Without a ``test`` the variable is a feature.
    """

    name: str
    variable: str
    test: Matches | None = None


@attrs.frozen
class Ensemble:
    """A large model: ``base`` plus the trees, added in order.

    ``per_choice``: leaves hold one number and the trees are evaluated once for every choice; otherwise leaves hold
    one number per choice and the trees are evaluated once. ``names_choice``: some test asks which choice it is.
    """

    arguments: tuple[Argument, ...]
    base: tuple[float, ...]
    trees: tuple[Expression, ...]
    parts: tuple[Expression, ...]
    per_choice: bool
    names_choice: bool


@attrs.frozen
class Level:
    """What is read, checked and computed once for a problem, or once for each of its choices."""

    reads: tuple[Read, ...]
    guards: tuple[Guard, ...]
    derives: tuple[Derive, ...]


@attrs.frozen
class Device:
    """The part of a device requirement that PyTorch's heuristics can check: text forms of torch's own metadata."""

    capability: str | None
    shared_memory: int | None


@attrs.frozen
class Program:
    """One heuristic. ``variables`` maps raw features to identifiers, for formulas; ``notes`` become comments.

    ``choices`` are those that training saw, with their raw features. ``choice`` is ``None`` where the model tells
    choices apart by their names and so scores only these; else it scores any choice, by the features in there.
    """

    operator: str
    name: str
    notes: tuple[str, ...]
    choices: Mapping[str, Mapping[str, Value]]
    raw_features: tuple[str, ...]
    variables: Mapping[str, str]
    precondition: Formula | None
    problem: Level
    choice: Level | None
    model: Statements | Ensemble
    statistic: Statistic
    threshold: float
    device: Device
