"""The heuristics for A100 that pad_mm brings: what they claim, and that they keep it on val."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autoheur.dataset.files import read
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.artifact import read as read_artifact
from autoheur.train.apply import apply
from autoheur.train.bounds import upper_bound
from autoheur_pad_mm.plugin import autoheur_heuristics


@pytest.fixture
def shipped() -> dict[str, Artifact]:
    return {path.stem: read_artifact(path) for path in autoheur_heuristics() if "a100" in path.stem}


def test_they_were_calibrated_on_train_and_val_alone(shipped: dict[str, Artifact]) -> None:
    assert {"pad_mm_a100", "pad_mm_a100_tolerant"} <= set(shipped)
    for artifact in shipped.values():
        files = [data["files"] for part in artifact.provenance["datasets"].values() for data in part]
        assert files == [["pad_mm_a100_train.txt.gz"], ["pad_mm_a100_val.txt.gz"]]
        found = artifact.provenance["calibration"]
        confidence = artifact.provenance["options"]["confidence"]
        assert upper_bound(found["allowed_wrong"], found["problems"], confidence) <= found["max_wrong_rate"]
        assert artifact.policy.guard
        assert artifact.precondition.device.name
        assert "A100" in artifact.precondition.device.name


def test_out_of_fold_they_reach_the_goals(shipped: dict[str, Artifact]) -> None:
    """In 1,920 problems: strictly at least 1,250 right and 2 wrong; tolerantly 90 % decided and 2 slower than 1.1 x."""
    strict, tolerant = (
        [shipped[name].provenance["metrics"][part] for part in ("train", "val")]
        for name in ("pad_mm_a100", "pad_mm_a100_tolerant")
    )
    scale = 1920 / sum(part["total"] for part in strict)
    assert scale * sum(part["correct"] for part in strict) >= 1250
    assert scale * sum(part["wrong"] for part in strict) <= 2
    assert sum(part["unsure"] for part in tolerant) <= 0.1 * sum(part["total"] for part in tolerant)
    assert scale * sum(part["wrong_beyond_tolerance"] for part in tolerant) <= 2
    assert all(part["regret_gmean"] < 1.001 for part in tolerant)


def test_the_files_decide_on_val_as_a_model_does_that_was_fitted_to_it(
    shipped: dict[str, Artifact], shared_data: Callable[[str], Path]
) -> None:
    """Val took part in training: this finds damaged or stale files, and says nothing about unseen problems."""
    val = read(shared_data("pad_mm_a100_val.txt.gz"))
    artifact = shipped["pad_mm_a100"]
    strict = apply(artifact, val).judge(artifact, "val", 1)
    assert strict.total == 1920
    assert strict.correct >= 1250
    assert strict.wrong <= 2
    artifact = shipped["pad_mm_a100_tolerant"]
    tolerant = apply(artifact, val).judge(artifact, "val", 1.1)
    assert tolerant.coverage is not None
    assert tolerant.coverage >= 0.9
    assert tolerant.wrong_beyond_tolerance <= 2
