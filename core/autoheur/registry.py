"""The registry: operators, learners and heuristics by name, and the decision."""

from __future__ import annotations

import copy
import functools
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from autoheur import fingerprint
from autoheur.dataset import choice_names
from autoheur.errors import AutoheurError, InputError, PluginError, describe
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.installed import Store
from autoheur.operators import OperatorPlugin, checked
from autoheur.precedence import BrokenHeuristic, Heuristic, HeuristicFiles
from autoheur.site import Site
from autoheur.types import Choice, Decision, Feature, Operand, Problem, Provenance, Reason, Value, check_names

if TYPE_CHECKING:
    from autoheur.learning import Learner
    from autoheur.plugins import Plugin, Source

logger = logging.getLogger(__name__)

_LEARNER = ("name", "description", "grid", "fit")
"""What :class:`~autoheur.learning.Learner` promises."""

_REASONS = {reason.value: reason for reason in Reason}


@attrs.frozen
class BroughtSite:
    """A site and the plugin that brings it; ``fault`` says why it, or all that the plugin brings, cannot be used."""

    name: str
    provenance: Provenance
    site: Site | None = None
    fault: str | None = None


class Registry:
    """Plugins, and what they bring. Building one never raises for a plugin's sake; see :attr:`plugins` for errors.

    ``sources`` defaults to the installed plugins, ``store`` to the user's.
    """

    def __init__(self, sources: Sequence[Source] | None = None, store: Store | None = None) -> None:
        from autoheur.plugins import PluginSet, entry_point_sources  # pluggy is only needed from here on

        self._plugins = PluginSet(entry_point_sources() if sources is None else sources)
        self.operators: dict[str, OperatorPlugin] = {
            plugin.operator.name: OperatorPlugin(plugin.operator, plugin, self._plugins)
            for plugin in self.plugins
            if plugin.usable and plugin.operator
        }
        self._files = HeuristicFiles(store or Store.default(), self._plugins, self.operators)
        self._lock = threading.RLock()
        self._selected: dict[tuple[str, Fingerprint | None], Heuristic | None] = {}
        self._hooks: dict[tuple[str, str], Callable[..., Any]] = {}

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
                for learner in self.bring(plugin, "autoheur_learners"):
                    lacking = [name for name in _LEARNER if not hasattr(learner, name)]
                    if lacking:
                        raise PluginError(f"autoheur_learners returned {learner!r}, which lacks {', '.join(lacking)}")
                    if learner.name in learners:
                        other = learners[learner.name][1].provenance
                        raise PluginError(f"learner {learner.name!r} comes from {other} already")
                    learners[learner.name] = (learner, plugin)
            except Exception as error:  # one broken plugin must not hide the others' learners
                plugin.fail(error)
        return learners

    @functools.cached_property
    def sites(self) -> list[BroughtSite]:
        """The sites of all plugins. Several plugins may bring the same one; of two at one place the first wins."""
        found: list[BroughtSite] = []
        for plugin in self.plugins:
            if not plugin.usable or "autoheur_sites" not in plugin.hooks:
                continue
            try:
                for site in self.bring(plugin, "autoheur_sites"):
                    if not any(entry.site is site for entry in found):
                        found.append(_brought_site(site, plugin.provenance, found))
            except Exception as error:  # one broken plugin must not take the others' sites along
                fault = str(error) if isinstance(error, AutoheurError) else describe(error)
                found.append(BroughtSite("-", plugin.provenance, fault=fault))
        return found

    def bring(self, plugin: Plugin, hook: str) -> Sequence[Any]:
        """What one plugin adds by a hook that gathers: learners or sites.

        Raises:
            PluginError: the plugin returned no sequence. Whatever else it raises is passed on.
        """
        returned = self._plugins.call(plugin, hook)
        if returned is None:
            return ()
        if isinstance(returned, str):
            raise PluginError(f"{plugin.provenance}: {hook} returned the text {returned!r}, not a sequence")
        return checked(returned, Sequence, hook, plugin.provenance)

    def learner(self, name: str) -> Learner:
        """Look a learner up.

        Raises:
            InputError: there is none of that name; the message lists those there are.
        """
        if name not in self.learners:
            raise InputError(f"there is no learner {name!r} (known: {', '.join(self.learners) or 'none'})")
        return self.learners[name][0]

    def operator_names(self) -> list[str]:
        """Every operator known here: from plugins, then from installed artifacts alone."""
        return list(dict.fromkeys([*self.operators, *self._files.installed_operators()]))

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
        return self._files.usable(operator)

    def broken_heuristics(self, operator: str) -> list[BrokenHeuristic]:
        """The artifact files of an operator that cannot be used; installed ones are listed for every operator."""
        return self._files.broken(operator)

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
        return checked(source, str, "autoheur_codegen", plugin.provenance if plugin else None)

    def is_stale(self) -> bool:
        """Whether an artifact file has come, gone or changed since this registry read the others."""
        return self._files.is_stale()

    def renewed(self) -> Registry:
        """A registry over the same plugins that sees the artifact files as they are now; this one stays as it is."""
        fresh = copy.copy(self)
        fresh._files = self._files.renewed()
        fresh._lock, fresh._selected = threading.RLock(), {}
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

    def extract(self, operator: str, operands: Sequence[Operand], flags: Mapping[str, Value]) -> Problem:
        """The raw features of a problem, from the operands of the operator's arguments and what they do not tell.

        Raises:
            InputError: there is no such operator.
            PluginError: its plugin is broken, or returns something else than a mapping.
            Exception: whatever the plugin raises.
        """
        problem = self._hook(operator, "autoheur_extract")(operands=operands, flags=flags)
        if isinstance(problem, Mapping):
            return problem
        provenance = self.operators[operator].provenance
        if problem is None:
            raise PluginError(f"{provenance}: operator {operator!r} does not implement autoheur_extract")
        return checked(problem, Mapping, "autoheur_extract", provenance)

    def _hook(self, operator: str, name: str) -> Callable[..., Any]:
        """A hook of an operator's plugin, for the decide path: without what pluggy adds to a call."""
        try:
            return self._hooks[operator, name]
        except KeyError:
            hook = self._plugins.direct(self.operator(operator).plugin, name, operator)
            return self._hooks.setdefault((operator, name), hook)

    def decide(
        self,
        operator: str,
        problem: Problem,
        device: Fingerprint | None = None,
        choices: Sequence[str | Choice] | None = None,
    ) -> Decision:
        """Decide one problem on ``device`` (default: the device of this machine).

        ``choices`` are those that are possible (default: those that the operator enumerates for the problem); nothing
        else is decided.

        Raises:
            InputError: there is no such operator, the problem is no mapping, its names are not the operator's raw
                features, a value is of the wrong kind, or ``choices`` are none, or name one twice.
        """
        try:
            heuristic = self._selected[operator, device]
        except KeyError:
            heuristic = self._select(operator, device)
        names = heuristic.names if heuristic else frozenset(feature.name for feature in self.raw_features(operator))
        try:
            agrees = problem.keys() == names
        except AttributeError:
            agrees = False
        if not agrees:
            raise InputError(_name_error(operator, problem, self.raw_features(operator)))
        if choices is None:
            try:
                choices = self._possible(operator, problem, heuristic.artifact if heuristic else None)
                offered = _names(choices)
            except Exception as error:
                wrong = _wrong_value(problem, self.raw_features(operator))
                if wrong:
                    raise InputError(f"{operator}: {wrong}") from error
                return Decision(operator, (), Reason.PLUGIN_ERROR, detail=describe(error))
        else:
            offered = _names(choices)
        if len(offered) < 2:
            if not offered:
                raise InputError(f"{operator}: no choices are offered")
            return Decision(operator, offered, Reason.ONLY_CHOICE)
        if len(set(offered)) != len(offered):
            raise InputError(f"{operator}: a choice is offered twice: {', '.join(offered)}")
        if heuristic is None:
            return Decision(operator, offered, Reason.NO_HEURISTIC, detail=self._missing(operator, device))
        compiled = heuristic.compiled
        try:
            shortlist, reason, confidence = compiled.shortlist(
                problem, self._with_features(heuristic.artifact, choices, heuristic.table) if compiled.open else offered
            )
        except Exception as error:  # generated code fails only on values of a wrong type
            wrong = _wrong_value(problem, heuristic.artifact.raw_features)
            raise InputError(f"{operator}: {wrong or f'the heuristic {heuristic.name} failed: {error}'}") from error
        return Decision(
            operator,
            shortlist,
            _REASONS[reason],
            confidence,
            heuristic.artifact.name,
            heuristic.provenance,
            heuristic.drift,
        )

    def _possible(self, operator: str, problem: Problem, artifact: Artifact | None) -> Sequence[str | Choice]:
        """The choices that the operator enumerates for a problem; without its plugin those that training saw."""
        if operator not in self.operators:
            assert artifact is not None, "an operator has a plugin or an artifact"
            return artifact.choices
        return checked(self._hook(operator, "autoheur_choices")(problem=problem), Sequence, "autoheur_choices", None)

    def offered(
        self, artifact: Artifact, problem: Problem, choices: Sequence[str | Choice] | None = None
    ) -> dict[str, Mapping[str, Value]]:
        """What an artifact would be asked to choose from: names with raw features.

        ``choices`` are those that are possible (default: those that the operator enumerates for the problem; without
        its plugin, those that training saw).

        Raises:
            InputError: ``choices`` names one twice.
            Exception: whatever the plugin raises; ``PluginError`` if it returns something else than choices.
        """
        if choices is None:
            choices = self._possible(artifact.operator, problem, artifact)
        if len(set(_names(choices))) != len(choices):
            raise InputError(f"{artifact.operator}: a choice is offered twice: {', '.join(_names(choices))}")
        return self._with_features(artifact, choices, artifact.table())

    def _with_features(
        self, artifact: Artifact, choices: Sequence[str | Choice], table: Mapping[str, Mapping[str, Value]]
    ) -> dict[str, Mapping[str, Value]]:
        """What is offered, each with its raw features; ``table`` is the artifact's."""
        declared = artifact.raw_choice_features
        features: dict[str, Mapping[str, Value]] = {}
        for choice in choices:
            if not isinstance(choice, str):
                features[choice.name] = choice.features
            elif choice in table:
                features[choice] = table[choice]
            else:
                features[choice] = self._choice_features(artifact.operator, choice, declared)
        return features

    def _choice_features(self, operator: str, choice: str, declared: Sequence[Feature]) -> Mapping[str, Value]:
        """What the operator's plugin, or else the name itself, says of a choice; nothing where neither does."""
        plugin = self.operators.get(operator)
        told = plugin.choice_features(choice) if plugin else None
        if told is None and any(choice_names.tells(choice, feature) for feature in declared):
            return choice_names.values(choice, declared)
        return told or {}

    def _missing(self, operator: str, device: Fingerprint | None) -> str:
        here = (device or fingerprint.current()).label()
        known = ", ".join(sorted({heuristic.device.label() for heuristic in self.heuristics(operator)}))
        return f"no heuristic for {here}" + (f" (there are some for {known})" if known else "")

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


