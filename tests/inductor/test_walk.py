"""How far it is from Inductor's question to its answer."""

from __future__ import annotations

import logging
import sys
from types import FrameType
from typing import Any

import pytest

import autoheur

torch = pytest.importorskip("torch")

MOST = 6


class Walks:
    """The modules of ours whose functions run from each call of torch to the value that it gets, in order.

    A heuristic's generated code counts as a module. Not counted are values that travel along (the properties of
    ``autoheur.types``, the constructors that attrs generates) and torch's own functions. Telling of the decision (the
    session's list, counters, log, compile trace) is on the way, so it is counted.
    """

    def __init__(self) -> None:
        self.modules: list[list[str]] = []
        self._outer: FrameType | None = None

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "return" and frame is self._outer:
            self._outer = None
        if event != "call":
            return
        file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
        if self._outer is None and module == "autoheur.inductor.asking" and frame.f_code.co_name == "asking":
            self._outer = frame
            self.modules.append([])
        name = "generated code" if file.startswith("<heuristic") else module
        is_value = name == "autoheur.types" or file.startswith("<attrs generated")
        is_ours = name == "generated code" or name.partition(".")[0].startswith("autoheur")
        if self._outer is not None and is_ours and not is_value and name not in self.modules[-1]:
            self.modules[-1].append(name)


def test_from_the_question_to_the_answer_it_is_six_modules(
    bench: Any, gates: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("pad_mm", "orig")
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "handlers", [])  # pytest's: nobody traces this compile
    registry = bench.registry()
    walks = Walks()
    with autoheur.enabled(registry=registry):
        compiled = torch.compile(lambda a, b: (a @ b) @ b.t())
        sys.setprofile(walks)
        try:
            compiled(torch.ones(5, 7), torch.ones(7, 9))
        finally:
            sys.setprofile(None)
    assert [record.by for record in autoheur.last_decisions()] == ["heuristic", "heuristic"]
    _, warm = walks.modules  # the first one reads what is read once
    assert "generated code" in warm
    assert len(warm) <= MOST, " ".join(warm)
