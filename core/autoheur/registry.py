"""The registry: operators, learners and heuristics by name, and the decision."""

from __future__ import annotations

import copy
import functools
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import attrs

from autoheur import fingerprint
from autoheur.errors import AutoheurError, InputError, PluginError
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic import artifact as artifacts
from autoheur.heuristic import torch_artifacts
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.store import Store
from autoheur.types import (
    Decision,
    Feature,
    Operand,
    Operator,
    Problem,
    Provenance,
    Reason,
    Value,
    check_names,
)

if TYPE_CHECKING:
    from autoheur.plugins import Plugin, PluginSet, Source
    from autoheur.train.learner import Learner

logger = logging.getLogger(__name__)

T = TypeVar("T")

Tier = Literal["installed", "third-party", "shipped", "torch"]
TIERS: tuple[Tier, ...] = ("installed", "third-party", "shipped", "torch")
"""Who provides a heuristic, in order of precedence."""

Answer = tuple[str | None, str, float]
"""What generated code answers: choice or ``None``, the reason's value, the policy's statistic."""

_REASONS = {reason.value: reason for reason in Reason}


@attrs.frozen(eq=False)
class Heuristic:
    """An artifact made callable. ``path`` is the artifact's file; ``provenance`` says which plugin brought it."""

    artifact: Artifact
    tier: Tier
    provenance: Provenance
    path: Path
    names: frozenset[str]
    """The raw features that a problem must name."""

    @property
    def name(self) -> str:
        return self.artifact.name

    @property
    def device(self) -> Fingerprint:
        return self.artifact.precondition.device

    @functools.cached_property
    def function(self) -> Callable[[Problem], Answer]:
        """The generated decision function; compiled at first use."""
        from autoheur.codegen import compile_artifact

        return compile_artifact(self.artifact).decide


@attrs.frozen
class BrokenHeuristic:
    """An artifact file that cannot be used, and why."""

    path: Path
    tier: Tier
    provenance: Provenance
    error: str


