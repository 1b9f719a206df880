"""Judging an artifact on datasets."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from autoheur.dataset.dataset import Dataset
from autoheur.errors import InputError
from autoheur.heuristic.artifact import Artifact
from autoheur.train import protocols
from autoheur.train.evaluation import Mask, Row, judge
from autoheur.train.examples import UNFILTERED, Filter, Selection, matrix, require_problems, select
from autoheur.train.learner import Floats
from autoheur.train.scoring import score
from autoheur.types import Feature

_PRECONDITION = "\0precondition"


@attrs.frozen(eq=False)
class Applied:
    """What an artifact makes of a dataset's P problems, those with two of its choices or more.

    ``selection`` holds the problems and their measurements, in the artifact's order of choices; ``scores`` are P x C;
    ``applies`` is false where the precondition does not hold or the guard stops a problem (P).
    """

    selection: Selection
    scores: Floats
    applies: Mask

    def judge(self, artifact: Artifact, dataset: str, tolerance: float, where: Mask | None = None) -> Row:
        """The figures of all problems, or of those ``where`` (P) is true; ``dataset`` is what to call them."""
        rows = slice(None) if where is None else where
        parameters = artifact.provenance.get("parameters")  # free-form, as all provenance
        return judge(
            self.scores[rows],
            self.selection.times[rows],
            artifact.policy,
            dataset=dataset,
            learner=str(artifact.provenance.get("learner", "")),
            params=parameters if isinstance(parameters, Mapping) else {},
            tolerance=tolerance,
            noise=self.selection.noise[rows],
            chosen=True,
            applies=self.applies[rows],
        )


def learned_from(artifact: Artifact, dataset: Dataset) -> bool:
    """Whether the artifact says that it was learned from files of this dataset: what it makes of it is no test then."""
    try:
        parts = artifact.provenance["datasets"].values()
        digests = {digest for part in parts for file in part for digest in file["sha256"]}
    except (KeyError, TypeError, AttributeError):  # provenance is free-form
        return False
    return not digests.isdisjoint(dataset.sha256)


def evaluate_artifact(
    artifact: Artifact, datasets: Mapping[str, Dataset], tolerance: float = 1.05, rule: Filter | None = None
) -> list[Row]:
    """Judge an artifact on named datasets, one row each; the devices may be others than the one it was learned for.

    Problems that do not meet the artifact's precondition, and those that its guard stops, count as unsure. ``rule``
    filters the measurements (default: see :func:`apply`).

    Raises:
        InputError: see :func:`apply`.
    """
    return [apply(artifact, dataset, rule).judge(artifact, name, tolerance) for name, dataset in datasets.items()]


def apply(artifact: Artifact, dataset: Dataset, rule: Filter | None = None) -> Applied:
    """Score the problems of a dataset; ``rule`` filters the measurements (default: as the protocol did that the
    artifact was trained with).

    Raises:
        InputError: the dataset is of another operator, lacks a feature, or has no problem with two of the choices.
    """
    if rule is None:
        protocol = protocols.PROTOCOLS.get(str(artifact.provenance.get("protocol")))
        rule = protocol.rule if protocol else UNFILTERED
    if dataset.operator != artifact.operator:
        raise InputError(f"{dataset.name}: measurements of {dataset.operator!r}, not of {artifact.operator!r}")
    features = list(artifact.features)
    if artifact.precondition.formula is not None:
        features.append(Feature(_PRECONDITION, "categorical", formula=artifact.precondition.formula))
    selection = require_problems(select(dataset, features, rule), rule, dataset.name)
    known = selection.restrict(artifact.choices)
    if not len(known):
        expected, found = ", ".join(artifact.choices), ", ".join(selection.choices)
        raise InputError(f"{dataset.name}: no problem with two of the artifact's choices ({expected}); it has {found}")
    inputs = [column for column in artifact.model.inputs if column.choice is None]
    scores = score(artifact.model, matrix(known.columns, inputs), known.choices)
    return Applied(known, scores, _applies(artifact, known))


def _applies(artifact: Artifact, selection: Selection) -> Mask:
    """Where the precondition holds and the guard lets a problem through."""
    applies = np.ones(len(selection), bool)
    if artifact.precondition.formula is not None:
        applies &= selection.columns[_PRECONDITION] == "True"
    if artifact.policy.guard:
        for name, seen in artifact.seen.items():
            column = selection.columns[name]
            if seen.categories is not None:
                applies &= np.isin(column, seen.categories)
            else:
                applies &= (column >= seen.low) & (column <= seen.high)
    return applies
