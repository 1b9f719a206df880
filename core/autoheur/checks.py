"""What is wrong with plugins, found by asking them what can be asked without a device."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import attrs

from autoheur.errors import AutoheurError, InputError, PluginError, describe
from autoheur.fingerprint import KNOWN, Fingerprint
from autoheur.heuristic.artifact import feature_flaw
from autoheur.operators import OperatorPlugin, value_flaw
from autoheur.plugins import Plugin
from autoheur.registry import Registry
from autoheur.types import INSTALLED

_PROBLEMS = 3
"""How many problems of an operator are looked at."""

_DEVICES = (Fingerprint("cpu", cores=8), *KNOWN.values())
"""The devices that an operator is asked about."""


@attrs.frozen
class Checked:
    """A plugin that was checked, and what is wrong with it; ``faults`` are one line each."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...]
    faults: tuple[str, ...]


def check(registry: Registry, name: str | None = None) -> list[Checked]:
    """Check all plugins and installed artifacts, or those that ``name`` means: a plugin, operator or distribution.

    Raises:
        InputError: nothing has this name; the message lists what there is.
    """
    _ = registry.learners  # asking for learners is what finds broken ones
    chosen = [plugin for plugin in registry.plugins if name is None or name in _names(plugin)]
    found = [_checked(plugin, _all_faults(registry, plugin)) for plugin in chosen]
    installed = _installed_faults(registry)
    if name == INSTALLED or (name is None and installed):
        found.append(Checked(INSTALLED, INSTALLED, "-", (), tuple(installed)))
    if not found and name is not None:
        known = sorted({known for plugin in registry.plugins for known in _names(plugin)})
        raise InputError(f"there is no plugin, operator or distribution {name!r} (known: {', '.join(known) or 'none'})")
    return found


def quick_faults(registry: Registry, plugin: Plugin) -> list[str]:
    """What is wrong with a plugin's declarations and artifacts; no problem is made and no code generated."""
    if not plugin.usable:
        return [plugin.error or "could not be loaded"]
    return list(dict.fromkeys(itertools.chain(*_run(_declarations(registry, plugin)), _broken(registry, plugin))))


def _names(plugin: Plugin) -> set[str]:
    return {plugin.name, plugin.provenance.distribution} | ({plugin.operator.name} if plugin.operator else set())


def _checked(plugin: Plugin, faults: Sequence[str]) -> Checked:
    origin = plugin.provenance
    return Checked(plugin.name, origin.distribution, origin.version, plugin.hooks, tuple(faults))


def _all_faults(registry: Registry, plugin: Plugin) -> list[str]:
    faults = quick_faults(registry, plugin)
    if plugin.usable:
        faults += itertools.chain(*_run(_trials(registry, plugin)))
    return list(dict.fromkeys(faults))


Step = Callable[[], str | None]
"""One question to a plugin; returns or raises what is wrong."""


def _run(steps: Iterator[tuple[str, Step]]) -> Iterator[list[str]]:
    for hook, step in steps:
        try:
            fault = step()
        except PluginError as error:  # it names the plugin and the hook
            yield [str(error)]
            continue
        except AutoheurError as error:
            fault = str(error)
        except Exception as error:  # what plugins do is not ours to foresee
            fault = describe(error)
        if fault:
            yield [fault if fault.startswith("autoheur_") else f"{hook}: {fault}"]


def _operator(registry: Registry, plugin: Plugin) -> OperatorPlugin | None:
    return registry.operators.get(plugin.operator.name) if plugin.operator else None


def _declarations(registry: Registry, plugin: Plugin) -> Iterator[tuple[str, Step]]:
    if operator := _operator(registry, plugin):
        yield "autoheur_features", lambda: feature_flaw(operator.features)
        yield "autoheur_choices", lambda: _default_choice(operator)
        if "autoheur_precondition" in plugin.hooks:
            for device in _DEVICES:
                yield (
                    "autoheur_precondition",
                    lambda device=device: feature_flaw(  # type: ignore[misc]
                        operator.features, operator.precondition(device)
                    ),
                )
    if "autoheur_sites" in plugin.hooks:
        for entry in registry.sites:
            if entry.provenance == plugin.provenance:
                yield "autoheur_sites", lambda fault=entry.fault: fault  # type: ignore[misc]


def _default_choice(operator: OperatorPlugin) -> str | None:
    choices, default = [choice.name for choice in operator.choices()], operator.operator.default_choice
    if len(choices) < 2:
        return f"{len(choices)} choices leave nothing to decide"
    if default is not None and default not in choices:
        return f"the default choice {default!r} is none of the choices ({', '.join(choices)})"
    return None


def _broken(registry: Registry, plugin: Plugin) -> list[str]:
    """The artifacts that this plugin brings and nobody can use, and the hook that brings them, if it fails."""
    names = [plugin.operator.name] if plugin.operator else list(registry.operators)
    broken = [entry for name in names for entry in registry.broken_heuristics(name)]
    return [entry.error for entry in broken if entry.provenance == plugin.provenance]


def _installed_faults(registry: Registry) -> list[str]:
    broken = registry.broken_heuristics("")  # any operator's load sees all installed files
    return [entry.error for entry in broken if entry.tier == INSTALLED]


def _trials(registry: Registry, plugin: Plugin) -> Iterator[tuple[str, Step]]:
    if operator := _operator(registry, plugin):
        if "autoheur_problems" in plugin.hooks:
            for device in _DEVICES:
                yield "autoheur_problems", lambda device=device: _problem_flaw(operator, device)  # type: ignore[misc]
        if "autoheur_choice_features" in plugin.hooks:
            yield "autoheur_choice_features", lambda: _named_choice_flaw(operator)
    for name in [plugin.operator.name] if plugin.operator else registry.operators:
        for heuristic in registry.heuristics(name):
            if heuristic.provenance == plugin.provenance:
                yield "autoheur_codegen", lambda artifact=heuristic.artifact: _codegen_flaw(registry, artifact)  # type: ignore[misc]


def _problem_flaw(operator: OperatorPlugin, device: Fingerprint) -> str | None:
    known = {choice.name for choice in operator.choices()}
    for problem in itertools.islice(operator.problems(Random(0), device), _PROBLEMS):
        if flaw := value_flaw(problem, operator.raw_features):
            return f"autoheur_problems: on {device.label()}: {flaw}"
        choices = [choice.name for choice in operator.choices(problem)]
        if not choices:
            return f"autoheur_choices: no choices for {dict(problem)}"
        closed = not operator.raw_choice_features
        if closed and (unknown := [choice for choice in choices if choice not in known]):
            return f"autoheur_choices: {unknown[0]!r} is a choice of {dict(problem)}, but not known beforehand"
    return None


def _named_choice_flaw(operator: OperatorPlugin) -> str | None:
    for choice in operator.choices():
        features = operator.choice_features(choice.name)
        if features is not None and dict(features) != dict(choice.features):
            return f"{choice.name!r} has {dict(features)} by its name, but {dict(choice.features)} in autoheur_choices"
    return None


def _codegen_flaw(registry: Registry, artifact: Any) -> str | None:
    source = registry.codegen(artifact, "python")
    try:
        compile(source, f"<heuristic {artifact.name!r}>", "exec")
    except (SyntaxError, ValueError) as error:
        return f"artifact {artifact.name!r}: the code does not compile: {error}"
    return None