@attrs.frozen(eq=False)
class OperatorPlugin:
    """An operator with typed access to the hooks of its plugin.

    Everything that a plugin raises passes through; whoever calls while a user compiles must catch it.
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
        features = tuple(self._call("autoheur_features") or ())
        if not features or not all(isinstance(feature, Feature) for feature in features):
            raise PluginError(f"{self.provenance}: autoheur_features must return autoheur.types.Feature values")
        if len({feature.name for feature in features}) != len(features):
            raise PluginError(f"{self.provenance}: autoheur_features names a feature twice")
        return features

    @property
    def raw_features(self) -> tuple[Feature, ...]:
        return tuple(feature for feature in self.features if not feature.derived)

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
        return None if formula is None else _checked(formula, str, "autoheur_precondition", self.provenance)

    def _call(self, hook: str, **arguments: Any) -> Any:
        return self._plugins.call(self.plugin, hook, operator=self.name, **arguments)

    def _require(self, hook: str, kind: type[T], **arguments: Any) -> T:
        result = self._call(hook, **arguments)
        if result is None:
            raise PluginError(f"{self.provenance}: operator {self.name!r} does not implement {hook}")
        return _checked(result, kind, hook, self.provenance)


def _checked(value: Any, kind: type[T], hook: str, provenance: Provenance | None) -> T:
    """Hold a plugin to the type that the hook promises."""
    if not isinstance(value, kind):
        raise PluginError(f"{provenance or 'a plugin'}: {hook} returned {value!r}, not a {kind.__name__}")
    return value


class Registry:
    """Plugins, and what they bring. Building one never raises for a plugin's sake; see :attr:`plugins` for errors."""

    def __init__(self, sources: Sequence[Source] | None = None, store: Store | None = None) -> None:
        from autoheur.plugins import PluginSet, entry_point_sources  # pluggy is only needed from here on

        self._plugins = PluginSet(entry_point_sources() if sources is None else sources)
        self._torch = sources is None and torch_artifacts.wanted()
        self._store = store or Store.default()
        self._lock = threading.RLock()
        self._files: dict[Path, Artifact | AutoheurError] = {}
        self._stamps: dict[Path, tuple[int, ...]] = {}
        self._heuristics: dict[str, tuple[list[Heuristic], list[BrokenHeuristic]]] = {}
        self._selected: dict[tuple[str, Fingerprint | None], Heuristic | None] = {}
        self.operators: dict[str, OperatorPlugin] = {
            plugin.operator.name: OperatorPlugin(plugin.operator, plugin, self._plugins)
            for plugin in self.plugins
            if plugin.usable and plugin.operator
        }

    @property
    def plugins(self) -> list[Plugin]:
        """Every plugin that was found, usable or not, sorted by entry-point name."""
        return self._plugins.plugins

    def operator(self, name: str) -> OperatorPlugin:
        """Look an operator up.

        Raises:
            PluginError: its plugin is broken or contradicts another.
            InputError: there is none of that name; the message lists those there are.
        """
        if name in self.operators:
            return self.operators[name]
        for plugin in self.plugins:
            if plugin.error and name in (plugin.name, plugin.operator and plugin.operator.name):
                raise PluginError(f"operator {name!r}: {plugin.provenance}: {plugin.error}")
        raise InputError(f"there is no operator {name!r} (known: {', '.join(self.operators) or 'none'})")

    @functools.cached_property
    def learners(self) -> dict[str, tuple[Learner, Plugin]]:
        """Learners by name, with the plugin that brings them. The first of two of one name wins."""
        learners: dict[str, tuple[Learner, Plugin]] = {}
        for plugin in self.plugins:
            if not plugin.usable or "autoheur_learners" not in plugin.hooks:
                continue
            try:
                for learner in self._plugins.call(plugin, "autoheur_learners") or ():
                    if learner.name in learners:
                        other = learners[learner.name][1].provenance
                        raise PluginError(f"learner {learner.name!r} comes from {other} already")
                    learners[learner.name] = (learner, plugin)
            except Exception as error:  # one broken plugin must not hide the others' learners
                plugin.fail(error)
        return learners

    def learner(self, name: str) -> Learner:
        """Look a learner up.

        Raises:
            InputError: there is none of that name; the message lists those there are.
        """
        if name not in self.learners:
            raise InputError(f"there is no learner {name!r} (known: {', '.join(self.learners) or 'none'})")
        return self.learners[name][0]

    def installed_operators(self) -> list[str]:
        """The operators that the user's installed artifacts are for, sorted."""
        names = set()
        for path in self._store.files():
            artifact = self._read(path)
            if not isinstance(artifact, AutoheurError):
                names.add(artifact.operator)
        return sorted(names)

    def operator_names(self) -> list[str]:
        """Every operator known here: from plugins, then from installed artifacts alone."""
        return list(dict.fromkeys([*self.operators, *self.installed_operators()]))

    def raw_features(self, operator: str) -> tuple[Feature, ...]:
        """The raw features that a problem of the operator names.

        Raises:
            InputError: there is no such operator, neither as a plugin nor in an installed artifact.
        """
        if operator not in self.operators:
            for heuristic in self.heuristics(operator):
                return heuristic.artifact.raw_features
        return self.operator(operator).raw_features

    def heuristics(self, operator: str) -> list[Heuristic]:
        """The usable heuristics of an operator, in order of precedence."""
        return self._load_heuristics(operator)[0]

    def broken_heuristics(self, operator: str) -> list[BrokenHeuristic]:
        """The artifact files of an operator that cannot be used."""
        return self._load_heuristics(operator)[1]

    def codegen(self, artifact: Artifact, target: str) -> str:
        """Generate source for an artifact, by its operator's own generator where there is one, inside all wrappers.

        Raises:
            InputError: nobody knows the target.
            PluginError: a plugin returned something else than text.
        """
        owner = self.operators.get(artifact.operator)
        plugin = owner.plugin if owner else None
        source = self._plugins.call(
            plugin, "autoheur_codegen", operator=artifact.operator, artifact=artifact, target=target
        )
        return _checked(source, str, "autoheur_codegen", plugin.provenance if plugin else None)

    def refresh(self) -> None:
        """Forget what was read of artifacts, so that the next decision sees what is installed now."""
        with self._lock:
            self._files.clear()
            self._stamps.clear()
            self._heuristics.clear()
            self._selected.clear()

    def is_stale(self) -> bool:
        """Whether an artifact file has come, gone or changed since this registry read the others."""
        with self._lock:
            changed = any(_stamp(path) != stamp for path, stamp in self._stamps.items())
            return changed or any(path not in self._stamps for path in self._store.files())

    def renewed(self) -> Registry:
        """A registry over the same plugins that sees the artifact files as they are now; this one stays as it is."""
        with self._lock:
            fresh = copy.copy(self)
            fresh._lock = threading.RLock()
            fresh._stamps = {path: stamp for path, stamp in self._stamps.items() if _stamp(path) == stamp}
            fresh._files = {path: self._files[path] for path in fresh._stamps}
            fresh._heuristics, fresh._selected = {}, {}
        return fresh

    def selected(self, operator: str, device: Fingerprint | None = None) -> Heuristic | None:
        """The heuristic that answers for an operator on ``device`` (default: the device of this machine), if any does.

        Raises:
            InputError: there is no such operator.
        """
        try:
            return self._selected[operator, device]
        except KeyError:
            return self._select(operator, device)

    def decide(self, operator: str, problem: Problem, device: Fingerprint | None = None) -> Decision:
        """Decide one problem on ``device`` (default: the device of this machine).

        Raises:
            InputError: there is no such operator, or the problem's names are not the operator's raw features.
        """
        try:
            heuristic = self._selected[operator, device]
        except KeyError:
            heuristic = self._select(operator, device)
        if heuristic is None:
            return self._no_heuristic(operator, problem, device)
        if problem.keys() != heuristic.names:
            raise InputError(_name_error(operator, problem, heuristic.artifact.raw_features))
        try:
            choice, reason, confidence = heuristic.function(problem)
        except Exception as error:  # generated code fails only on values of a wrong type
            raise InputError(f"{operator}: {_value_error(problem, heuristic.artifact, error)}") from error
        return Decision(operator, choice, _REASONS[reason], confidence, heuristic.name, heuristic.provenance)

    def _no_heuristic(self, operator: str, problem: Problem, device: Fingerprint | None) -> Decision:
        plugin = self.operators.get(operator)
        if plugin and set(problem) != {feature.name for feature in plugin.raw_features}:
            raise InputError(_name_error(operator, problem, plugin.raw_features))
        here = (device or fingerprint.current()).label()
        known = ", ".join(sorted({heuristic.device.label() for heuristic in self.heuristics(operator)}))
        detail = f"no heuristic for {here}" + (f" (there are some for {known})" if known else "")
        return Decision(operator, None, Reason.NO_HEURISTIC, detail=detail)

    def _select(self, operator: str, device: Fingerprint | None) -> Heuristic | None:
        """The heuristic with the highest precedence whose device requirement is met."""
        actual = device or fingerprint.current()
        with self._lock:
            candidates = self.heuristics(operator)
            if not candidates and operator not in self.operators:
                self.operator(operator)  # raises: unknown
            matching = (h for h in candidates if h.device.mismatch(actual) is None)
            selected = next((h for h in matching if _compiles(h)), None)
            self._selected[operator, device] = selected
            return selected

    def _load_heuristics(self, operator: str) -> tuple[list[Heuristic], list[BrokenHeuristic]]:
        with self._lock:
            if operator not in self._heuristics:
                good: list[Heuristic] = []
                broken: list[BrokenHeuristic] = []
                for tier, provenance, path in self._artifact_files(operator):
                    artifact = self._read(path, self.operators[operator] if tier == "torch" else None)
                    if isinstance(artifact, AutoheurError):
                        broken.append(BrokenHeuristic(path, tier, provenance, str(artifact)))
                    elif artifact.operator == operator:
                        names = frozenset(feature.name for feature in artifact.raw_features)
                        good.append(Heuristic(artifact, tier, provenance, path, names))
                # Within a tier the one that asks more of the device is the more specific one.
                good.sort(key=lambda h: (TIERS.index(h.tier), -len(h.device.to_dict()), h.name))
                self._heuristics[operator] = good, broken
            return self._heuristics[operator]

    def _read(self, path: Path, converted_for: OperatorPlugin | None = None) -> Artifact | AutoheurError:
        """Read an artifact once; a broken one is logged once and returned as its error.

        ``converted_for`` is the operator whose features torch's own artifact ``path`` is converted to.
        """
        if path not in self._files:
            self._stamps[path] = _stamp(path)  # before reading: a change in between is noticed later
            try:
                if converted_for is None:
                    self._files[path] = artifacts.read(path)
                else:
                    self._files[path] = torch_artifacts.read(path, converted_for.features)
            except AutoheurError as error:
                logger.warning("ignoring a broken heuristic: %s", error)
                self._files[path] = error
        return self._files[path]

    def _artifact_files(self, operator: str) -> Iterator[tuple[Tier, Provenance, Path]]:
        for path in self._store.files():
            yield "installed", Provenance(path.stem, "installed", "-"), path
        owner = self.operators.get(operator)
        for plugin in self.plugins:
            if not plugin.usable or "autoheur_heuristics" not in plugin.hooks:
                continue
            own = owner is not None and plugin is owner.plugin
            if plugin.operator and not own:
                continue
            try:
                paths = [
                    Path(path) for path in self._plugins.call(plugin, "autoheur_heuristics", operator=operator) or ()
                ]
            except Exception as error:  # a plugin that cannot list its heuristics has none
                logger.warning("%s: autoheur_heuristics failed: %s", plugin.provenance, error)
                continue
            for path in paths:
                yield "shipped" if own else "third-party", plugin.provenance, path
        if self._torch and owner is not None and _declares_features(owner):
            for path in torch_artifacts.files(operator):
                yield "torch", torch_artifacts.provenance(), path


