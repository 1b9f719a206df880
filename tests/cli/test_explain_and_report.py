"""``autoheur explain`` and ``autoheur report``."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attrs
import pytest

from autoheur.codegen import compile_artifact
from autoheur.heuristic import artifact as artifacts
from autoheur.types import Problem
from tests.cli.conftest import Run

PROBLEM = ("x=150", "y=0.5", "dtype=b")


def test_an_explanation_has_the_decision_and_everything_that_led_to_it(
    run: Run, artifact: Path, log: Path, tmp_path: Path
) -> None:
    told = run("explain", artifact, *PROBLEM, "--data", log, "--nearest", "3", "--json").json()
    heuristic = artifacts.read(artifact)
    problem: Problem = {"x": 150, "y": 0.5, "dtype": "b"}
    choice, reason, confidence = compile_artifact(heuristic).decide(problem)
    assert (told["choice"], told["reason"], told["confidence"]) == (choice, reason, confidence)
    assert (told["choice"], told["decision"]) == ("fast", "fast")
    assert told["threshold"] == heuristic.policy.threshold
    assert list(told["scores"].values()) == list(compile_artifact(heuristic).scores(problem))
    features = {feature["name"]: feature for feature in told["features"]}
    assert features["x"]["value"] == 150.0
    assert features["x"]["seen"]["low"] >= 1
    assert features["x"]["inside"] is True
    assert features["dtype"]["seen"] == {"categories": ["a", "b"]}
    assert [near["problem"]["x"] for near in told["nearest"]]
    distances = [near["distance"] for near in told["nearest"]]
    assert distances == sorted(distances)
    assert len(distances) == 3
    assert all(near["best"] == "fast" for near in told["nearest"] if near["problem"]["dtype"] == "b")
    assert set(told["nearest"][0]["times_ms"]) == {"slow", "fast"}


def test_the_paths_lead_through_the_trees_to_the_scores(run: Run, artifact: Path) -> None:
    """Adding up the leaves reached gives the scores, and every condition says what the values say."""
    heuristic = artifacts.read(artifact)
    for x in ("1", "99", "100", "101", "240"):
        for dtype in "ab":
            told = run("explain", artifact, f"x={x}", "y=0.25", f"dtype={dtype}", "--json").json()
            for choice, score in told["scores"].items():
                paths = [path for path in told["paths"] if path["choice"] == choice]
                assert len(paths) == len(heuristic.model.trees)
                assert heuristic.model.base[0] + sum(path["outputs"][0] for path in paths) == pytest.approx(score)
            values = {feature["name"]: feature["value"] for feature in told["features"]}
            conditions = [condition for path in told["paths"] for condition in path["conditions"]]
            assert conditions
            for condition in conditions:
                value, limit = values[condition["feature"]], condition["limit"]
                assert condition["value"] == value
                assert condition["holds"] == (value == limit if isinstance(limit, str) else value <= limit)


def test_an_ensemble_is_told_by_its_votes_and_questions(run: Run) -> None:
    problem = [
        *("m=4097", "k=4097", "n=4097", "mat1_stride_0=4097", "mat1_stride_1=1", "mat2_stride_0=4097"),
        *("mat2_stride_1=1", "m_padded_length=7", "k_padded_length=7", "n_padded_length=7", "mat1_align_size=8"),
        *("mat2_align_size=8", "mat1_dtype=torch.float16", "mat2_dtype=torch.float16", "prepadded_mat1=False"),
        *("prepadded_mat2=False", "using_tf32=not_float_32"),
    ]
    told = run("explain", "pad_mm_a100", *problem, "--json").json()
    assert told["choice"] == "pad"
    assert sum(told["votes"].values()) <= len(told["paths"]) == 50
    assert told["votes"]["pad"] > told["votes"]["orig"]
    assert {path["choice"] for path in told["paths"]} == {None}
    assert [feature["value"] for feature in told["features"] if feature["formula"] == "m * k"] in ([], [4097.0**2])
    text = run("explain", "pad_mm_a100", *problem).out
    assert text.startswith("pad  (decided: best score over second best ")
    assert "best of 50 trees in" in text
    assert "the path through every tree is in the output of --json" in text


def test_what_was_not_seen_in_training_is_pointed_out(run: Run, artifact: Path) -> None:
    heuristic = artifacts.read(artifact)
    artifacts.write(attrs.evolve(heuristic, policy=attrs.evolve(heuristic.policy, guard=True)), artifact)
    told = run("explain", artifact, "x=100000", "y=0.5", "dtype=c", "--json").json()
    assert (told["decision"], told["reason"]) == ("unsure", "out_of_range")
    assert {feature["name"]: feature["inside"] for feature in told["features"]} == {
        "x": False,
        "y": True,
        "dtype": False,
    }
    assert told["scores"], "what the model would say is told all the same"
    text = run("explain", artifact, "x=100000", "y=0.5", "dtype=c").out
    assert len(re.findall(r"outside$", text, re.MULTILINE)) == 2


def test_the_same_problem_is_the_nearest_and_differs_nowhere(run: Run, artifact: Path, log: Path) -> None:
    x, dtype, y = log.read_text().splitlines()[2 + 6 * 100].split(",")[:3]
    arguments = ("explain", artifact, f"x={x}", f"y={y}", f"dtype={dtype}", "--data", log, "--nearest", "1")
    [near] = run(*arguments, "--json").json()["nearest"]
    assert near["distance"] == 0
    assert near["problem"] == {"x": float(x), "y": float(y), "dtype": dtype}
    assert run(*arguments).out.splitlines()[-1].endswith("nowhere")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x=1", "dtype=a"), "missing y (expected exactly: "),
        ((*PROBLEM, "z=1"), "unknown z"),
        (("x=big", "y=1", "dtype=a"), "feature x must be a"),
        ((*PROBLEM, "--data", "nothing.parquet"), "nothing.parquet: cannot read"),
        ((*PROBLEM, "--nearest", "0"), "--nearest"),
    ],
)
def test_bad_questions_are_one_clear_error(run: Run, artifact: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in run("explain", artifact, *arguments).error()


def test_data_of_another_operator_explains_nothing(run: Run, log: Path) -> None:
    shown = run("show", "pad_mm", "--json").json()
    raw = [feature for feature in shown["features"] if not feature.get("formula")]
    values = [f"{feature['name']}={'1' if feature['kind'] == 'numerical' else 'x'}" for feature in raw]
    assert "measurements of 'made_up', not of 'pad_mm'" in run("explain", "pad_mm_a100", *values, "--data", log).error()


class Page(HTMLParser):
    """Tables as lists of rows; complains about tags that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.tags: set[str] = set()
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag == "meta":
            return
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data