def _compiles(heuristic: Heuristic) -> bool:
    """Generate a heuristic's code now, so that decisions cannot fail for that reason."""
    try:
        return callable(heuristic.compiled.shortlist)
    except Exception as error:  # a fault of autoheur's, or of a plugin's artifact; the next heuristic may do
        logger.warning("ignoring heuristic %s of %s: %s", heuristic.name, heuristic.provenance, error)
        return False


def _brought_site(site: object, provenance: Provenance, others: Sequence[BroughtSite]) -> BroughtSite:
    if not isinstance(site, Site):
        raise PluginError(f"{provenance}: autoheur_sites returned {site!r}, not an autoheur.site.Site")
    for other in others:
        if other.site and (site.name == other.site.name or site.seam.name == other.site.seam.name):
            taken = f"{site.seam.name} is asked at by the site {other.name} of {other.provenance} already"
            return BroughtSite(site.name, provenance, fault=taken)
    return BroughtSite(site.name, provenance, site)


def _names(choices: Sequence[str | Choice]) -> tuple[str, ...]:
    try:
        if not isinstance(choices, str):
            return tuple([choice if isinstance(choice, str) else choice.name for choice in choices])
    except (TypeError, AttributeError):
        pass
    raise InputError(f"choices are a sequence of names or autoheur.types.Choice values, not {choices!r}")


def _name_error(operator: str, problem: Problem, features: Sequence[Feature]) -> str | None:
    if not isinstance(problem, Mapping):
        return f"{operator}: a problem is a mapping of raw features to values, not {problem!r}"
    difference = check_names(list(problem), [feature.name for feature in features])
    return difference and f"{operator}: {difference}"


def _wrong_value(problem: Problem, features: Sequence[Feature]) -> str | None:
    for feature in features:
        value = problem[feature.name]
        if feature.kind == "numerical" and (isinstance(value, str) or not isinstance(value, int | float)):
            return f"feature {feature.name} must be a number, not {value!r}"
    return None


@functools.cache
def default_registry() -> Registry:
    """The registry over the installed plugins; built at first use and shared by the process."""
    return Registry()
