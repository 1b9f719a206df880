"""The first two lines of an AutoHeuristic log: JSON metadata and the CSV header."""

from __future__ import annotations

import json
from typing import Any

import attrs

from autoheur.errors import InputError
from autoheur.types import Feature, FeatureKind

CHOICE = "choice"
FEEDBACK = "feedback"


@attrs.frozen
class Layout:
    """What the rows of a log mean.

    ``features`` are in the header's order, which is the stored one; ``choices`` are those that the metadata lists,
    or ``None`` where it leaves them open.
    """

    operator: str
    features: tuple[Feature, ...]
    choices: tuple[str, ...] | None
    metadata: dict[str, Any]

    @property
    def fields(self) -> int:
        """Fields per row: the features, the choice and the feedback."""
        return len(self.features) + 2


def parse_layout(source: str, metadata_line: bytes, header_line: bytes) -> Layout:
    """Check the first two lines of a log against one another.

    Raises:
        InputError: they are not what a log begins with; the message names ``source`` and the line.
    """
    metadata = _metadata(f"{source}:1", metadata_line)
    kinds: dict[str, FeatureKind] = {}
    for key, kind in (("numerical_features", "numerical"), ("categorical_features", "categorical")):
        for name in _names(f"{source}:1", metadata, key):
            if name in kinds:
                raise InputError(f"{source}:1: the metadata names the feature {name!r} twice")
            kinds[name] = "numerical" if kind == "numerical" else "categorical"
    choices = tuple(_names(f"{source}:1", metadata, "choices")) if "choices" in metadata else None
    names = _header(f"{source}:2", header_line)
    missing = [name for name in kinds if name not in names]
    unknown = [name for name in names if name not in kinds]
    if missing or unknown:
        problems = [f"lacks {', '.join(missing)}" if missing else "", f"adds {', '.join(unknown)}" if unknown else ""]
        raise InputError(f"{source}:2: the header {' and '.join(filter(None, problems))}, compared with the metadata")
    features = tuple(Feature(name, kinds[name]) for name in names)
    return Layout(metadata["name"], features, choices, metadata)


def parse_metadata(line: bytes) -> dict[str, Any] | None:
    """The JSON object on a line, or ``None`` where there is none."""
    try:
        metadata = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return metadata if isinstance(metadata, dict) else None


def _metadata(where: str, line: bytes) -> dict[str, Any]:
    metadata = parse_metadata(line)
    if metadata is None:
        raise InputError(f"{where}: the first line of a log is JSON metadata, this is not a JSON object")
    missing = [key for key in ("name", "numerical_features", "categorical_features") if key not in metadata]
    if missing:
        raise InputError(f"{where}: the metadata lacks {', '.join(missing)}")
    if not isinstance(metadata["name"], str) or not metadata["name"] or not _is_text(metadata["name"]):
        raise InputError(f"{where}: the metadata's \"name\" must be the operator's name")
    return metadata


def _names(where: str, metadata: dict[str, Any], key: str) -> list[str]:
    names = metadata[key]
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise InputError(f'{where}: the metadata\'s "{key}" must be a list of names')
    if not all(_is_text(name) for name in names):
        raise InputError(f'{where}: the metadata\'s "{key}" holds a name that is not Unicode text')
    if len(set(names)) != len(names):
        raise InputError(f'{where}: the metadata\'s "{key}" names one twice')
    return names


def _is_text(name: str) -> bool:
    """JSON can spell half of a surrogate pair, which no UTF-8 file can hold."""
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def _header(where: str, line: bytes) -> list[str]:
    try:
        names = line.decode().split(",")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: the header is not UTF-8 ({error.reason} at byte {error.start})") from None
    if names[-2:] != [CHOICE, FEEDBACK]:
        raise InputError(f"{where}: the header must be the features, then {CHOICE},{FEEDBACK}")
    del names[-2:]
    if not names:
        raise InputError(f"{where}: the header names no features")
    if "" in names:
        raise InputError(f"{where}: the header has an empty name")
    repeated = next((name for position, name in enumerate(names) if name in names[:position]), None)
    if repeated is not None or CHOICE in names or FEEDBACK in names:
        raise InputError(f"{where}: the header names {repeated or CHOICE!r} twice")
    return names
