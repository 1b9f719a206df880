"""The contract between autoheur and its plugins.

A plugin is a module (or object) named by an entry point of the group ``autoheur``. It implements some of the hooks
below, each as a plain function marked with :data:`hookimpl`; it subclasses nothing and may leave out parameters that
it does not need. Four hooks make an operator: feature extraction (:meth:`Hooks.autoheur_features` and
:meth:`Hooks.autoheur_extract`), choice enumeration (:meth:`Hooks.autoheur_choices`), benchmarking
(:meth:`Hooks.autoheur_benchmark`) and code generation (:meth:`Hooks.autoheur_codegen`). Everything but
:meth:`Hooks.autoheur_operator`, features and choices has a sensible default.

An operator's hooks are called only for that operator. A plugin with no ``autoheur_operator`` may still wrap hooks
(``@hookimpl(wrapper=True)``), generate code and bring heuristics, and does so for every operator; it tells operators
apart by the ``operator`` argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pluggy

from autoheur.types import Choice, Feature, Operand, Operator, Problem, Value

if TYPE_CHECKING:
    from autoheur.fingerprint import Fingerprint
    from autoheur.heuristic.artifact import Artifact
    from autoheur.learning import Learner
    from autoheur.site import Site

PROJECT = "autoheur"
ENTRY_POINT_GROUP = "autoheur"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a plugin's functions as implementations of the hooks in :class:`Hooks`."""


