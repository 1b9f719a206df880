"""``autoheur train`` with its default protocol, and comparing learners."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


def test_the_default_is_calibrated_and_says_what_it_shows(run: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "made_up.json"
    result = run("train", log, "--learner", "decision_tree", "--out", out)
    assert result.code == 0
    assert "train and val figures are out of fold" in result.err
    assert "192 problems cannot show with 95% confidence that at most 0.100% are decided wrongly" in result.err
    assert "The bound is 2.45% instead" in result.err
    artifact = json.loads(out.read_text())
    assert artifact["provenance"]["protocol"] == "calibrated"
    assert artifact["provenance"]["calibration"]["allowed_wrong"] == 1
    assert artifact["policy"]["guard"] is True


def test_a_rate_that_the_data_cannot_show_decides_nothing_and_names_one_that_it_can(run: Run, log: Path) -> None:
    result = run("train", log, "--learner", "decision_tree", "--max-wrong-rate", "0.001", "--json")
    assert all(row["coverage"] == 0 for row in result.json()["rows"])
    assert "that takes 2,995" in result.err
    assert "ask for --max-wrong-rate 0.025, which they support" in result.err
    again = run("train", log, "--learner", "decision_tree", "--max-wrong-rate", "0.025", "--json")
    assert all(row["coverage"] > 0.5 for row in again.json()["rows"])


def test_auto_compares_every_learner_once_and_says_why_it_picks_one(run: Run, log: Path) -> None:
    result = run("train", log, "--learner", "auto", "--json")
    rows = result.json()["rows"]
    compared = {row["learner"] for row in rows}
    assert {"regression_tree", "gradient_boosting", "extra_trees", "decision_tree", "distilled_tree"} <= compared
    assert len(rows) == 3 * len(compared)
    assert sum(row["chosen"] for row in rows) == 3
    assert f"chosen of {len(compared)}: " in result.err
    assert "the bound holds for each candidate taken alone" in result.err


def test_several_learners_share_one_table(run: Run, log: Path) -> None:
    rows = run("train", log, "--learner", "decision_tree", "--learner", "extra_trees", "--json").json()["rows"]
    assert [row["learner"] for row in rows] == ["decision_tree"] * 3 + ["extra_trees"] * 3
