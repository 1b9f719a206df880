"""The command line on an operator without a plugin whose choices have numbers in their names, as kernels do."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

BLOCKS = (16, 32, 64, 128)
DEVICE = ("--device", "capability=8.0,kind=cuda,shared_memory=1024")


def name_of(block: int) -> str:
    return f"type=sort_BLOCK-M={block}_warps={block // 16}"


def time_of(m: int, block: int) -> float:
    """The best block is the power of two next to the root of m; each step away costs a third."""
    return math.pow(1.35, abs(math.log2(block) - math.log2(m) / 2))


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    source = random.Random(3)
    metadata = {
        "shared_memory": 1024,
        "device_capa": [8, 0],
        "name": "sort_kernels",
        "numerical_features": ["m"],
        "categorical_features": [],
    }
    lines = [json.dumps(metadata), "m,choice,feedback"]
    for number in range(200):
        m = int(2 ** source.uniform(6, 16)) + number % 3
        for choice, time in [(name_of(block), time_of(m, block)) for block in BLOCKS] + [("extern", 3.0)]:
            lines += [f"{m},{choice},{time * source.uniform(0.995, 1.005)!r}" for _ in range(3)]
    path = tmp_path / "kernels.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def heuristic(run: Run, kernels: Path, tmp_path: Path) -> Path:
    path = tmp_path / "kernels.json"
    trained = run(
        *("train", kernels, "--learner", "extra_trees", "--grid", "n_estimators=5", "--max-wrong-rate", "0.05"),
        *("--name", "kernels", "--out", path),
    )
    assert trained.code == 0, trained.err
    return path


def test_numbers_in_names_are_features_that_the_model_sees(run: Run, heuristic: Path) -> None:
    data = json.loads(heuristic.read_text())
    belong = [(feature["name"], feature["kind"]) for feature in data["features"] if feature["of"] == "choice"]
    assert belong == [("kind", "categorical"), ("BLOCK_M", "numerical"), ("warps", "numerical")]
    features = dict(zip(data["choices"], zip(*data["choice_features"].values(), strict=True), strict=True))
    assert list(data["choice_features"]) == ["kind", "BLOCK_M", "warps"]
    assert features == {name_of(block): ("type=sort", block, block // 16) for block in BLOCKS} | {
        "extern": ("extern", 0, 0)
    }
    assert data["model"]["layout"] == "row"
    assert "BLOCK_M" in {data["model"]["inputs"][node]["feature"] for node in data["model"]["trees"][0]["feature"]}


def test_shortlists_and_rankings_stand_under_the_result_table(run: Run, heuristic: Path, kernels: Path) -> None:
    [row] = run("evaluate", heuristic, kernels, "--json").json()["rows"]
    assert 1 <= row["shortlist_mean"] < 3
    assert 0.3 < row["benchmarks_saved"] <= 1
    assert 1 <= row["regret_shortlist"]["gmean"] <= row["regret_shortlist"]["max"] < 1.35
    assert row["recall_at"]["3"] == 1
    shown = run("evaluate", heuristic, kernels).out.splitlines()
    blank = [number for number, line in enumerate(shown) if not line]
    assert shown[blank[0] + 1].split() == [
        *("dataset", "shortlist_mean", "benchmarks_saved", "regret_shortlist_gmean", "regret_shortlist_max")
    ]
    figures = [row["shortlist_mean"], row["benchmarks_saved"], *row["regret_shortlist"].values()]
    assert shown[blank[0] + 2].split() == ["kernels", *(f"{figure:.6f}" for figure in figures)]
    assert shown[blank[1] + 1].split() == ["dataset", "top", "recall", "regret_gmean", "regret_max"]
    assert [line.split()[1] for line in shown[blank[1] + 2 :]] == ["1", "3", "5", "10"]


def test_what_is_offered_is_what_is_decided_about(run: Run, heuristic: Path) -> None:
    assert run("install", heuristic).code == 0
    decided = run("decide", "sort_kernels", "m=4096", *DEVICE, "--json").json()
    assert decided["decision"] in (name_of(64), "shortlist")
    assert decided["shortlist"][0] == name_of(64)
    offered = [name_of(16), name_of(128), "unheard of"]
    others = [argument for choice in offered for argument in ("--choice", choice)]
    of_few = run("decide", "sort_kernels", "m=4096", *DEVICE, *others, "--json").json()
    assert set(of_few["shortlist"]) <= set(offered)
    assert "unheard of" in of_few["shortlist"], "of which nobody knows anything"
    assert (
        ", ".join(of_few["shortlist"]) in run("decide", "sort_kernels", "m=4096", *DEVICE, *others).out
        or (of_few["unsure"])
    )
    only = run("decide", "sort_kernels", "m=4096", *DEVICE, "--choice", "extern", "--json").json()
    assert (only["decision"], only["reason"]) == ("extern", "only_choice")
    twice = run("decide", "sort_kernels", "m=4096", *DEVICE, "--choice", "a", "--choice", "a")
    assert "a choice is offered twice" in twice.error()


def test_an_explanation_shows_every_choice_with_its_features(run: Run, heuristic: Path) -> None:
    told = run("explain", heuristic, "m=4096", "--json").json()
    choices: dict[str, dict[str, Any]] = {choice["name"]: choice for choice in told["choices"]}
    assert set(choices) == {*map(name_of, BLOCKS), "extern"}
    scores = [choice["score"] for choice in told["choices"]]
    assert scores == sorted(scores, reverse=True)
    assert {name for name, choice in choices.items() if choice["kept"]} == set(told["shortlist"])
    seen = {feature["name"]: feature for feature in choices[name_of(32)]["features"]}
    assert (seen["BLOCK_M"]["value"], seen["kind"]["value"], seen["warps"]["value"]) == (32, "type=sort", 2)
    assert seen["BLOCK_M"]["seen"] == {"low": 0, "high": 128}
    model = json.loads(heuristic.read_text())["model"]
    for name, choice in choices.items():
        outputs = [path["outputs"] for path in told["paths"] if path["choice"] == name]
        assert model["base"][0] + sum(output for [output] in outputs) == pytest.approx(choice["score"])
        values = {"m": 4096} | {feature["name"]: feature["value"] for feature in choice["features"]}
        for condition in (c for path in told["paths"] if path["choice"] == name for c in path["conditions"]):
            value, limit = values[condition["feature"]], condition["limit"]
            assert condition["holds"] == (value == limit if isinstance(limit, str) else value <= limit)
    assert sum(told["votes"].values()) <= 5
    lines = run("explain", heuristic, "m=4096").out.splitlines()
    header = lines[2].split("  ")
    assert [cell.strip() for cell in header if cell.strip()][-3:] == ["kind", "BLOCK_M", "warps"]
    assert lines[3].startswith(name_of(64))


def test_a_choice_that_training_never_saw_is_scored_by_its_features(run: Run, heuristic: Path) -> None:
    new = "type=sort_BLOCK-M=48_warps=3"
    others = [argument for choice in (new, "extern", "unheard of") for argument in ("--choice", choice)]
    told = {c["name"]: c for c in run("explain", heuristic, "m=2300", *others, "--json").json()["choices"]}
    assert told[new]["score"] > told["extern"]["score"]
    assert (told["unheard of"]["score"], told["unheard of"]["kept"]) == (None, True)
    assert re_line(run("explain", heuristic, "m=2300", *others).out, "unheard of") == [
        "none",
        "0",
        "left",
        "?",
        "?",
        "?",
    ]


def re_line(text: str, start: str) -> list[str]:
    [line] = [line for line in text.splitlines() if line.startswith(start)]
    return line.removeprefix(start).split()


def test_a_report_on_many_choices_tells_what_is_saved(run: Run, heuristic: Path, kernels: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    assert run("report", heuristic, kernels, "--out", out).code == 0
    text = out.read_text()
    assert "<td>features of choices</td><td>kind, BLOCK_M, warps</td>" in text
    for header in ("shortlist_mean", "benchmarks saved", "best not left", "recall"):
        assert header in text