def test_a_report_has_the_figures_of_evaluate_in_all_and_by_group(
    run: Run, artifact: Path, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r.html"
    told = run("report", artifact, log, "--out", out, "--json").json()
    assert told["rows"] == run("evaluate", artifact, log, "--json").json()["rows"]
    page = Page(out.read_text())
    assert not page.tags & {"script", "link", "img", "iframe"}
    tables = {tuple(table[0][:2]): table for table in page.tables if table}
    [row] = told["rows"]
    header, figures = tables["dataset", "correct"]
    found = dict(zip(header, figures, strict=True))
    assert [int(found[key]) for key in ("correct", "wrong", "unsure", "total")] == [
        row[key] for key in ("correct", "wrong", "unsure", "total")
    ]
    _, a, b = tables["dtype", "correct"]
    assert (a[0], b[0]) == ("a", "b")
    assert int(a[1]) + int(b[1]) == row["correct"]
    steps = tables["threshold", "benchmarks saved"][1:]
    shares = [float(step[1].rstrip("%")) for step in steps]
    assert shares == sorted(shares)
    assert "<svg" in out.read_text()


def test_what_a_heuristic_was_learned_from_is_no_test_of_it(
    run: Run, artifact: Path, log: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.txt"
    other.write_text(log.read_text() + "500,a,0.5,slow,1.0\n")
    out = tmp_path / "r.html"
    for data, learned_from in ((log, True), (other, False)):
        note = "the heuristic was learned from these measurements"
        assert (note in run("evaluate", artifact, data).err) is learned_from
        run("report", artifact, data, "--out", out)
        assert (note in out.read_text()) is learned_from


def test_the_trade_off_passes_through_the_decisions_that_are_made(run: Run, artifact: Path, log: Path) -> None:
    from autoheur.dataset.files import read
    from autoheur.train.report import report_on

    section = report_on(artifacts.read(artifact), "d", read(log), tolerance=1.05)
    lower = (step for step in section.steps if step.threshold <= section.row.threshold)
    step = next(lower, section.steps[-1])
    assert step.coverage == pytest.approx(section.row.coverage or 0.0)
    assert step.saved == pytest.approx(section.row.benchmarks_saved or 0.0)
    assert step.wrong == pytest.approx(section.row.wrong / section.row.total)
    assert step.too_slow == pytest.approx(section.row.wrong_beyond_tolerance / section.row.total)
    assert len(section.mistakes) == min(20, section.row.wrong)


def test_the_worst_decisions_come_first(run: Run, artifact: Path, log: Path, tmp_path: Path) -> None:
    """Measurements that say the opposite make every decision wrong."""
    lines = [line.replace(",slow,", ",?,").replace(",fast,", ",slow,") for line in log.read_text().splitlines()]
    opposite = tmp_path / "opposite.txt"
    opposite.write_text("\n".join(line.replace(",?,", ",fast,") for line in lines))
    out = tmp_path / "r.html"
    [row] = run("report", artifact, "--eval", f"o={opposite}", "--out", out, "--json").json()["rows"]
    assert row["wrong"] > 20
    [table] = [table for table in Page(out.read_text()).tables if table[0][0] == "regret"]
    regrets = [float(line[0]) for line in table[1:]]
    assert len(regrets) == 20
    assert regrets == sorted(regrets, reverse=True)
    assert regrets[0] == pytest.approx(row["regret_max"], abs=1e-4)
    assert all(line[2] != line[3] for line in table[1:])


def test_hostile_names_are_text_in_a_report(run: Run, log: Path, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    text = log.read_text().replace("x,dtype", f"{hostile},dtype").replace('"x"', json.dumps(hostile))
    log.write_text(text.replace(",fast,", f",{hostile},"))
    artifact, out = tmp_path / "h.json", tmp_path / "r.html"
    assert run("train", log, "--protocol", "autoheuristic", "--name", hostile, "--out", artifact).code == 0
    assert run("report", artifact, log, "--eval", f"{hostile}={log}", "--out", out).code == 0
    assert "script" not in Page(out.read_text()).tags
    assert "&lt;script&gt;" in out.read_text()


@pytest.mark.parametrize(
    "provenance",
    [
        {},
        {"datasets": [1], "parameters": "x", "learner": ["a"], "protocol": 5},
        {"datasets": {"train": [1]}, "parameters": {"<b>": 1}, "date": {}},
        {"datasets": {"train": [{"sha256": [[1]]}]}},
    ],
)
def test_provenance_is_free_form(
    run: Run, artifact: Path, log: Path, tmp_path: Path, provenance: dict[str, Any]
) -> None:
    artifacts.write(attrs.evolve(artifacts.read(artifact), provenance=provenance), artifact)
    assert run("evaluate", artifact, log, "--json").json()["rows"]
    assert run("report", artifact, log, "--out", tmp_path / "r.html").code == 0


def test_a_report_needs_data_and_a_place(run: Run, artifact: Path, log: Path) -> None:
    assert "report: name at least one dataset" in run("report", artifact, "--out", "r.html").error()
    assert "cannot write: No such file" in run("report", artifact, log, "--out", "no/such/r.html").error()
