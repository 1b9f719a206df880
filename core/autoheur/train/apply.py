"""Judging an artifact on datasets."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from autoheur.dataset.dataset import Dataset
from autoheur.errors import InputError
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.reference import Floats, Mask, Shortlists, inside, shortlists
from autoheur.train import protocols
from autoheur.train.crossfit import score
from autoheur.train.examples import UNFILTERED, Encoding, Filter, Selection, require_problems, select
from autoheur.train.figures import Row, judge
from autoheur.train.ranges import trusted
from autoheur.types import Feature

_PRECONDITION = "\0precondition"


@attrs.frozen(eq=False)
class Applied:
    """What an artifact makes of a dataset's P problems with C choices.

    ``selection`` holds the problems and their measurements, the artifact's own choices first; ``scores`` are P x C, NaN
    where there is none; ``applies`` is false where the precondition does not hold or the guard stops a problem (P), and
    ``trusted`` (P x C) where the guard stops a choice.
    """

    selection: Selection
    scores: Floats
    applies: Mask
    trusted: Mask

    def shortlists(self, artifact: Artifact) -> Shortlists:
        """What is left of the measured choices."""
        offered = np.isfinite(self.selection.times)
        scores = np.where(self.trusted, self.scores, np.nan)
        policy = artifact.policy
        return shortlists(scores, offered, artifact.model.statistic, policy.threshold, self.applies)

    def judge(self, artifact: Artifact, dataset: str, tolerance: float, where: Mask | None = None) -> Row:
        """The figures of all problems, or of those ``where`` (P) is true; ``dataset`` is what to call them."""
        rows = slice(None) if where is None else where
        parameters = artifact.provenance.get("parameters")  # free-form, as all provenance
        return judge(
            self.scores[rows],
            self.selection.times[rows],
            artifact.model.statistic,
            artifact.policy.threshold,
            dataset=dataset,
            learner=str(artifact.provenance.get("learner", "")),
            params=parameters if isinstance(parameters, Mapping) else {},
            tolerance=tolerance,
            noise=self.selection.noise[rows],
            chosen=True,
            applies=self.applies[rows],
            trusted=self.trusted[rows],
        )


def learned_from(artifact: Artifact, dataset: Dataset) -> bool:
    """Whether the artifact says that it was learned from files of this dataset: what it makes of it is no test then."""
    try:
        parts = artifact.provenance["datasets"].values()
        digests = {digest for part in parts for file in part for digest in file["sha256"]}
    except (KeyError, TypeError, AttributeError):  # provenance is free-form
        return False
    return not digests.isdisjoint(dataset.sha256)


def apply(artifact: Artifact, dataset: Dataset, rule: Filter | None = None) -> Applied:
    """Score the problems of a dataset; ``rule`` filters the measurements (default: as the protocol did that the
    artifact was trained with).

    Raises:
        InputError: the dataset is of another operator, lacks a feature, or has nothing that the artifact can score.
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
    known = selection.with_choices_first(artifact.choices)
    if artifact.model.needs_names and not np.isfinite(known.times[:, : len(artifact.choices)]).any():
        expected, found = ", ".join(artifact.choices), ", ".join(selection.choices)
        raise InputError(f"{dataset.name}: none of the artifact's choices ({expected}); it has {found}")
    names = {feature.name for feature in known.pair_features}
    columns = [column for column in artifact.model.inputs if column.choice is None]
    encoding = Encoding(
        tuple(column for column in columns if column.feature not in names),
        tuple(column for column in columns if column.feature in names),
        tuple(artifact.choices),
    )
    scores = score(artifact.model, encoding.examples(known, tolerance=1), artifact.choices)
    return Applied(known, scores, _applies(artifact, known), _trusted(artifact, known))


def _applies(artifact: Artifact, selection: Selection) -> Mask:
    """Where the precondition holds and the guard lets a problem through (P)."""
    applies = np.ones(len(selection), bool)
    if artifact.precondition.formula is not None:
        applies &= selection.columns[_PRECONDITION] == "True"
    if artifact.policy.guard:
        applies &= inside(artifact.seen, selection.columns, len(selection))
    return applies


def _trusted(artifact: Artifact, selection: Selection) -> Mask:
    """Which choices the guard lets keep their scores (P x C)."""
    if artifact.policy.guard:
        return trusted(artifact.seen, selection)
    return np.ones(selection.times.shape, bool)