class Hooks:
    """Every hook of autoheur. ``operator`` is always the operator's name."""

    @hookspec(firstresult=True)
    def autoheur_operator(self) -> Operator | None:
        """Name the operator that this plugin implements.

        Example::

            @hookimpl
            def autoheur_operator():
                return Operator("pad_mm", "Pad the operands of aten.mm to aligned sizes, or not", default_choice="orig")
        """

    @hookspec(firstresult=True)
    def autoheur_features(self, operator: str) -> Sequence[Feature] | None:
        """Declare the features of a problem: raw ones, in the order in which they are stored, then derived ones.

        Example::

            @hookimpl
            def autoheur_features():
                return [Feature("m", integer=True), Feature("n", integer=True), Feature("m*n", formula="m * n")]
        """

    @hookspec(firstresult=True)
    def autoheur_extract(
        self, operator: str, operands: Sequence[Operand], flags: Mapping[str, Value]
    ) -> Problem | None:
        """Compute the raw features of a problem from its operands.

        ``operands`` come in the order of the operator's arguments. ``flags`` holds what tensors do not tell, for
        padding ``prepadded_mat1``, ``prepadded_mat2`` and ``using_tf32``. Called while compiling: it must be quick and
        must not import torch.

        Example::

            @hookimpl
            def autoheur_extract(operands, flags):
                (m, k), (_, n) = operands[0].shape, operands[1].shape
                return {"m": m, "k": k, "n": n}
        """

    @hookspec(firstresult=True)
    def autoheur_choices(self, operator: str, problem: Problem | None) -> Sequence[str | Choice] | None:
        """Enumerate the choices for a problem, or, with ``problem`` ``None``, all that are known beforehand.

        Plain names where names are all there is to know, else :class:`~autoheur.types.Choice` values with the features
        that are declared with ``of="choice"``. They may differ from problem to problem, and nothing that is not among
        them is ever decided.

        Example::

            @hookimpl
            def autoheur_choices():
                return [Choice(f"block={size}", {"block": size}) for size in (32, 64, 128)]
        """

    @hookspec(firstresult=True)
    def autoheur_choice_features(self, operator: str, name: str) -> Mapping[str, Value] | None:
        """The raw features of a choice of which only the name is known, as in a log of measurements.

        Default: the parts of the name that look like ``name=number``, see :mod:`autoheur.dataset.choice_names`.

        Example::

            @hookimpl
            def autoheur_choice_features(name):
                return {"block": int(name.removeprefix("block="))}
        """

    @hookspec(firstresult=True)
    def autoheur_benchmark(
        self, operator: str, problem: Problem, device: str
    ) -> Mapping[str, Callable[[], object]] | None:
        """Prepare one problem on ``device`` (torch's device type) and return, per choice, a callable that runs it once.

        Timing, interleaving and statistics are autoheur's. Called for every repetition, so that operands are made
        anew and none stay in memory while other problems are measured: keep what takes long, such as a compiled
        kernel. A choice that cannot run may be left out, or raise when called; it is recorded as failed.

        Example::

            @hookimpl
            def autoheur_benchmark(problem, device):
                import torch

                a = torch.randn(int(problem["m"]), int(problem["k"]), device=device)
                b = torch.randn(int(problem["k"]), int(problem["n"]), device=device)
                return {"orig": lambda: a @ b, "pad": lambda: padded_matmul(a, b)}
        """

    @hookspec(firstresult=True)
    def autoheur_codegen(self, operator: str, artifact: Artifact, target: str) -> str | None:
        """Generate source code for an artifact. Default: autoheur's own emitter for ``target``.

        Implement it to add a target, and return ``None`` for the targets of others; or wrap it to add something to
        every operator's code. The operator's own plugin is asked first, then plugins without one, then the default.

        Example::

            @hookimpl(wrapper=True)
            def autoheur_codegen(artifact, target):
                source = yield
                return f"# Licence: Apache-2.0\\n{source}"
        """

    @hookspec(firstresult=True)
    def autoheur_problems(self, operator: str, random: Random, device: Fingerprint) -> Iterator[Problem] | None:
        """Sample problems worth measuring on ``device``, without end. All randomness comes from ``random``.

        Example::

            @hookimpl
            def autoheur_problems(random):
                while True:
                    yield {"m": random.randint(1, 4096), "k": random.randint(1, 4096), "n": random.randint(1, 4096)}
        """

    @hookspec(firstresult=True)
    def autoheur_complete(self, operator: str, given: Mapping[str, Value]) -> Problem | None:
        """Complete a problem that is given in a short form: by sizes and a dtype, say, without strides.

        ``given`` holds what a row of a file of shapes says, empty cells left out; truth values are ``bool``, dtypes in
        torch's spelling. Return all raw features. Default: every raw feature has to be given.

        Raises:
            ValueError: something is missing, unknown or of the wrong kind; the message says what, and the file and
                line are added to it.

        Example::

            @hookimpl
            def autoheur_complete(given):
                return {"stride": given["columns"], **given}
        """

    @hookspec(firstresult=True)
    def autoheur_precondition(self, operator: str, device: Fingerprint) -> str | None:
        """A formula (see :mod:`autoheur.formula`) that problems must meet on ``device``. Default: none.

        It is stored in artifacts trained for the device.

        Example::

            @hookimpl
            def autoheur_precondition(device):
                return "m >= 512 and k >= 512 and n >= 512" if device.capability == "8.0" else None
        """

    @hookspec
    def autoheur_heuristics(self, operator: str) -> Sequence[Path | Artifact] | None:
        """The learned heuristics that come with this plugin: artifact files, or artifacts. Default: none.

        A plugin without an operator of its own is asked for every operator, so a hardware vendor can bring heuristics
        for operators that others wrote; those take precedence over the ones that come with the operator. Where such a
        plugin is in the operator's own distribution, its heuristics come last. Artifacts are held to what files are.

        Example::

            @hookimpl
            def autoheur_heuristics():
                return sorted(Path(__file__).with_name("heuristics").glob("*.json"))
        """

    @hookspec
    def autoheur_learners(self) -> Sequence[Learner] | None:
        """The learners that this plugin adds. The hook must be cheap: import heavy libraries when fitting.

        Example::

            @hookimpl
            def autoheur_learners():
                return [RegressionTree(), GradientBoosting()]
        """

    @hookspec
    def autoheur_sites(self) -> Sequence[Site] | None:
        """The places in torch where operators are asked; see :mod:`autoheur.site`.

        Called once Inductor is imported. Plugins that share a site may each return it, the same object; it counts once.

        Example::

            @hookimpl
            def autoheur_sites():
                from my_package.site import DECOMPOSE

                return [DECOMPOSE]
        """
