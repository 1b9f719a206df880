"""Artifact -> program: the only place where models become code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from autoheur import formula as formulas
from autoheur.codegen import trees
from autoheur.codegen.names import Identifiers
from autoheur.codegen.nodes import (
    Argument,
    AtMost,
    Block,
    Derive,
    Device,
    Ensemble,
    Expression,
    Guard,
    InRange,
    IsChoice,
    Level,
    Matches,
    Number,
    OneOf,
    Program,
    Read,
    Split,
    Statements,
    Test,
    Truth,
)
from autoheur.codegen.sharing import share
from autoheur.codegen.thresholds import float64_limit
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.artifact import Artifact, raw_kinds
from autoheur.heuristic.model import flaw
from autoheur.types import Feature, FeatureKind

MAX_STATEMENTS = 600
"""Models up to this size (in lines, roughly) become nested ``if``; larger ones conditional expressions."""

MAX_DEPTH = 16
"""Deeper trees are not readable as nested ``if``."""

_LARGEST_WHOLE = 2**53


def lower(artifact: Artifact, reserved: tuple[str, ...]) -> Program:
    """Turn an artifact into a program whose variables avoid the ``reserved`` names.

    Raises:
        InputError: the model is not usable, see :func:`autoheur.heuristic.model.flaw`.
    """
    found = flaw(artifact.model, len(artifact.choices))
    if found:  # in an artifact that was made, not read
        raise InputError(f"{found}; train it again")
    return _Lowering(artifact, Identifiers(reserved)).program()


class _Lowering:
    def __init__(self, artifact: Artifact, identifiers: Identifiers) -> None:
        self.artifact = artifact
        self.identifiers = identifiers
        self.features = {feature.name: feature for feature in artifact.features}
        self.variables = {feature.name: identifiers.take(feature.name) for feature in artifact.features}
        kinds, integers = raw_kinds(self.features)
        self.open = not artifact.model.needs_names
        self.whole = integers | {f.name for f in artifact.features if _yields_whole_numbers(f, kinds, integers)}

    def program(self) -> Program:
        artifact = self.artifact
        model = self._model()
        precondition = None
        if artifact.precondition.formula is not None:
            precondition = formulas.parse(artifact.precondition.formula)
        used = set(_variables(model))
        derives = tuple(
            Derive(self.variables[f.name], formulas.parse(f.formula))
            for f in artifact.features
            if f.formula is not None and self.variables[f.name] in used
        )
        for formula in [derive.formula for derive in derives] + ([precondition] if precondition else []):
            used |= {self.variables[name] for name in formula.names}
        raw = [feature.name for feature in artifact.features if not feature.derived]
        shared = share(derives, raw, self.identifiers.take)
        variables = {name: self.variables[name] for name in raw} | shared.names
        own, theirs = self._part(shared.derives, variables)
        return Program(
            operator=artifact.operator,
            name=artifact.name,
            notes=_notes(artifact.provenance),
            choices=artifact.table(),
            raw_features=tuple(feature.name for feature in artifact.raw_features),
            variables=variables,
            precondition=precondition,
            problem=self._level(artifact.raw_features, own, used),
            choice=self._level(artifact.raw_choice_features, theirs, used) if self.open else None,
            model=model,
            statistic=artifact.model.statistic,
            threshold=float(artifact.policy.threshold),
            device=_device(artifact.precondition.device),
        )

    def _part(self, derives: Sequence[Derive], variables: Mapping[str, str]) -> tuple[list[Derive], list[Derive]]:
        """What can be computed for a problem, and what only for each of its choices."""
        of_choice = {self.variables[feature.name] for feature in self.artifact.raw_choice_features}
        own: list[Derive] = []
        theirs: list[Derive] = []
        for derive in derives:  # what a formula needs comes before it
            if of_choice.isdisjoint(variables[name] for name in derive.formula.names):
                own.append(derive)
            else:
                theirs.append(derive)
                of_choice.add(derive.variable)
        return own, theirs

    def _level(self, raw: Sequence[Feature], derives: Sequence[Derive], used: set[str]) -> Level:
        guards = tuple(self._guards(raw)) if self.artifact.policy.guard else ()
        needed = used | {guard.variable for guard in guards}
        reads = (Read(self.variables[f.name], f.name, f.kind == "categorical") for f in raw)
        return Level(tuple(read for read in reads if read.variable in needed), guards, tuple(derives))

    def _model(self) -> Statements | Ensemble:
        forest, choices = self.artifact.model, self.artifact.choices
        if all(trees.depth(tree) <= MAX_DEPTH for tree in forest.trees):
            block = trees.to_blocks(forest, 1 if self.open else len(choices), self._resolve, MAX_STATEMENTS)
            if block is not None:
                names = ["score"] if self.open else map(self._score_variable, choices, itertools.count())
                return Statements(block, tuple(self.identifiers.take(name, prefix="") for name in names))
        arguments = _Arguments(self._resolve, self.identifiers)
        expressions = trees.Expressions(arguments.resolve)
        roots = tuple(expressions.convert(tree) for tree in forest.trees)
        return Ensemble(
            arguments=arguments.used_by((*roots, *expressions.parts)),
            base=tuple(forest.base),
            trees=roots,
            parts=tuple(expressions.parts),
            per_choice=forest.layout == "row",
            names_choice=forest.layout == "row" and not self.open,
        )

    @staticmethod
    def _score_variable(choice: str, position: int) -> str:
        return f"score_{choice if len(choice) <= 20 else position}"

    def _resolve(self, position: int, threshold: float) -> Test | bool:
        """``input[position] <= threshold`` as a test, or as True or False where that is all it can be."""
        column = self.artifact.model.inputs[position]
        if column.choice is not None or column.category is not None:
            # An indicator is 0 or 1, so all that matters is between which of them the threshold lies.
            if threshold < 0:
                return False
            if threshold >= 1:
                return True
        if column.choice is not None:
            return IsChoice(self.artifact.choices.index(column.choice), equal=False)
        assert column.feature is not None, "an input is a choice, or comes from a feature"
        feature = self.features[column.feature]
        variable = self.variables[feature.name]
        if column.category is None:
            return self._at_most(feature, variable, threshold)
        if not feature.derived:
            return Matches(variable, column.category, equal=False)
        if column.category not in ("False", "True"):
            return True  # a truth value is never any other category
        return Truth(variable, expected=column.category == "False")

    def _at_most(self, feature: Feature, variable: str, threshold: float) -> Test | bool:
        limit = float64_limit(threshold) if self.artifact.model.precision == "float32" else threshold
        if math.isinf(limit):
            return limit > 0
        if feature.name in self.whole and abs(limit) < _LARGEST_WHOLE:
            return AtMost(variable, math.floor(limit))
        return AtMost(variable, limit)

    def _guards(self, raw: Sequence[Feature]) -> Iterator[Guard]:
        for feature in raw:
            seen = self.artifact.seen.get(feature.name)
            variable = self.variables[feature.name]
            if seen is None:
                continue
            if seen.categories is not None:
                yield OneOf(variable, tuple(sorted(set(seen.categories))))
            elif seen.low is not None and seen.high is not None:
                yield InRange(variable, _short(seen.low), _short(seen.high))


def _yields_whole_numbers(feature: Feature, kinds: Mapping[str, FeatureKind], integers: frozenset[str]) -> bool:
    """Whether a derived feature's formula can only give whole numbers."""
    if feature.formula is None:
        return False
    return feature.integer or formulas.parse(feature.formula).kind(kinds, integers) == "integer"


