"""AUTOHEUR=1 and a script that never mentions autoheur."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from autoheur.hookspecs import hookimpl
from autoheur.inductor import switch
from autoheur.inductor.autoload import autoload
from autoheur.plugins import Source
from autoheur.types import Provenance

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
    assert "autoheur.inductor.torch_seams" not in modules
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
    active = switch.active()
    switch.disable()
    assert (active.mode if active else None) == mode


def test_a_wrong_value_is_a_warning_and_not_a_failed_import(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AUTOHEUR", "always")
    autoload()
    assert switch.active() is None
    (message,) = caplog.messages
    assert message == "AUTOHEUR=always: autoheur stays off: there is no mode 'always' (known: use, collect, shadow)"


def test_attaching_waits_for_inductor_and_detaching_forgets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(sys.meta_path)
    monkeypatch.setattr(switch, "ENTRANCE", "never_imported")
    switch.enable()
    switch.enable()
    assert len(sys.meta_path) == len(before) + 1
    switch.disable()
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
    (site,) = found["sites"]
    assert (site["name"], site["distribution"], site["available"]) == ("padding", "autoheur-pad_mm", True)
    assert site["operators"] == ["pad_mm", "addmm", "bmm"]
    assert {seam["name"].rpartition(".")[2]: seam["needed"] for seam in site["seams"]} == {
        "_should_pad": True,
        "can_pad": True,
        "is_mm_compute_bound": True,
        "should_exclude_padding_time": True,
        "should_pad_bench_key": False,
        "is_padded_faster": False,
    }
    inductor.doctor.main([], standalone_mode=False)
    text = capsys.readouterr().out
    assert "always-pad_mm" in text
    assert "_should_pad" in text
    assert "padding" in text


def test_the_doctor_says_which_sites_are_left_out_and_why(
    bench: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.fx_passes import pad_mm

    from autoheur.cli import inductor

    def fails() -> Any:
        raise LookupError("no sites today")

    failing = ModuleType("failing")
    vars(failing)["autoheur_sites"] = hookimpl(fails)
    bench.sources.append(Source(Provenance("failing", "vendor-sites", "3"), failing))
    registry = bench.registry()
    monkeypatch.setattr(inductor, "default_registry", lambda: registry)
    monkeypatch.delattr(pad_mm, "can_pad")
    inductor.doctor.main(["--json"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    padding, broken = sorted(found["sites"], key=lambda row: row["name"], reverse=True)
    assert not padding["available"]
    assert "lacks torch._inductor.fx_passes.pad_mm.can_pad (AttributeError" in padding["problem"]
    assert (broken["distribution"], broken["problem"]) == ("vendor-sites", "LookupError: no sites today")
    assert found["problems"] == ["failing (vendor-sites 3): site -: LookupError: no sites today"]
    assert found["torch"]["supported"], "the rest of autoheur works"
    inductor.doctor.main([], standalone_mode=False)
    assert "left out" in capsys.readouterr().out
