"""The modes collect and shadow, and what is told of decisions."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import autoheur
from autoheur import fingerprint
from autoheur.dataset.files import read, read_all
from autoheur.errors import InputError
from autoheur.inductor import asking, observed, shadow, torch_seams
from autoheur.types import Reason

torch = pytest.importorskip("torch")


def inputs(m: int = 5) -> list[Any]:
    return [torch.ones(m, 7), torch.ones(7, 9)]


def measurements() -> list[Path]:
    return sorted(observed.measurements_folder().glob("*.txt"))


def test_collect_keeps_what_inductor_measures_as_a_dataset(bench: Any, graphs: Any, gates: Any) -> None:
    gates.times = (3.0, 1.5)
    with autoheur.enabled("collect", bench.registry()):
        for m in (5, 6):
            graphs.compile(lambda a, b: a @ b)(*inputs(m))
        assert graphs.pads > 0, "Inductor decides"
        graphs.compile(lambda b, x, y: torch.addmm(b, x, y))(torch.ones(9), *inputs())
        graphs.compile(torch.bmm)(torch.ones(2, 5, 7), torch.ones(2, 7, 9))
    assert gates.calls == 8
    by_operator = {dataset.operator: dataset for dataset in map(read, measurements())}
    assert sorted(by_operator) == ["addmm", "bmm", "pad_mm"]
    dataset = by_operator["pad_mm"]
    assert dataset.problems["m"].to_list() == [5, 6]
    assert dataset.choices == ("orig", "pad")
    assert dataset.rows["time_ms"].to_list() == [3.0, 1.5, 3.0, 1.5]
    assert dataset.device == fingerprint.cpu()
    names = [feature.name for feature in dataset.features]
    assert names == [feature.name for feature in bench.registry().raw_features("pad_mm")]
    assert autoheur.last_decisions() == []


def test_collect_measures_what_is_cached_once_more_and_leaves_those_entries_alone(
    bench: Any, graphs: Any, gates: Any
) -> None:
    graphs.compile(lambda a, b: a @ b)(*inputs())
    with autoheur.enabled("collect", bench.registry()):
        graphs.compile(lambda a, b: a @ b)(*inputs())
        graphs.compile(lambda a, b: a @ b)(*inputs())
    assert gates.calls == 4
    assert read_all(measurements()).rows.height == 2
    graphs.compile(lambda a, b: a @ b)(*inputs())
    assert gates.calls == 4


@pytest.mark.parametrize(
    ("choice", "times", "agreement", "regret"),
    [("pad", (4.0, 1.0), 1.0, 1.0), ("pad", (1.0, 4.0), 0.0, 4.0), (None, (1.0, 4.0), None, None)],
)
def test_shadow_decides_lets_inductor_measure_and_keeps_both(
    bench: Any, graphs: Any, gates: Any, choice: str | None, times: Any, agreement: Any, regret: Any
) -> None:
    gates.times = times
    bench.put("pad_mm", choice)
    with autoheur.enabled("shadow", bench.registry()):
        graphs.compile(lambda a, b: a @ b)(*inputs())
    assert gates.calls == 2
    assert (graphs.pads > 0) == (times[1] < times[0]), "Inductor's own result"
    (record,) = autoheur.last_decisions()
    assert (record.choice, record.by) == (choice, "inductor")
    assert read(measurements()[0]).rows["time_ms"].to_list() == list(times)
    (tally,) = shadow.report().tallies
    row = tally.to_dict()
    assert (row["operator"], row["heuristic"]) == ("pad_mm", "always-pad_mm")
    assert (row["questions"], row["decided"], row["agreement"]) == (1, 0 if choice is None else 1, agreement)
    assert (row["regret_gmean"], row["regret_max"]) == (pytest.approx(regret) if regret else None, regret)
    assert (row["saved_ms"] != 0) == (choice is not None)


def comparison(**changes: Any) -> str:
    row = {
        "operator": "pad_mm", "heuristic": "h", "choice": "pad", "inductor": "pad",
        "times_ms": {"orig": 2.0, "pad": 1.0}, "inductor_ms": 10.0, "decision_ms": 1.0,
    }  # fmt: skip
    return json.dumps({**row, **changes})


def test_a_report_adds_up_files_per_operator_and_heuristic_and_skips_torn_lines(tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    lines = [
        comparison(),
        comparison(choice="orig"),
        comparison(choice=None),
        comparison(times_ms={}),
        comparison()[:40],
    ]
    first.write_text("\n".join(lines))
    second.write_text(comparison(operator="bmm", heuristic=None, choice=None) + "\n[]\n" + comparison(inductor_ms="x"))
    report = shadow.report([first, second])
    assert (report.files, report.skipped) == (2, 3)
    bmm, pad_mm = (tally.to_dict() for tally in report.tallies)
    assert (bmm["operator"], bmm["questions"], bmm["decided"], bmm["agreement"]) == ("bmm", 1, 0, None)
    assert (pad_mm["questions"], pad_mm["decided"], pad_mm["unsure"], pad_mm["measured"]) == (4, 3, 1, 2)
    assert pad_mm["agreement"] == pytest.approx(2 / 3)
    assert pad_mm["regret_gmean"] == pytest.approx(2**0.5)
    assert (pad_mm["regret_max"], pad_mm["inductor_regret_gmean"], pad_mm["saved_ms"]) == (2.0, 1.0, 27.0)


def test_a_report_of_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere\\.jsonl: cannot read"):
        shadow.report([tmp_path / "nowhere.jsonl"])


def test_the_report_command(capsys: pytest.CaptureFixture[str]) -> None:
    from autoheur.cli.inductor import shadow_report

    shadow_report.main([], standalone_mode=False)
    assert "no comparisons yet" in capsys.readouterr().out
    observed.comparisons_folder().mkdir(parents=True)
    (observed.comparisons_folder() / "1.jsonl").write_text(comparison() + "\n{")
    shadow_report.main(["--json"], standalone_mode=False)
    answer = json.loads(capsys.readouterr().out)
    assert (answer["files"], answer["skipped_lines"]) == (1, 1)
    assert (answer["rows"][0]["agreement"], answer["rows"][0]["saved_ms"]) == (1.0, 9.0)
    shadow_report.main([], standalone_mode=False)
    assert "1 lines could not be read" in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_is_one_warning(
    bench: Any,
    graphs: Any,
    gates: Any,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("AUTOHEUR_HOME", str(tmp_path / "file"))
    with autoheur.enabled("collect", bench.registry()):
        for m in (5, 6):
            graphs.compile(lambda a, b: a @ b)(*inputs(m))
    (message,) = [record.getMessage() for record in caplog.records if record.name == "autoheur.inductor"]
    assert message.startswith("pad_mm: cannot keep a row: NotADirectoryError")


def test_a_debug_line_tells_everything_of_a_decision(bench: Any, graphs: Any, caplog: pytest.LogCaptureFixture) -> None:
    bench.put("pad_mm", "pad")
    with caplog.at_level(logging.DEBUG, logger="autoheur.inductor"), autoheur.enabled(registry=bench.registry()):
        graphs.compile(lambda a, b: a @ b)(*inputs())
    (line,) = [record.getMessage() for record in caplog.records if record.name == "autoheur.inductor"]
    assert line.startswith("pad_mm [m=5 k=7 n=9 mat1_stride_0=7 ")
    assert "] -> pad: decided; heuristic always-pad_mm; took pad by heuristic; " in line
    assert line.endswith(" us")


def test_a_decision_is_an_event_of_the_compile_trace(bench: Any, graphs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[tuple[Any, Any]] = []
    original = torch_seams.trace_structured

    def note(name: str, metadata_fn: Any = dict, **rest: Any) -> None:
        metadata = metadata_fn()
        if name == "artifact" and metadata["name"].startswith("autoheur"):
            events.append((metadata, rest["payload_fn"]()))
        original(name, metadata_fn, **rest)

    monkeypatch.setattr(asking, "trace_structured", note)
    bench.put("pad_mm", "pad")
    with autoheur.enabled(registry=bench.registry()):
        graphs.compile(lambda a, b: a @ b)(*inputs())
    ((metadata, payload),) = events
    assert metadata == {"name": "autoheur_pad_mm", "encoding": "json"}
    assert json.loads(json.dumps(payload))["choice"] == "pad"
    assert payload["problem"]["k"] == 7


def test_last_decisions_are_those_since_enabling_and_stay_after_disabling(bench: Any, graphs: Any) -> None:
    bench.put("pad_mm", "pad")
    autoheur.enable(registry=bench.registry())
    for m in (5, 6):
        graphs.compile(lambda a, b: a @ b)(*inputs(m))
    autoheur.disable()
    assert [record.problem["m"] for record in autoheur.last_decisions()] == [5, 6]
    record = autoheur.last_decisions()[0]
    assert (record.device, record.mode, record.reason) == (fingerprint.cpu(), "use", Reason.DECIDED)
    assert record.compile_id == "0/0"
    assert record.microseconds > 0
    autoheur.enable(registry=bench.registry())
    assert autoheur.last_decisions() == []
