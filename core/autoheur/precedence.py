"""Where heuristics come from, and which of them comes first."""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs

from autoheur.errors import AutoheurError, PluginError, describe
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic import artifact as artifacts
from autoheur.heuristic import drift
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.installed import Store
from autoheur.operators import OperatorPlugin
from autoheur.types import INSTALLED, Provenance, Value

if TYPE_CHECKING:
    from autoheur.codegen import CompiledHeuristic
    from autoheur.plugins import Plugin, PluginSet

logger = logging.getLogger(__name__)

Tier = Literal["installed", "third-party", "shipped", "fallback"]
TIERS: tuple[Tier, ...] = ("installed", "third-party", "shipped", "fallback")
"""Who provides a heuristic, in order of precedence.

``shipped`` comes from the operator's own plugin, ``fallback`` from another plugin of the operator's distribution.
"""


@attrs.frozen(eq=False)
class Heuristic:
    """An artifact made callable. ``provenance`` says which plugin brought it.

    ``path`` is the artifact's file; the plugin's, where the plugin made the artifact without one.
    """

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
    def drift(self) -> str:
        """What decisions say of software versions other than those measured with; usually nothing."""
        return drift.describe(self.artifact.provenance)

    @functools.cached_property
    def compiled(self) -> CompiledHeuristic:
        """The generated functions; compiled at first use."""
        from autoheur.codegen import compile_artifact

        return compile_artifact(self.artifact)

    @functools.cached_property
    def table(self) -> dict[str, dict[str, Value]]:
        """The choices that training saw, each with its raw features."""
        return self.artifact.table()


@attrs.frozen
class BrokenHeuristic:
    """An artifact that cannot be used, and why; or a plugin whose hook failed, so that it brings none.

    ``path`` is the artifact's file, or the plugin's.
    """

    path: Path
    tier: Tier
    provenance: Provenance
    error: str


class HeuristicFiles:
    """The artifacts of a store and of plugins, each file read once.

    Files may come, go and change while a process runs: :meth:`is_stale` notices, :meth:`renewed` starts over with
    what did not change.
    """

    def __init__(self, store: Store, plugins: PluginSet, operators: Mapping[str, OperatorPlugin]) -> None:
        self._store = store
        self._plugins = plugins
        self._operators = operators
        self._lock = threading.RLock()
        self._files: dict[Path, Artifact | AutoheurError] = {}
        self._stamps: dict[Path, tuple[int, ...]] = {}
        self._loaded: dict[str, tuple[list[Heuristic], list[BrokenHeuristic]]] = {}

    def usable(self, operator: str) -> list[Heuristic]:
        """The heuristics of an operator, in order of precedence."""
        return self._load(operator)[0]

    def broken(self, operator: str) -> list[BrokenHeuristic]:
        """The files of an operator that cannot be used. Installed ones belong to every operator: nobody can tell."""
        return self._load(operator)[1]

    def installed_operators(self) -> list[str]:
        """The operators that the installed artifacts are for, sorted."""
        read = map(self._read, self._store.files())
        return sorted({artifact.operator for artifact in read if not isinstance(artifact, AutoheurError)})

    def is_stale(self) -> bool:
        """Whether a file has come, gone or changed since the others were read."""
        with self._lock:
            changed = any(_stamp(path) != stamp for path, stamp in self._stamps.items())
            return changed or any(path not in self._stamps for path in self._store.files())

    def renewed(self) -> HeuristicFiles:
        """The files as they are now; this object stays as it is."""
        fresh = HeuristicFiles(self._store, self._plugins, self._operators)
        with self._lock:
            fresh._stamps = {path: stamp for path, stamp in self._stamps.items() if _stamp(path) == stamp}
            fresh._files = {path: self._files[path] for path in fresh._stamps}
        return fresh

    def _load(self, operator: str) -> tuple[list[Heuristic], list[BrokenHeuristic]]:
        with self._lock:
            if operator not in self._loaded:
                good: list[Heuristic] = []
                broken: list[BrokenHeuristic] = []
                for tier, provenance, path, artifact in self._found(operator):
                    if isinstance(artifact, AutoheurError):
                        broken.append(BrokenHeuristic(path, tier, provenance, str(artifact)))
                    elif artifact.operator == operator:
                        names = frozenset(feature.name for feature in artifact.raw_features)
                        good.append(Heuristic(artifact, tier, provenance, path, names))
                # Within a tier the one that names more of the device's properties is the more specific one.
                good.sort(key=lambda h: (TIERS.index(h.tier), -len(h.device.to_dict()), h.name))
                self._loaded[operator] = good, broken
            return self._loaded[operator]

    def _read(self, path: Path) -> Artifact | AutoheurError:
        """Read an artifact once; a broken one is logged once and returned as its error."""
        if path not in self._files:
            self._stamps[path] = _stamp(path)  # before reading: a change in between is noticed later
            try:
                self._files[path] = artifacts.read(path)
            except AutoheurError as error:
                logger.warning("ignoring a broken heuristic: %s", error)
                self._files[path] = error
        return self._files[path]

    def _found(self, operator: str) -> Iterator[tuple[Tier, Provenance, Path, Artifact | AutoheurError]]:
        for path in self._store.files():
            yield "installed", Provenance(path.stem, INSTALLED, "-"), path, self._read(path)
        owner = self._operators.get(operator)
        for plugin in self._plugins.plugins:
            if not plugin.usable or "autoheur_heuristics" not in plugin.hooks:
                continue
            tier: Tier = "third-party"
            if owner is not None:
                if plugin.provenance.distribution == owner.provenance.distribution:
                    tier = "shipped" if plugin is owner.plugin else "fallback"
                elif plugin.provenance.distribution in owner.operator.overrides:
                    continue  # they are for the operator that was overridden
            if plugin.operator and tier != "shipped":
                continue
            for path, artifact in self._brought(plugin, operator):
                yield tier, plugin.provenance, path, artifact

    def _brought(self, plugin: Plugin, operator: str) -> Iterator[tuple[Path, Artifact | AutoheurError]]:
        """What a plugin brings for an operator, each with its path; the plugin's fault where it fails."""
        own = Path(getattr(plugin.module, "__file__", None) or plugin.name)
        try:
            returned = self._plugins.call(plugin, "autoheur_heuristics", operator=operator)
            if returned is not None and (isinstance(returned, str) or not isinstance(returned, Sequence)):
                raise PluginError(f"returned {returned!r}, not a sequence of paths and artifacts")
            for entry in returned or ():
                if isinstance(entry, Artifact):
                    yield own, artifacts.from_json(artifacts.to_json(entry), entry.name)  # held to what a file is
                elif isinstance(entry, str | os.PathLike):
                    yield Path(entry), self._read(Path(entry))
                else:
                    raise PluginError(f"returned {entry!r}, neither a path nor an autoheur.plugin.Artifact")
        except Exception as error:
            said = str(error) if isinstance(error, AutoheurError) else describe(error)
            message = f"{plugin.provenance}: autoheur_heuristics: {said}"
            logger.warning("%s", message)
            yield own, PluginError(message)


def _stamp(path: Path) -> tuple[int, ...]:
    """What tells one state of a file from another without reading it; empty for a file that is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino
