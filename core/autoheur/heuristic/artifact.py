"""The artifact: a learned heuristic as JSON data. Loading one validates it and never executes anything from it."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from autoheur import formula as formulas
from autoheur.errors import ArtifactError, FormulaError
from autoheur.files import write_text
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic.model import Forest, Policy, flaw
from autoheur.types import Feature, FeatureKind, Value

if TYPE_CHECKING:
    import cattrs

FORMAT = "autoheur.artifact"
VERSION = 2


@attrs.frozen
class Seen:
    """What training saw of one raw feature: the closed range of numbers, or the categories."""

    low: float | None = None
    high: float | None = None
    categories: list[str] | None = None


@attrs.frozen
class Precondition:
    """Where a heuristic applies: devices that meet ``device``, problems for which ``formula`` holds (``None``: all)."""

    device: Fingerprint = Fingerprint()
    formula: str | None = None


@attrs.frozen
class Artifact:
    """A learned heuristic: everything needed to decide, and where it came from.

    ``features`` are the operator's raw features, of problems and of choices, and the derived ones that the model reads.
    ``choices`` are the names of those that training saw, and ``choice_features`` holds their raw features: name ->
    one value per choice. ``seen`` is keyed by raw feature. ``provenance`` is free-form: dataset hashes, learner and
    parameters, protocol, metrics per dataset, versions, date.
    """

    operator: str
    name: str
    features: list[Feature]
    choices: list[str]
    model: Forest
    policy: Policy
    choice_features: dict[str, list[Value]] = attrs.field(factory=dict)
    precondition: Precondition = Precondition()
    seen: dict[str, Seen] = attrs.field(factory=dict)
    provenance: dict[str, Any] = attrs.field(factory=dict)

    @property
    def raw_features(self) -> tuple[Feature, ...]:
        """Those that a problem names."""
        return tuple(feature for feature in self.features if not feature.derived and feature.of == "problem")

    @property
    def raw_choice_features(self) -> tuple[Feature, ...]:
        """Those that every choice has."""
        return tuple(feature for feature in self.features if not feature.derived and feature.of == "choice")

    def belongs_to_choice(self, name: str | None) -> bool:
        """Whether a feature may differ between the choices of one problem."""
        return name in of_choices(self.features)

    def table(self) -> dict[str, dict[str, Value]]:
        """The choices that training saw, each with its raw features."""
        return {
            choice: {name: values[position] for name, values in self.choice_features.items()}
            for position, choice in enumerate(self.choices)
        }


def of_choices(features: Sequence[Feature]) -> frozenset[str]:
    """The names of the features that belong to a choice, or to a problem and a choice together."""
    raw = {feature.name for feature in features if not feature.derived and feature.of == "choice"}
    derived = {f.name for f in features if f.formula is not None and raw.intersection(formulas.parse(f.formula).names)}
    return frozenset(raw | derived)


def to_json(artifact: Artifact) -> str:
    """Serialise; the same artifact gives the same bytes. Numbers are round-trip exact."""
    import cattrs

    data = {"format": FORMAT, "version": VERSION, **cattrs.unstructure(artifact)}
    data["precondition"]["device"] = artifact.precondition.device.to_dict()
    return _dump(data) + "\n"


def _dump(data: Any, depth: int = 0) -> str:
    """JSON with one line per leaf list, so that flat arrays stay readable and diffs small."""
    inside = "  " * (depth + 1)
    if isinstance(data, dict) and data and depth < 4:
        items = (f"{inside}{json.dumps(str(key))}: {_dump(value, depth + 1)}" for key, value in data.items())
        return "{\n" + ",\n".join(items) + "\n" + "  " * depth + "}"
    if isinstance(data, list) and data and isinstance(data[0], dict):
        items = (inside + _dump(value, depth + 1) for value in data)
        return "[\n" + ",\n".join(items) + "\n" + "  " * depth + "]"
    return json.dumps(data, allow_nan=False)


def from_json(text: str | bytes, source: str = "artifact") -> Artifact:
    """Parse and validate.

    Raises:
        ArtifactError: not JSON, not an artifact, a newer version, or contents that contradict one another; the
            message starts with ``source`` and names the offending field.
    """
    import cattrs

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{source}: not JSON ({error})") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ArtifactError(f'{source}: not an autoheur artifact (no "format": "{FORMAT}")')
    if data.get("version") == 1:
        data = _from_version_1(data)
    if data.get("version") != VERSION:
        raise ArtifactError(
            f"{source}: artifact version {data.get('version')!r}, but this autoheur reads version {VERSION}; "
            "train it again or use the autoheur that wrote it"
        )
    body = {key: value for key, value in data.items() if key not in ("format", "version")}
    try:
        artifact = _converter().structure(body, Artifact)
    except Exception as error:  # cattrs raises groups of anything
        details = "; ".join(cattrs.transform_error(error, path="artifact", format_exception=_describe))
        raise ArtifactError(f"{source}: {details}") from None
    problem = _contradiction(artifact)
    if problem:
        raise ArtifactError(f"{source}: {problem}")
    return artifact


def _from_version_1(data: dict[str, Any]) -> dict[str, Any]:
    """Version 1 had the statistic in the policy and knew no features of choices. What is damaged stays so."""
    policy, model = data.get("policy"), data.get("model")
    if not isinstance(policy, dict) or not isinstance(model, dict):
        return {**data, "version": VERSION}
    statistic = {"statistic": policy["statistic"]} if "statistic" in policy else {}
    kept = {key: value for key, value in policy.items() if key != "statistic"}
    return {**data, "version": VERSION, "policy": kept, "model": {**model, **statistic}}


@functools.cache
def _converter() -> cattrs.Converter:
    """Structures plain data strictly. Kept, for it generates code per type at first use, which outlasts a read."""
    import cattrs

    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook(int, _whole)
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook(bool, _truth)
    converter.register_structure_hook(Value, _value)
    return converter


def _describe(error: BaseException, expected: type | None) -> str:
    from cattrs.v import format_exception

    return str(error) if type(error) is ValueError else format_exception(error, expected)


def _number(value: Any, _: type) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"expected a finite number, not {value!r}")
    return float(value)


def _whole(value: Any, _: type) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a whole number, not {value!r}")
    return value


def _text(value: Any, _: type) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, not {value!r}")
    return value


def _truth(value: Any, _: type) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, not {value!r}")
    return value


def _value(value: Any, _: object) -> Value:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return _number(value, float)


def read(path: str | os.PathLike[str]) -> Artifact:
    """Read an artifact file.

    Raises:
        ArtifactError: the file cannot be read, or see :func:`from_json`.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path}: {error.strerror or error}") from None
    return from_json(text, source=str(path))


def write(artifact: Artifact, path: str | os.PathLike[str]) -> None:
    """Write an artifact file, whole or not at all (a temporary file is renamed over ``path``)."""
    write_text(path, to_json(artifact))


def _contradiction(artifact: Artifact) -> str | None:
    """Find what the types alone cannot rule out, so that everything downstream may trust an artifact."""
    for check in (_check_features, _check_choices, _check_model, _check_seen, _check_provenance):
        problem = check(artifact)
        if problem:
            return problem
    return None


def raw_kinds(features: Mapping[str, Feature], of: str | None = None) -> tuple[dict[str, FeatureKind], frozenset[str]]:
    """The raw features' kinds and the names of the whole-number ones, as :meth:`Formula.kind` takes them.

    ``of`` leaves out those of the other kind of thing, problem or choice.
    """
    raw = [feature for feature in features.values() if not feature.derived and of in (None, feature.of)]
    return {f.name: f.kind for f in raw}, frozenset(f.name for f in raw if f.integer)


def _check_features(artifact: Artifact) -> str | None:
    return feature_flaw(artifact.features, artifact.precondition.formula)


def feature_flaw(declared: Sequence[Feature], precondition: str | None = None) -> str | None:
    """What is wrong with declared features and a precondition over them, if anything."""
    features = {feature.name: feature for feature in declared}
    if len(features) != len(declared):
        return "two features have the same name"
    kinds, integers = raw_kinds(features)
    texts = [(f"feature {f.name!r}", f.formula, f.kind == "categorical") for f in declared if f.formula is not None]
    if precondition is not None:
        texts.append(("the precondition", precondition, True))
    for owner, text, truth in texts:
        known = raw_kinds(features, "problem") if owner == "the precondition" else (kinds, integers)
        try:
            kind = formulas.parse(text).kind(*known)
        except FormulaError as error:
            return f"{owner}: {error}"
        if (kind == "truth") != truth or kind == "category":
            return f"{owner}: formula {text!r} yields {kind}, which it must not"
    for feature in declared:
        # Generated code rounds the thresholds of whole numbers down.
        if (
            feature.integer
            and feature.formula is not None
            and formulas.parse(feature.formula).kind(kinds, integers) != "integer"
        ):
            return f"feature {feature.name!r}: formula {feature.formula!r} does not always yield whole numbers"
    return None


def _check_choices(artifact: Artifact) -> str | None:
    if len(artifact.choices) < 2:
        return "fewer than two choices"
    if len(set(artifact.choices)) != len(artifact.choices):
        return "a choice is listed twice"
    declared = {feature.name: feature for feature in artifact.raw_choice_features}
    if declared.keys() != artifact.choice_features.keys():
        return f"choice_features: {', '.join(artifact.choice_features)}, but declared are {', '.join(declared)}"
    for name, values in artifact.choice_features.items():
        if len(values) != len(artifact.choices):
            return f"choice_features: {name!r} has {len(values)} values for {len(artifact.choices)} choices"
        if any(isinstance(value, str) != (declared[name].kind == "categorical") for value in values):
            return f"choice_features: {name!r} is {declared[name].kind}"
    if artifact.model.layout == "vector" and any(artifact.belongs_to_choice(c.feature) for c in artifact.model.inputs):
        return "a model of layout 'vector' reads a feature of choices"
    return None


def _check_model(artifact: Artifact) -> str | None:
    model = artifact.model
    features = {feature.name: feature for feature in artifact.features}
    for position, column in enumerate(model.inputs):
        where = f"model input {position}"
        if column.choice is not None:
            if column.feature is not None or column.category is not None or column.choice not in artifact.choices:
                return f"{where} is not an indicator of one of the choices"
            if model.layout != "row":
                return f"{where} is a choice indicator in a model of layout {model.layout!r}"
        elif column.feature not in features:
            return f"{where} names the unknown feature {column.feature!r}"
        elif (column.category is not None) != (features[column.feature].kind == "categorical"):
            return f"{where}: feature {column.feature!r} is {features[column.feature].kind}"
    return flaw(model, len(artifact.choices))


def _check_seen(artifact: Artifact) -> str | None:
    raw = {feature.name: feature for feature in artifact.features if not feature.derived}
    for name, seen in artifact.seen.items():
        if name not in raw:
            return f"seen: {name!r} is not a raw feature"
        numerical = raw[name].kind == "numerical"
        if numerical != (seen.low is not None and seen.high is not None) or numerical == (seen.categories is not None):
            return f"seen: {name!r} needs {'a range' if numerical else 'categories'}"
    return None


def _check_provenance(artifact: Artifact) -> str | None:
    """Free-form, but what was read must be writable again: Python reads NaN and infinities."""
    try:
        json.dumps(artifact.provenance, allow_nan=False)
    except (ValueError, RecursionError) as error:
        return f"provenance: cannot be written as JSON ({error})"
    return None
