"""Discovery of plugins: the one module that knows pluggy and entry points.

One broken plugin never takes the others with it: it is recorded with its distribution, version and error.
"""

from __future__ import annotations

import difflib
import functools
import importlib.metadata
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import pluggy

from autoheur import hookspecs
from autoheur.errors import PluginError, describe
from autoheur.types import Operator, Provenance

if TYPE_CHECKING:
    from autoheur.heuristic.artifact import Artifact


@attrs.frozen
class Source:
    """A plugin that can be loaded: where it comes from, and the entry point or object that it is."""

    provenance: Provenance
    target: importlib.metadata.EntryPoint | object

    def load(self) -> object:
        return self.target.load() if isinstance(self.target, importlib.metadata.EntryPoint) else self.target


@attrs.define(eq=False)
class Plugin:
    """A plugin and what became of it; ``error`` says why one is out of use."""

    provenance: Provenance
    module: object | None = None
    operator: Operator | None = None
    hooks: tuple[str, ...] = ()
    error: str | None = None

    @property
    def name(self) -> str:
        return self.provenance.plugin

    @property
    def usable(self) -> bool:
        return self.error is None and self.module is not None

    def fail(self, error: BaseException | str) -> None:
        self.error = error if isinstance(error, str) else describe(error)


def entry_point_sources(environment: Mapping[str, str] = os.environ) -> list[Source]:
    """The plugins that installed distributions declare, sorted by name, less those that the environment blocks.

    ``AUTOHEUR_DISABLE=a,b`` blocks plugins by entry-point or distribution name; ``AUTOHEUR_PLUGINS=a,b`` loads only
    those.
    """
    disabled = _names(environment.get("AUTOHEUR_DISABLE", ""))
    only = _names(environment.get("AUTOHEUR_PLUGINS", ""))
    sources: dict[tuple[str, str, str], Source] = {}
    for entry_point in importlib.metadata.entry_points(group=hookspecs.ENTRY_POINT_GROUP):
        distribution = entry_point.dist
        name = distribution.name if distribution else "unknown"
        version = distribution.version if distribution else "unknown"
        own_names = {entry_point.name, name}
        if own_names & disabled or (only and not own_names & only):
            continue
        # One distribution can be visible twice (a build folder on the path beside the installed one).
        sources.setdefault(
            (entry_point.name, name, entry_point.value),
            Source(Provenance(entry_point.name, name, version), entry_point),
        )
    return [sources[key] for key in sorted(sources)]


def _names(text: str) -> set[str]:
    return {name.strip() for name in text.split(",") if name.strip()}


class _Defaults:
    """What happens where an operator's plugin does not say otherwise; the last in line for every operator."""

    @hookspecs.hookimpl(trylast=True)
    def autoheur_codegen(self, artifact: Artifact, target: str) -> str:
        from autoheur.codegen import generate

        return generate(artifact, target)


