"""An operator, with typed access to the hooks of its plugin."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from autoheur.errors import AutoheurError, InputError, PluginError, describe
from autoheur.fingerprint import Fingerprint
from autoheur.types import Choice, Feature, Operand, Operator, Problem, Provenance, Value, check_names

if TYPE_CHECKING:
    from autoheur.plugins import Plugin, PluginSet

T = TypeVar("T")


@attrs.frozen(eq=False)
class OperatorPlugin:
    """An operator with typed access to the hooks of its plugin.

    Whatever a plugin raises becomes a PluginError that names it; whoever calls while a user compiles must catch it.
    """

    operator: Operator
    plugin: Plugin
    _plugins: PluginSet

    @property
    def name(self) -> str:
        return self.operator.name

    @property
    def provenance(self) -> Provenance:
        return self.plugin.provenance

    @functools.cached_property
    def features(self) -> tuple[Feature, ...]:
        """The declared features, raw ones first.

        Raises:
            PluginError: the plugin returned something else than features with distinct names.
        """
        returned = checked(self._call("autoheur_features") or (), Iterable, "autoheur_features", self.provenance)
        features: tuple[Any, ...] = tuple(returned)
        if not features or not all(isinstance(feature, Feature) for feature in features):
            raise PluginError(f"{self.provenance}: autoheur_features must return autoheur.plugin.Feature values")
        if not all(isinstance(feature.name, str) and feature.name for feature in features):
            raise PluginError(f"{self.provenance}: autoheur_features returned a feature whose name is not text")
        if len({feature.name for feature in features}) != len(features):
            raise PluginError(f"{self.provenance}: autoheur_features names a feature twice")
        return features

    @property
    def raw_features(self) -> tuple[Feature, ...]:
        """Those that a problem names."""
        return tuple(feature for feature in self.features if not feature.derived and feature.of == "problem")

    @property
    def raw_choice_features(self) -> tuple[Feature, ...]:
        """Those that a choice names."""
        return tuple(feature for feature in self.features if not feature.derived and feature.of == "choice")

    def extract(self, operands: Sequence[Operand], flags: Mapping[str, Value]) -> Problem:
        return self._require("autoheur_extract", Mapping, operands=operands, flags=flags)

    def choices(self, problem: Problem | None = None) -> tuple[Choice, ...]:
        """The choices for a problem, or all that are known beforehand; a plain name is a choice without features.

        Raises:
            PluginError: the plugin returned something else than choices with distinct names and the declared features.
        """
        returned = self._require("autoheur_choices", Sequence, problem=problem)
        if isinstance(returned, str):  # which is a sequence, of letters
            raise PluginError(f"{self.provenance}: autoheur_choices returned the text {returned!r}, not a sequence")
        choices = tuple(Choice(choice) if isinstance(choice, str) else choice for choice in returned)
        for choice in choices:
            if not isinstance(choice, Choice) or not isinstance(choice.name, str) or not choice.name:
                raise PluginError(
                    f"{self.provenance}: autoheur_choices returned {choice!r}, neither a name nor an "
                    "autoheur.plugin.Choice with a name"
                )
            if flaw := value_flaw(choice.features, self.raw_choice_features):
                raise PluginError(f"{self.provenance}: autoheur_choices: choice {choice.name!r}: {flaw}")
        if len({choice.name for choice in choices}) != len(choices):
            raise PluginError(f"{self.provenance}: autoheur_choices returned a choice twice")
        return choices

    def choice_features(self, name: str) -> Mapping[str, Value] | None:
        """The raw features of a choice of which only the name is known; ``None`` where the plugin does not say.

        Raises:
            PluginError: the plugin returned something else than values of the declared features.
        """
        returned = self._call("autoheur_choice_features", name=name)
        if returned is None:
            return None
        features: Mapping[str, Value] = checked(returned, Mapping, "autoheur_choice_features", self.provenance)
        if flaw := value_flaw(features, self.raw_choice_features):
            raise PluginError(f"{self.provenance}: autoheur_choice_features: choice {name!r}: {flaw}")
        return features

    def complete(self, given: Mapping[str, Value]) -> Problem | None:
        """Complete a problem that is given in a short form; ``None`` where the plugin does not know short forms.

        Raises:
            InputError: what is given cannot be completed; the message says why.
            PluginError: the plugin returned something else than a problem.
        """
        try:
            returned = self._plugins.call(self.plugin, "autoheur_complete", operator=self.name, given=given)
        except ValueError as error:
            raise InputError(str(error)) from None
        except AutoheurError:
            raise
        except Exception as error:
            raise PluginError(f"{self.provenance}: autoheur_complete failed: {describe(error)}") from error
        if returned is None:
            return None
        problem: Problem = checked(returned, Mapping, "autoheur_complete", self.provenance)
        if flaw := value_flaw(problem, self.raw_features):
            raise PluginError(f"{self.provenance}: autoheur_complete returned a problem that does not fit: {flaw}")
        return problem

    def benchmark(self, problem: Problem, device: str) -> Mapping[str, Callable[[], object]]:
        return self._require("autoheur_benchmark", Mapping, problem=problem, device=device)

    def problems(self, random: Random, device: Fingerprint) -> Iterator[Problem]:
        return iter(self._require("autoheur_problems", Iterable, random=random, device=device))

    def precondition(self, device: Fingerprint) -> str | None:
        formula = self._call("autoheur_precondition", device=device)
        return None if formula is None else checked(formula, str, "autoheur_precondition", self.provenance)

    def _call(self, hook: str, **arguments: Any) -> Any:
        try:
            return self._plugins.call(self.plugin, hook, operator=self.name, **arguments)
        except AutoheurError:
            raise
        except Exception as error:
            raise PluginError(f"{self.provenance}: {hook} failed: {describe(error)}") from error

    def _require(self, hook: str, kind: type[T], **arguments: Any) -> T:
        result = self._call(hook, **arguments)
        if result is None:
            raise PluginError(f"{self.provenance}: operator {self.name!r} does not implement {hook}")
        return checked(result, kind, hook, self.provenance)


def checked(value: Any, kind: type[T], hook: str, provenance: Provenance | None) -> T:
    """Hold a plugin to the type that the hook promises."""
    if not isinstance(value, kind):
        raise PluginError(f"{provenance or 'a plugin'}: {hook} returned {value!r}, not a {kind.__name__}")
    return value


def value_flaw(values: Any, features: Sequence[Feature]) -> str | None:
    """How the raw features of a problem or choice differ from the declared ones, in names or kinds, if they do."""
    if not isinstance(values, Mapping):
        return f"{values!r} is no mapping of features to values"
    if flaw := check_names(list(values), [feature.name for feature in features]):
        return flaw
    for feature in features:
        value = values[feature.name]
        if not isinstance(value, str | int | float):
            return f"feature {feature.name} is {value!r}, neither a number nor text"
        if feature.kind == "numerical" and (isinstance(value, str) or value != value):
            return f"feature {feature.name} must be a number, not {value!r}"
        if feature.kind == "numerical" and feature.integer and not float(value).is_integer():
            return f"feature {feature.name} must be a whole number, not {value!r}"
    return None
