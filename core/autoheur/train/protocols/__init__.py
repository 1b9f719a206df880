"""The training protocols, by name."""

from __future__ import annotations

from collections.abc import Mapping

from autoheur.errors import InputError
from autoheur.train.protocols.autoheuristic import AutoHeuristic
from autoheur.train.protocols.calibrated import Calibrated
from autoheur.train.protocols.contract import TrainingProtocol

PROTOCOLS: Mapping[str, TrainingProtocol] = {protocol.name: protocol for protocol in (Calibrated(), AutoHeuristic())}

DEFAULT = Calibrated.name


def get(name: str) -> TrainingProtocol:
    """Look a protocol up.

    Raises:
        InputError: there is none of this name.
    """
    if name not in PROTOCOLS:
        raise InputError(f"no protocol {name!r} (there are: {', '.join(PROTOCOLS)})")
    return PROTOCOLS[name]
