"""From datasets to an artifact."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from autoheur.dataset.combine import combine
from autoheur.dataset.dataset import Dataset
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.artifact import Artifact, Precondition, Seen
from autoheur.heuristic.model import Forest
from autoheur.train import protocols
from autoheur.train.drawing import Drawing, Sampler
from autoheur.train.evaluation import Row
from autoheur.train.examples import UNFILTERED, Encoding, Filter, Selection, require_problems, select
from autoheur.train.guarding import ranges_seen, within
from autoheur.train.learner import Examples, Learner
from autoheur.train.protocol import Data, Options
from autoheur.train.provenance import describe
from autoheur.train.search import Progress, candidates
from autoheur.train.splits import published_split, train_val_split
from autoheur.types import Feature

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
    model = without_unused_inputs(outcome.model.forest())
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
        precondition=Precondition(device, request.precondition),
        seen=dict(prepared.seen),
        provenance=describe(outcome, protocol.name, request.options, parts, prepared.split),
    )
    return TrainResult(artifact, tuple(outcome.rows), (*prepared.notes, *outcome.notes))


@attrs.frozen(eq=False)
class _Prepared:
    data: Data
    train: Dataset
    seen: Mapping[str, Seen]
    split: str | None
    notes: Sequence[str]


def _prepare(request: TrainRequest, rule: Filter) -> _Prepared:
    """Filter, encode and, where val is not given, split."""
    _check_parts(request)
    train = combine(request.train)
    selections = {"train": _select(train, request, rule, "train")}
    notes: list[str] = []
    for part, given in (("val", request.val), ("test", request.test)):
        if given:
            selections[part] = _select(combine(given), request, rule, part)
    encoding = Encoding.of([selections[part] for part in ("train", "val") if part in selections], request.features)
    filtered = {part: (selection, rule) for part, selection in selections.items()}
    unfiltered = {name: (_select(data, request, UNFILTERED, name), UNFILTERED) for name, data in request.evals.items()}
    examples = {}
    for part, (selection, part_rule) in {**filtered, **unfiltered}.items():
        examples[part] = _encode(encoding, selection, part)
        if selection.dropped.count:
            total, reasons = selection.dropped.total, selection.dropped.describe(part_rule)
            notes.append(f"{part}: {selection.dropped.count:,} of {total:,} problems left out ({reasons})")
    split = _split(examples, request.options.seed)
    evals = {name: examples[name] for name in request.evals}
    seen = ranges_seen(request.features, [examples["train"], examples["val"]])
    inside = {part: within(seen, found.inputs, found.matrix) for part, found in examples.items() if part not in FITTED}
    if request.sampler is not None:
        draw = Drawing(request.sampler, request.features, encoding.inputs, seen, request.options.seed)
        examples |= {part: attrs.evolve(examples[part], draw=draw) for part in FITTED}
    data = Data(examples["train"], examples["val"], examples.get("test"), evals, inside)
    return _Prepared(data, train, seen, split, notes)


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


def _encode(encoding: Encoding, selection: Selection, part: str) -> Examples:
    examples = encoding.examples(selection)
    if not len(examples):
        trained, found = ", ".join(encoding.choices), ", ".join(selection.choices)
        raise InputError(f"{part}: no problem with two of the choices trained on ({trained}); it has {found}")
    return examples


def _split(examples: dict[str, Examples], seed: int) -> str | None:
    """Split ``examples["train"]`` into the parts that were not given, in place; say how."""
    if "val" in examples:
        return None
    whole = examples["train"]
    if "test" in examples:
        parts = dict(zip(("train", "val"), train_val_split(len(whole), seed), strict=True))
        how = f"val 0.25 at random by problem, seed {seed}"
    else:
        parts = dict(zip(("train", "val", "test"), published_split(len(whole), seed), strict=True))
        how = f"test 0.2, then val 0.25 of the rest, at random by problem, seed {seed}"
    if not all(map(len, parts.values())):
        raise InputError(f"train: {len(whole)} problem(s) are too few for a random split; measure more, or give val")
    examples |= {part: whole.take(indices) for part, indices in parts.items()}
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
    whole = {feature.name for feature in request.features if feature.integer}
    for dataset in datasets:
        whole -= {f.name for f in dataset.features if not dataset.problems.get_column(f.name).dtype.is_integer()}
    return [
        feature if feature.derived else attrs.evolve(feature, integer=feature.name in whole)
        for feature in request.features
    ]