def _load(source: Source) -> Plugin:
    plugin = Plugin(source.provenance)
    try:
        plugin.module = source.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever an import does (exit, a native extension's panic), the others load
        plugin.fail(error)
    return plugin


_PARSER = pluggy.PluginManager(hookspecs.PROJECT)
_KNOWN = tuple(name for name in vars(hookspecs.Hooks) if name.startswith("autoheur_"))


def _implements(module: object, hook: str) -> bool:
    try:
        return module is not None and _PARSER.parse_hookimpl_opts(module, hook) is not None
    except Exception:
        return False


def _hooks(module: object) -> tuple[str, ...]:
    """The hooks that a module implements, sorted.

    Raises:
        PluginError: it implements none, or one that does not exist.
    """
    hooks = tuple(name for name in sorted(dir(module)) if _implements(module, name))
    for name in hooks:
        if name not in _KNOWN:
            close = difflib.get_close_matches(name, _KNOWN, n=1)
            raise PluginError(f"there is no hook {name}" + (f": did you mean {close[0]}?" if close else ""))
    if not hooks:
        raise PluginError("implements no hook: mark its functions with autoheur.plugin.hookimpl")
    return hooks


class PluginSet:
    """The loaded plugins, and calls into them."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs.Hooks)
        self._defaults = _Defaults()
        self._manager.register(self._defaults)
        self._callers: dict[tuple[str, int], Any] = {}
        self.plugins = [_load(source) for source in sources]
        # Whom pluggy knows last it asks first: an operator's own generator of code goes before those for all operators.
        for plugin in sorted(self.plugins, key=lambda plugin: _implements(plugin.module, "autoheur_operator")):
            if plugin.usable:
                self._register(plugin)
        self._resolve_conflicts()

    def _register(self, plugin: Plugin) -> None:
        module = plugin.module
        try:
            if self._manager.is_registered(module):
                other = self._manager.get_name(module)
                plugin.fail(f"its module is registered already by another entry point, {other}")
                return
            plugin.hooks = _hooks(module)
            self._manager.register(module, name=f"{plugin.provenance.distribution}:{plugin.name}")
            if "autoheur_operator" in plugin.hooks:
                plugin.operator = self._name_operator(plugin)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever a plugin does, the others load
            plugin.fail(error)
            self._unregister(plugin)

    def _unregister(self, plugin: Plugin) -> None:
        if plugin.module is not None and self._manager.is_registered(plugin.module):
            self._manager.unregister(plugin.module)

    def _name_operator(self, plugin: Plugin) -> Operator:
        operator = self.call(plugin, "autoheur_operator")
        if not isinstance(operator, Operator):
            raise PluginError(f"autoheur_operator returned {operator!r}, not an autoheur.plugin.Operator")
        texts = (operator.name, operator.description, operator.default_choice or "")
        if not all(isinstance(text, str) for text in texts) or not operator.name:
            raise PluginError(f"autoheur_operator returned {operator!r}, whose fields must be text, the name not empty")
        if isinstance(operator.overrides, str) or not all(isinstance(name, str) for name in operator.overrides):
            raise PluginError(f"autoheur_operator returned {operator!r}, whose overrides must be a tuple of names")
        for hook in ("autoheur_features", "autoheur_choices"):
            if hook not in plugin.hooks:
                raise PluginError(f"names the operator {operator.name!r} but does not implement {hook}")
        return operator

    def _resolve_conflicts(self) -> None:
        """Let declared overrides win; take contradicting operators out of use, naming both distributions."""
        claims: dict[str, list[Plugin]] = {}
        for plugin in self.plugins:
            if plugin.usable and plugin.operator:
                claims.setdefault(plugin.operator.name, []).append(plugin)
        for name, claimants in claims.items():
            overridden = {d for plugin in claimants if plugin.operator for d in plugin.operator.overrides}
            winners = [plugin for plugin in claimants if plugin.provenance.distribution not in overridden]
            if len(winners) == 1:
                for plugin in claimants:
                    if plugin is not winners[0]:
                        plugin.fail(f"operator {name!r} is overridden by {winners[0].provenance}")
            else:
                sides = " and ".join(str(plugin.provenance) for plugin in claimants)
                for plugin in claimants:
                    plugin.fail(
                        f"operator {name!r} is claimed by {sides}: uninstall one, block one with AUTOHEUR_DISABLE, "
                        "or let one declare overrides"
                    )
            for plugin in claimants:
                if not plugin.usable:
                    self._unregister(plugin)

    def call(self, plugin: Plugin | None, hook: str, **arguments: Any) -> Any:
        """Call one plugin's hook, inside the wrappers of the plugins that have no operator of their own.

        Generators of code of such plugins are asked too, where the plugin has no answer. With ``plugin`` ``None`` they,
        the wrappers and the default alone. Returns ``None`` where nobody answers. Exceptions
        that a plugin raises are passed on.

        Raises:
            PluginError: the plugin tried to exit the process, or a native extension of it panicked.
        """
        key = (hook, id(plugin))
        if key not in self._callers:
            implementations = getattr(self._manager.hook, hook).get_hookimpls()
            plain = hook == "autoheur_codegen"
            others = [entry.plugin for entry in implementations if not self._applies(entry, plugin, plain)]
            self._callers[key] = self._manager.subset_hook_caller(hook, others)
        try:
            result = self._callers[key](**arguments)
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:  # SystemExit and others that ``except Exception`` would let through
            raise PluginError(f"{plugin.provenance if plugin else 'a plugin'}: {hook}: {describe(error)}") from error
        if hook in (
            "autoheur_heuristics",
            "autoheur_learners",
            "autoheur_sites",
        ):  # one plugin, one result
            return result[0] if result else None
        return result

    def direct(self, plugin: Plugin, hook: str, operator: str) -> Callable[..., Any]:
        """A hook of an operator's plugin without what pluggy adds to a call; takes the hook's arguments by name.

        Where a wrapper applies it is the whole call. Whatever the plugin raises is passed on.
        """
        implementations = getattr(self._manager.hook, hook).get_hookimpls()
        applying = [entry for entry in implementations if self._applies(entry, plugin)]
        if len(applying) != 1:
            return functools.partial(self.call, plugin, hook, operator=operator)
        parameters = applying[0].argnames
        function: Callable[..., Any] = applying[0].function
        if "operator" in parameters:
            function = functools.partial(function, operator=operator)
        spec = getattr(self._manager.hook, hook).spec
        names = [name for name in parameters if name != "operator"]
        if {"operator", *names} == set(spec.argnames):
            return function
        return lambda **given: function(**{name: given[name] for name in names})

    def _applies(self, implementation: pluggy.HookImpl, plugin: Plugin | None, plain: bool = False) -> bool:
        """Whether an implementation is called for ``plugin``; ``plain``: others' need not be wrappers."""
        module = implementation.plugin
        if module is self._defaults or (plugin is not None and module is plugin.module):
            return True
        for_all = plain or implementation.wrapper or implementation.hookwrapper
        return for_all and not any(other.module is module and other.operator for other in self.plugins)
