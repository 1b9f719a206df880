"""The command line, end to end on small real inputs. The JSON keys are a contract."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

PAD_MM = shlex.split(
    "m=4097 k=2049 n=1025 mat1_stride_0=2049 mat1_stride_1=1 mat2_stride_0=1025 mat2_stride_1=1 m_padded_length=7 "
    "k_padded_length=7 n_padded_length=7 mat1_align_size=8 mat2_align_size=8 mat1_dtype=torch.float16 "
    "mat2_dtype=torch.float16 prepadded_mat1=False prepadded_mat2=False using_tf32=not_float_32"
)


def test_list_shows_operators_and_learners_with_kind_status_and_distribution(run: Run) -> None:
    rows = {row["name"]: row for row in run("list", "--json").json()["plugins"]}
    for name in ("pad_mm", "bmm", "addmm"):
        assert rows[name]["kind"] == "operator"
    for name in ("regression_tree", "gradient_boosting"):
        assert rows[name]["kind"] == "learner"
    assert rows["pad_mm"]["status"] == "shipped"
    assert "NVIDIA A100" in rows["pad_mm"]["devices"]
    assert rows["pad_mm"]["distribution"] == "autoheur-pad-mm"
    assert "autoheur_features" in rows["pad_mm"]["hooks"]
    text = run("list").out
    assert "\x1b" not in text  # plain when piped
    for name in rows:
        assert name in text


def test_show_tells_kinds_formulas_choices_precondition_and_heuristics(run: Run) -> None:
    shown = run("show", "pad_mm", "--json").json()
    features = {feature["name"]: feature for feature in shown["features"]}
    assert features["m*k"]["formula"] == "m * k"
    assert features["mat1_dtype"]["kind"] == "categorical"
    assert shown["choices"] == ["orig", "pad"]
    assert shown["heuristics"][0]["precondition"] == "m >= 512 and k >= 512 and n >= 512"
    text = run("show", "pad_mm").out
    assert "m * k * n / (m * k + k * n + m * n)" in text
    assert "m >= 512 and k >= 512 and n >= 512" in text


def test_a_log_is_imported_and_exported_without_loss(run: Run, log: Path, tmp_path: Path) -> None:
    dataset, back = tmp_path / "d.parquet", tmp_path / "back.txt"
    imported = run("import", log, "--out", dataset, "--json")
    assert imported.json()["problems"] == 240
    assert imported.json()["measurements"] == 1440
    assert "0 malformed" in imported.err
    assert run("export", dataset, "--out", back).code == 0
    assert back.read_text() == log.read_text()


def test_a_malformed_line_is_counted_and_named_and_strict_stops_there(run: Run, log: Path, tmp_path: Path) -> None:
    log.write_text(log.read_text() + "1,a,0.5,slow\n")
    line = len(log.read_text().splitlines())
    assert f"made_up.txt:{line}" in run("import", log, "--out", tmp_path / "d.parquet").err
    refused = run("import", log, "--out", tmp_path / "e.parquet", "--strict")
    assert f"made_up.txt:{line}" in refused.error()
    assert not (tmp_path / "e.parquet").exists()


def test_train_prints_the_contracts_rows_and_writes_an_artifact(run: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "h.json"
    trained = run("train", log, "--learner", "regression_tree", "--protocol", "autoheuristic", "--out", out, "--json")
    result = trained.json()
    assert result["artifact"] == str(out)
    assert json.loads(out.read_text())["operator"] == "made_up"
    chosen = [row for row in result["rows"] if row["chosen"]]
    assert [row["dataset"] for row in chosen] == ["train", "val", "test"]
    assert sum(row["total"] for row in chosen) == 240
    expected = (
        "dataset learner params chosen correct wrong unsure total max_wrong_speedup gmean_wrong_speedup threshold "
    )
    expected += "wrong_beyond_tolerance coverage regret_gmean regret_max"
    for row in result["rows"]:
        assert list(row) == expected.split() or set(expected.split()) <= set(row)
        assert row["correct"] + row["wrong"] + row["unsure"] == row["total"]
    # The rule behind the data is simple: the tree finds it.
    assert all(row["wrong"] == 0 and row["correct"] == row["total"] for row in chosen)


def test_the_operator_may_be_named_and_must_then_agree(run: Run, log: Path) -> None:
    named = run("train", "made_up", log, "--protocol", "autoheuristic", "--json")
    assert named.json()["rows"] == run("train", log, "--protocol", "autoheuristic", "--json").json()["rows"]
    assert "'made_up', not of 'pad_mm'" in run("train", "pad_mm", log).error()


def test_learners_are_compared_in_one_table(run: Run, log: Path) -> None:
    learners = ("--learner", "gradient_boosting", "--learner", "regression_tree")
    rows = run("train", log, *learners, "--protocol", "autoheuristic", "--grid", "max_iter=10", "--json").json()["rows"]
    assert {row["learner"] for row in rows} == {"regression_tree", "gradient_boosting"}


def test_evaluate_judges_files_and_named_sets(run: Run, log: Path, artifact: Path) -> None:
    rows = run("evaluate", artifact, log, "--eval", f"again={log}", "--json").json()["rows"]
    assert [row["dataset"] for row in rows] == ["made_up", "again"]
    assert rows[0]["correct"] == 240
    table = run("evaluate", artifact, log).out
    assert "correct" in table.splitlines()[0]


def test_codegen_decide_and_install_agree(run: Run, artifact: Path, tmp_path: Path) -> None:
    module = tmp_path / "generated.py"
    assert run("codegen", artifact, "--out", module).code == 0
    assert module.read_text() == run("codegen", artifact).out
    scope: dict[str, object] = {}
    exec(module.read_text(), scope)
    assert scope["decide"]({"x": 200, "y": 0.5, "dtype": "b"})[0] == "fast"  # type: ignore[operator]
    assert run("install", artifact).code == 0
    device = ("--device", "capability=8.0,kind=cuda,shared_memory=1024")
    decided = run("decide", "made_up", "x=200", "y=0.5", "dtype=b", *device, "--json").json()
    assert (decided["decision"], decided["reason"], decided["heuristic"]) == ("fast", "decided", "made_up")
    assert run("decide", "made_up", "x=5", "y=0.5", "dtype=b", *device).out.startswith("slow  (decided")
    listed = run("artifacts", "--json").json()["artifacts"]
    assert [row["tier"] for row in listed if row["name"] == "made_up"] == ["installed"]
    assert run("uninstall", "made_up").code == 0
    assert "no operator 'made_up'" in run("decide", "made_up", "x=5", "y=0.5", "dtype=b", *device).error()


def test_decide_gives_the_shipped_heuristics_answer_with_its_reason(run: Run) -> None:
    decided = run("decide", "pad_mm", *PAD_MM, "--device", "a100", "--json").json()
    assert decided["reason"] in ("decided", "below_threshold")
    assert decided["provenance"] == "pad_mm (autoheur-pad-mm 0.1.0)"
    elsewhere = run("decide", "pad_mm", *PAD_MM, "--device", "h100", "--json").json()
    assert (elsewhere["decision"], elsewhere["reason"]) == ("unsure", "no_heuristic")
    small = [value.replace("m=4097", "m=17") for value in PAD_MM]
    assert run("decide", "pad_mm", *small, "--device", "a100", "--json").json()["reason"] == "precondition"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "missing"),
        (("m=1",), "expected exactly: m, k, n, mat1_stride_0"),
        ((*PAD_MM, "extra=1"), "unknown extra"),
        ((*PAD_MM, "m=1"), "m is given twice"),
        (("m",), "'m' is not name=value"),
        (("m=big",), "feature m must be a whole number, not 'big'"),
        (("m=1.5",), "feature m must be a whole number, not '1.5'"),
        (("m=nan",), "not 'nan'"),
        ((*PAD_MM, "--device", "toaster"), "device 'toaster'"),
    ],
)
def test_bad_decide_arguments_are_one_clear_error(run: Run, arguments: tuple[str, ...], message: str) -> None:
    assert message in run("decide", "pad_mm", *arguments).error()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "nothing.parquet"], "nothing.parquet: cannot read: No such file"),
        (["train", "pad_mm"], "name the data to train on"),
        (["train", "LOG", "--learner", "oracle"], "no learner 'oracle' (known: "),
        (["train", "LOG", "--protocol", "hope"], "no protocol 'hope'"),
        (["train", "LOG", "--grid", "depth=3"], "no parameter 'depth'"),
        (["train", "LOG", "--grid", "max_depth"], "is not KEY=VALUE"),
        (["train", "LOG", "--grid", "max_depth=deep"], "max_depth"),
        (["train", "LOG", "--max-wrong-rate", "2"], "max wrong rate must be between 0 and 1"),
        (["train", "LOG", "--eval", "LOG"], "is not NAME=DATA"),
        (["train", "LOG", "--eval", "val=LOG"], "that name is taken"),
        (["evaluate", "none.json", "LOG"], "none.json: No such file"),
        (["evaluate", "pad_mm_a100", "LOG"], "'made_up', not of 'pad_mm'"),
        (["codegen", "nobody"], "no heuristic of that name (known: "),
        (["codegen", "pad_mm_a100", "--target", "cobol"], "cobol"),
        (["codegen", "pad_mm_a100", "--out", "no/such/folder/x.py"], "cannot write"),
        (["train", "nothing.parquet", "--out", "no/such/folder/h.json"], "h.json: cannot write: No such file"),
        (["capture", "--out", "no/such/folder/s.csv", "--", "false"], "s.csv: cannot write: No such file"),
        (["install", "LOG"], "not JSON"),
        (["uninstall", "nobody"], "no artifact 'nobody' is installed"),
        (["import", "LOG"], "--out"),
        (["show", "nobody"], "no operator 'nobody'"),
        (["frobnicate"], "No such command 'frobnicate'"),
    ],
)
def test_bad_input_is_one_clear_error(run: Run, log: Path, arguments: list[str], message: str) -> None:
    assert message in run(*(argument.replace("LOG", str(log)) for argument in arguments)).error()


def test_hostile_names_in_a_log_end_as_strings_in_generated_code(run: Run, log: Path, tmp_path: Path) -> None:
    hostile = 'x"); import os #'
    text = log.read_text().replace('"x"', json.dumps(hostile)).replace("x,dtype", f"{hostile},dtype")
    log.write_text(text.replace(",fast,", f",{hostile},"))
    artifact, module = tmp_path / "h.json", tmp_path / "h.py"
    assert run("train", log, "--protocol", "autoheuristic", "--name", hostile, "--out", artifact).code == 0
    for target in ("python", "inductor"):
        assert run("codegen", artifact, "--target", target, "--out", module).code == 0
        assert "import os" not in {line.strip().rstrip("#").strip() for line in module.read_text().splitlines()}
        compile(module.read_text(), "generated", "exec")
    assert "cannot be a file name" in run("install", artifact).error()


def test_output_into_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m autoheur.cli.main list --json | head -1"
    result = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert result.stderr == ""