def _declares_features(plugin: OperatorPlugin) -> bool:
    """Whether the plugin's features can be had; one whose hook fails is not asked for anything that needs them."""
    try:
        return bool(plugin.features)
    except Exception as error:
        logger.warning("%s: autoheur_features failed: %s", plugin.provenance, error)
        return False


def _stamp(path: Path) -> tuple[int, ...]:
    """What tells one state of a file from another without reading it; empty for a file that is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _compiles(heuristic: Heuristic) -> bool:
    """Generate a heuristic's code now, so that decisions cannot fail for that reason."""
    try:
        return callable(heuristic.function)
    except Exception as error:  # a fault of ours, or of a plugin's artifact; the next heuristic may do
        logger.warning("ignoring heuristic %s of %s: %s", heuristic.name, heuristic.provenance, error)
        return False


def _name_error(operator: str, problem: Problem, features: Sequence[Feature]) -> str:
    difference = check_names(list(problem), [feature.name for feature in features])
    return f"{operator}: {difference}"


def _value_error(problem: Problem, artifact: Artifact, error: Exception) -> str:
    for feature in artifact.raw_features:
        value = problem[feature.name]
        if feature.kind == "numerical" and (isinstance(value, str) or not isinstance(value, int | float)):
            return f"feature {feature.name} must be a number, not {value!r}"
    return f"the heuristic {artifact.name} failed: {error}"


@functools.cache
def default_registry() -> Registry:
    """The registry over the installed plugins; built at first use and shared by the process."""
    return Registry()
