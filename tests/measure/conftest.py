"""A timer that does as it is told."""

from __future__ import annotations

from typing import Any

import pytest

from autoheur.measure.timers import Function, Repetition


class ToldTimer:
    """Takes what the timed function returns as the time in milliseconds; anything else takes one millisecond."""

    @property
    def settings(self) -> dict[str, Any]:
        return {"timer": "told"}

    def prepare(self, function: Function) -> Repetition:
        def repetition() -> float:
            time_ms = function()
            return time_ms if isinstance(time_ms, float) else 1.0

        return repetition


@pytest.fixture
def told() -> ToldTimer:
    return ToldTimer()
