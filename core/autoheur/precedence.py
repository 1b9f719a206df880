"""Where heuristics come from, and which of them comes first."""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs

from autoheur.errors import AutoheurError, describe
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic import artifact as artifacts
from autoheur.heuristic import drift, torch_artifacts
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.installed import Store
from autoheur.operators import OperatorPlugin
from autoheur.types import INSTALLED, Provenance, Value

if TYPE_CHECKING:
    from autoheur.codegen import CompiledHeuristic
    from autoheur.plugins import PluginSet

logger = logging.getLogger(__name__)

Tier = Literal["installed", "third-party", "shipped", "torch"]
TIERS: tuple[Tier, ...] = ("installed", "third-party", "shipped", "torch")
"""Who provides a heuristic, in order of precedence."""


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
    """An artifact file that cannot be used, and why."""

    path: Path
    tier: Tier
    provenance: Provenance
    error: str


class HeuristicFiles:
    """The artifact files of a store, of plugins and (``with_torch``) of PyTorch, each read once.

    Files may come, go and change while a process runs: :meth:`is_stale` notices, :meth:`renewed` starts over with
    what did not change.
    """

    def __init__(
        self, store: Store, plugins: PluginSet, operators: Mapping[str, OperatorPlugin], with_torch: bool
    ) -> None:
        self._store = store
        self._plugins = plugins
        self._operators = operators
        self._with_torch = with_torch
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
        fresh = HeuristicFiles(self._store, self._plugins, self._operators, self._with_torch)
        with self._lock:
            fresh._stamps = {path: stamp for path, stamp in self._stamps.items() if _stamp(path) == stamp}
            fresh._files = {path: self._files[path] for path in fresh._stamps}
        return fresh

    def _load(self, operator: str) -> tuple[list[Heuristic], list[BrokenHeuristic]]:
        with self._lock:
            if operator not in self._loaded:
                good: list[Heuristic] = []
                broken: list[BrokenHeuristic] = []
                for tier, provenance, path in self._found(operator):
                    artifact = self._read(path, self._operators[operator] if tier == "torch" else None)
                    if isinstance(artifact, AutoheurError):
                        broken.append(BrokenHeuristic(path, tier, provenance, str(artifact)))
                    elif artifact.operator == operator:
                        names = frozenset(feature.name for feature in artifact.raw_features)
                        good.append(Heuristic(artifact, tier, provenance, path, names))
                # Within a tier the one that asks more of the device is the more specific one.
                good.sort(key=lambda h: (TIERS.index(h.tier), -len(h.device.to_dict()), h.name))
                self._loaded[operator] = good, broken
            return self._loaded[operator]

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

    def _found(self, operator: str) -> Iterator[tuple[Tier, Provenance, Path]]:
        for path in self._store.files():
            yield "installed", Provenance(path.stem, INSTALLED, "-"), path
        owner = self._operators.get(operator)
        for plugin in self._plugins.plugins:
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
                logger.warning("%s: autoheur_heuristics failed: %s", plugin.provenance, describe(error))
                continue
            for path in paths:
                yield "shipped" if own else "third-party", plugin.provenance, path
        if self._with_torch and owner is not None and _declares_features(owner):
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
