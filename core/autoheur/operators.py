"""An operator, with typed access to the hooks of its plugin."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from autoheur.errors import AutoheurError, PluginError, describe
from autoheur.fingerprint import Fingerprint
from autoheur.types import Feature, Operand, Operator, Problem, Provenance, Value

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
            raise PluginError(f"{self.provenance}: autoheur_features must return autoheur.types.Feature values")
        if not all(isinstance(feature.name, str) and feature.name for feature in features):
            raise PluginError(f"{self.provenance}: autoheur_features returned a feature whose name is not text")
        if len({feature.name for feature in features}) != len(features):
            raise PluginError(f"{self.provenance}: autoheur_features names a feature twice")
        return features

    @property
    def raw_features(self) -> tuple[Feature, ...]:
        """Those that a problem names."""
        return tuple(feature for feature in self.features if not feature.derived and feature.of == "problem")

    def extract(self, operands: Sequence[Operand], flags: Mapping[str, Value]) -> Problem:
        return self._require("autoheur_extract", Mapping, operands=operands, flags=flags)

    def choices(self, problem: Problem | None = None) -> tuple[str, ...]:
        return tuple(self._require("autoheur_choices", Sequence, problem=problem))

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