class _Arguments:
    """Gives the inputs of an ensemble short names, in order of first use."""

    def __init__(self, resolve: trees.Resolve, identifiers: Identifiers) -> None:
        self._resolve = resolve
        self._identifiers = identifiers
        self._arguments: dict[str | Matches, Argument] = {}

    def resolve(self, position: int, threshold: float) -> Test | bool:
        test = self._resolve(position, threshold)
        match test:
            case AtMost(variable=variable, limit=limit):
                return AtMost(self._name(variable), limit)
            case Truth(variable=variable, expected=expected):
                return Truth(self._name(variable), expected)
            case Matches(variable=variable, category=category, equal=equal):
                return Truth(self._name(Matches(variable, category, equal=True)), expected=equal)
        return test

    def _name(self, value: str | Matches) -> str:
        if value not in self._arguments:
            name = f"x{len(self._arguments)}"
            if isinstance(value, str):
                self._arguments[value] = Argument(name, value)
            else:
                variable = self._identifiers.take(f"{value.variable}_is_{value.category}", prefix="")
                self._arguments[value] = Argument(name, variable, value)
        return self._arguments[value].name

    def used_by(self, roots: tuple[Expression, ...]) -> tuple[Argument, ...]:
        """The inputs that some tree still tests; a test whose branches turned out equal is gone."""
        tested = {test.variable for test in trees.tests(roots) if not isinstance(test, IsChoice)}
        return tuple(argument for argument in self._arguments.values() if argument.name in tested)


def _variables(model: Statements | Ensemble) -> Iterator[str]:
    """The variables that a model reads."""
    if isinstance(model, Statements):
        yield from _block_variables(model.block)
        return
    for argument in model.arguments:
        yield argument.test.variable if argument.test else argument.variable


def _block_variables(block: Block) -> Iterator[str]:
    for statement in block:
        if isinstance(statement, Split):
            if not isinstance(statement.test, IsChoice):
                yield statement.test.variable
            yield from _block_variables(statement.then)
            yield from _block_variables(statement.orelse)


def _short(value: float) -> Number:
    """A whole number without its decimal point, where that loses nothing."""
    return int(value) if float(value).is_integer() and abs(value) < _LARGEST_WHOLE else float(value)


def _notes(provenance: Mapping[str, object]) -> tuple[str, ...]:
    """Where the heuristic was learned, as far as its provenance says so in plain words."""
    return tuple(
        f"{key.capitalize()}: {provenance[key]}"
        for key in ("learner", "dataset")
        if isinstance(provenance.get(key), str | int | float)
    )


def _device(requirement: Fingerprint) -> Device:
    """What PyTorch's metadata says of such a device; it writes capability (0, 0) where there is no CUDA device."""
    capability = requirement.capability
    if capability is None and requirement.kind == "cpu":
        capability = "0.0"
    written = None if capability is None else f"({', '.join(capability.split('.'))})"
    return Device(capability=written, shared_memory=requirement.shared_memory)
