"""From datasets to an artifact."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from autoheur.dataset.combine import combine
from autoheur.dataset.dataset import Dataset
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.artifact import Artifact, Precondition, Seen
from autoheur.heuristic.model import Forest
from autoheur.heuristic.reference import inside
from autoheur.learning import Learner
from autoheur.train import protocols
from autoheur.train.examples import UNFILTERED, Encoding, Filter, Selection, require_problems, select
from autoheur.train.figures import Row
from autoheur.train.protocols.contract import Data, Options
from autoheur.train.provenance import describe
from autoheur.train.ranges import ranges_seen, trusted
from autoheur.train.sampled import SampledProblems, Sampler
from autoheur.train.search import Progress, candidates
from autoheur.train.splits import published_split, train_val_split
from autoheur.types import Feature, Value

FITTED = ("train", "val")
"""The parts that models and thresholds may be fitted to."""


@attrs.frozen(eq=False, kw_only=True)
class TrainRequest:
    """What to train.

    ``features`` are the operator's, raw and derived. Datasets of one part are taken together. Without ``val`` a part
    of ``train`` is split off at random, and without either of ``val`` and ``test`` a test set too. ``evals`` are
    judged only, and are not filtered. ``grid`` replaces the values tried for a parameter; with ``one_each``
    one value is tried of every other. ``precondition`` is a
    formula over raw features; it goes into the artifact and does not restrict training. ``device`` is what the
    heuristic is for, where the data does not say it well enough (default: what the data says). ``sampler`` makes up
    further problems on that device, for learners that can use them.
    """

    operator: str
    features: Sequence[Feature]
    train: Sequence[Dataset]
    val: Sequence[Dataset] = ()
    test: Sequence[Dataset] = ()
    evals: Mapping[str, Dataset] = attrs.field(factory=dict)
    learners: Sequence[Learner]
    protocol: str = protocols.DEFAULT
    grid: Mapping[str, Sequence[Any]] = attrs.field(factory=dict)
    one_each: bool = False
    options: Options = attrs.field(factory=Options)
    precondition: str | None = None
    device: Fingerprint | None = None
    sampler: Sampler | None = None
    name: str | None = None
    progress: Progress | None = None


@attrs.frozen(eq=False)
class TrainResult:
    """A learned heuristic, the result table (every candidate on every dataset), and lines for the user."""

    artifact: Artifact
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def train(request: TrainRequest) -> TrainResult:
    """Train a heuristic; deterministic for the same request but for the date in its provenance.

    Raises:
        InputError: data, features, learners, grid or options do not fit together; the message says which.
    """
    protocol = protocols.get(request.protocol)
    request.options.check()
    if not request.learners:
        raise InputError("no learner was asked for")
    tasks = candidates(request.learners, request.grid, request.one_each)
    looked_at = [feature for feature in request.features if feature.protocol in (None, protocol.name)]
    request = attrs.evolve(request, features=looked_at)
    prepared = _prepare(request, protocol.rule)
    outcome = protocol.run(prepared.data, tasks, request.options, request.progress)
    model = without_unused_inputs(outcome.forest)
    used = {column.feature for column in model.inputs}
    device = request.device or prepared.train.device
    parts = {"train": request.train, "val": request.val, "test": request.test}
    parts |= {name: [dataset] for name, dataset in request.evals.items()}
    artifact = Artifact(
        operator=request.operator,
        name=request.name or "_".join((request.operator, *re.findall("[a-z0-9]+", device.label().lower()))),
        features=[f for f in _with_fractions(request) if not f.derived or f.name in used],
        choices=list(prepared.data.train.choices),
        model=model,
        policy=outcome.policy,
        choice_features=prepared.choice_features,
        precondition=Precondition(device, request.precondition),
        seen=dict(prepared.seen),
        provenance=describe(outcome, protocol.name, request.options, parts, prepared.split),
    )
    return TrainResult(artifact, tuple(outcome.rows), (*prepared.notes, *outcome.notes))


@attrs.frozen(eq=False)
class _Prepared:
    data: Data
    train: Dataset
    choice_features: dict[str, list[Value]]
    seen: Mapping[str, Seen]
    split: str | None
    notes: Sequence[str]


def _prepare(request: TrainRequest, rule: Filter) -> _Prepared:
    """Filter, encode and, where val is not given, split."""
    _check_parts(request)
    train = combine(request.train)
    selections = {"train": _select(train, request, rule, "train")}
    for part, given in (("val", request.val), ("test", request.test)):
        if given:
            selections[part] = _select(combine(given), request, rule, part)
    encoding = Encoding.of([selections[part] for part in ("train", "val") if part in selections], request.features)
    notes = [_dropped(part, selection, rule) for part, selection in selections.items() if selection.dropped.count]
    split = _split(selections, request.options.seed)
    for name, dataset in request.evals.items():
        selections[name] = _select(dataset, request, UNFILTERED, name)
        if selections[name].dropped.count:
            notes.append(_dropped(name, selections[name], UNFILTERED))
    seen = ranges_seen(request.features, [selections[part] for part in FITTED])
    known = {part: selection.with_choices_first(encoding.choices) for part, selection in selections.items()}
    examples = {part: encoding.examples(selection, request.options.tolerance) for part, selection in known.items()}
    judged = {part: selection for part, selection in known.items() if part not in FITTED}
    if request.sampler is not None and not encoding.pair_inputs:
        draw = SampledProblems(request.sampler, request.features, encoding.inputs, seen, request.options.seed)
        examples |= {part: attrs.evolve(examples[part], draw=draw) for part in FITTED}
    data = Data(
        examples["train"],
        examples["val"],
        examples.get("test"),
        {name: examples[name] for name in request.evals},
        {part: inside(seen, selection.columns, len(selection)) for part, selection in judged.items()},
        {part: trusted(seen, selection) for part, selection in judged.items()},
    )
    return _Prepared(data, train, _choice_features(known.values(), encoding.choices), seen, split, notes)


def _dropped(part: str, selection: Selection, rule: Filter) -> str:
    dropped = selection.dropped
    return f"{part}: {dropped.count:,} of {dropped.total:,} problems left out ({dropped.describe(rule)})"


def _choice_features(selections: Iterable[Selection], choices: Sequence[str]) -> dict[str, list[Value]]:
    """The raw features of the choices: name -> one value per choice."""
    found: dict[str, list[Value]] = {}
    for selection in selections:
        measured = np.flatnonzero(np.isfinite(selection.times[:, : len(choices)]).any(axis=0))
        for name, column in selection.choice_columns.items():
            values = found.setdefault(name, [""] * len(choices))
            for position, value in zip(measured.tolist(), column[measured].tolist(), strict=True):
                values[position] = value
    return found


def _check_parts(request: TrainRequest) -> None:
    if not request.train:
        raise InputError("no data to train on")
    for name in request.evals:
        if name in ("train", "val", "test"):
            raise InputError(f"an evaluation dataset cannot be called {name!r}; that name is taken")
    for dataset in (*request.train, *request.val, *request.test, *request.evals.values()):
        if dataset.operator != request.operator:
            raise InputError(f"{dataset.name}: measurements of {dataset.operator!r}, not of {request.operator!r}")


def _select(dataset: Dataset, request: TrainRequest, rule: Filter, part: str) -> Selection:
    return require_problems(select(dataset, request.features, rule), rule, f"{part} ({dataset.name})")


def _split(selections: dict[str, Selection], seed: int) -> str | None:
    """Split ``selections["train"]`` into the parts that were not given, in place; say how."""
    if "val" in selections:
        return None
    whole = selections["train"]
    if "test" in selections:
        parts = dict(zip(("train", "val"), train_val_split(len(whole), seed), strict=True))
        how = f"val 0.25 at random by problem, seed {seed}"
    else:
        parts = dict(zip(("train", "val", "test"), published_split(len(whole), seed), strict=True))
        how = f"test 0.2, then val 0.25 of the rest, at random by problem, seed {seed}"
    if not all(map(len, parts.values())):
        raise InputError(f"train: {len(whole)} problem(s) are too few for a random split; measure more, or give val")
    selections |= {part: whole.take(indices) for part, indices in parts.items()}
    return how


def without_unused_inputs(forest: Forest) -> Forest:
    """The same forest without the inputs that no tree looks at."""
    used = sorted({feature for tree in forest.trees for feature in tree.feature if feature >= 0})
    number = {old: new for new, old in enumerate(used)} | {-1: -1}
    trees = [attrs.evolve(tree, feature=[number[feature] for feature in tree.feature]) for tree in forest.trees]
    return attrs.evolve(forest, inputs=[forest.inputs[old] for old in used], trees=trees)


def _with_fractions(request: TrainRequest) -> list[Feature]:
    """The features, with ``integer`` taken back where a dataset has fractions."""
    datasets = (*request.train, *request.val, *request.test, *request.evals.values())
    whole = {feature.name for feature in request.features if feature.integer}  # choices have few values: as declared
    for dataset in datasets:
        whole -= {f.name for f in dataset.features if not dataset.problems.get_column(f.name).dtype.is_integer()}
    return [
        feature if feature.derived or feature.of == "choice" else attrs.evolve(feature, integer=feature.name in whole)
        for feature in request.features
    ]
