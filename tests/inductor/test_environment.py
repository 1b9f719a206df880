"""AUTOHEUR=1 and a script that never mentions autoheur."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from autoheur.inductor import activation as session
from autoheur.inductor import attachment
from autoheur.inductor.autoload import autoload

torch = pytest.importorskip("torch")

SCRIPT = """
import logging, sys
import torch
print([name for name in sys.modules if name.startswith(("autoheur", "torch._inductor.compile_fx"))])
import torch._inductor.compile_fx
from torch._inductor.fx_passes import pad_mm
pad_mm.check_device = pad_mm.has_triton = pad_mm.is_mm_compute_bound = lambda *_: True
pad_mm.get_do_bench = None
a, b = torch.ones(5, 7), torch.ones(7, 9)
result = torch.compile(lambda a, b: a @ b)(a, b)
torch.testing.assert_close(result, a @ b)
print(dict(torch._dynamo.utils.counters["autoheur"]))
module = torch._inductor.compile_fx
print(type(module.__loader__).__name__, type(module.__spec__.loader).__name__)
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )


def test_a_script_that_does_not_mention_autoheur(bench: Any) -> None:
    bench.put("pad_mm", "orig")
    settings = {"AUTOHEUR_HOME": str(bench.folder), "TORCHINDUCTOR_CACHE_DIR": str(bench.folder / "cache")}
    result = run(SCRIPT, AUTOHEUR="1", TORCH_LOGS="+autoheur", **settings)
    modules, counted, loaders = result.stdout.splitlines()
    assert "torch._inductor.compile_fx" not in modules, "import torch stays quick"
    assert "autoheur.inductor.patches" not in modules
    assert counted == "{'pad_mm.orig': 1, 'reason.decided': 1}"
    assert loaders == "SourceFileLoader SourceFileLoader"
    assert "-> orig: decided; heuristic always-pad_mm" in result.stderr


def test_without_the_variable_torch_loads_next_to_nothing_of_autoheur() -> None:
    """Every program with torch pays for this."""
    code = "import sys, torch; print(list(sys.modules)); print(type(sys.meta_path[0]))"
    modules, finder = run(code).stdout.splitlines()
    loaded = [name for name in ast.literal_eval(modules) if name.partition(".")[0] == "autoheur"]
    assert loaded == ["autoheur", "autoheur.inductor", "autoheur.inductor.autoload"]
    assert "torch._inductor.compile_fx" not in modules
    assert "autoheur" not in finder


@pytest.mark.parametrize(
    ("value", "mode"),
    [("1", "use"), ("on", "use"), ("use", "use"), ("Shadow", "shadow"), ("collect", "collect"), ("0", None)],
)
def test_what_the_variable_may_say(value: str, mode: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOHEUR", value)
    autoload()
    active = session.active()
    session.disable()
    assert (active.mode if active else None) == mode


def test_a_wrong_value_is_a_warning_and_not_a_failed_import(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AUTOHEUR", "always")
    autoload()
    assert session.active() is None
    (message,) = caplog.messages
    assert message == "AUTOHEUR=always: autoheur stays off: there is no mode 'always' (known: use, collect, shadow)"


def test_attaching_waits_for_inductor_and_detaching_forgets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(sys.meta_path)
    monkeypatch.setattr(attachment, "ENTRANCE", "never_imported")
    session.enable()
    session.enable()
    assert len(sys.meta_path) == len(before) + 1
    session.disable()
    assert sys.meta_path == before


def test_the_doctor(bench: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from autoheur.cli import inductor

    bench.put("pad_mm", "pad")
    registry = bench.registry()
    monkeypatch.setattr(inductor, "default_registry", lambda: registry)
    inductor.doctor.main(["--json"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["torch"] == torch.__version__ or found["versions"]["torch"] in torch.__version__
    assert found["torch"]["supported"]
    assert all(seam["found"] for seam in found["torch"]["seams"])
    assert found["devices"][0]["kind"] == "cpu"
    assert found["enabled"]["mode"] is None
    assert found["folders"]["home"] == os.environ["AUTOHEUR_HOME"]
    (heuristic,) = found["heuristics"]
    assert (heuristic["operator"], heuristic["name"], heuristic["answers"]) == ("pad_mm", "always-pad_mm", True)
    assert found["problems"] == []
    inductor.doctor.main([], standalone_mode=False)
    text = capsys.readouterr().out
    assert "always-pad_mm" in text
    assert "_should_pad" in text
