"""The published tree, the heuristic that torch ships, and ours, on the same measurements for A100, as Markdown.

    python benchmarks/pad_mm_a100_table.py TRAIN VAL [TEST...]

TRAIN and VAL train the published tree, by the published method. All are judged on VAL and each TEST, with the published
filter (three measurements, 5 % spread); ours saw VAL in training, so its honest figures are those of TEST, and without
one the out-of-fold figures, which are printed too.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from autoheur.dataset.dataset import Dataset
from autoheur.dataset.files import read
from autoheur.heuristic.artifact import Artifact
from autoheur.heuristic.artifact import read as read_artifact
from autoheur.train.apply import apply
from autoheur.train.examples import PUBLISHED
from autoheur.train.figures import Row
from autoheur.train.training import TrainRequest, train
from autoheur_learners.regression_tree import RegressionTree
from autoheur_pad_mm import torch_heuristics
from autoheur_pad_mm.features import FEATURES
from autoheur_pad_mm.plugin import autoheur_heuristics

TOLERANCE = 1.1


def published(train_data: Dataset, val: Dataset) -> Artifact:
    request = TrainRequest(
        operator="pad_mm",
        features=FEATURES,
        train=[train_data],
        val=[val],
        learners=[RegressionTree()],
        protocol="autoheuristic",
    )
    return train(request).artifact


def torch_ships() -> Artifact | None:
    """PyTorch's own heuristic for A100, where torch is installed."""
    raw = [feature for feature in FEATURES if feature.protocol != "calibrated"]
    found = [path for path in torch_heuristics.files() if "A100" in path.name]
    return torch_heuristics.read(found[0], raw) if found else None


def line(name: str, row: Row | Mapping[str, float], dataset: str) -> str:
    figures = row if isinstance(row, Mapping) else row.to_dict()
    decided, worst, regret = (figures[key] for key in ("coverage", "regret_max", "regret_gmean"))
    cells = (
        name,
        dataset,
        *(f"{figures[key]:,.0f}" for key in ("correct", "wrong", "unsure")),
        f"{decided:.1%}",
        f"{figures['wrong_beyond_tolerance']:.0f}",
        "-" if worst is None else f"{worst:.2f}",
        "-" if regret is None else f"{regret:.5f}",
    )
    return f"| {' | '.join(cells)} |"


def out_of_fold(artifact: Artifact) -> dict[str, float] | None:
    """Train's and val's figures together, as the artifact's provenance has them."""
    metrics = artifact.provenance.get("metrics", {})
    if artifact.provenance.get("protocol") != "calibrated":
        return None
    parts = [metrics["train"], metrics["val"]]
    found = {
        key: sum(part[key] for part in parts)
        for key in ("correct", "wrong", "unsure", "total", "wrong_beyond_tolerance")
    }
    decided = [part["correct"] + part["wrong"] for part in parts]
    found["coverage"] = sum(decided) / found["total"]
    found["regret_max"] = max(part["regret_max"] for part in parts)
    pairs = zip(parts, decided, strict=True)
    found["regret_gmean"] = sum(part["regret_gmean"] * count for part, count in pairs) / sum(decided)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("val", type=Path)
    parser.add_argument("test", type=Path, nargs="*")
    arguments = parser.parse_args()
    train_data, val = read(arguments.train), read(arguments.val)
    judged = {"val": val} | {f"test ({path.name.split('.')[0]})": read(path) for path in arguments.test}
    heuristics = {"published tree": published(train_data, val)}
    shipped = torch_ships()
    if shipped is not None:
        heuristics["torch's shipped"] = shipped
    ours = {path.stem: read_artifact(path) for path in autoheur_heuristics() if "a100" in path.stem}
    heuristics |= ours
    print(
        "| heuristic | data | correct | wrong | unsure | decided | slower than 1.1 x | slowest | regret |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )
    for dataset, data in judged.items():
        for name, heuristic in heuristics.items():
            row = apply(heuristic, data, PUBLISHED).judge(heuristic, dataset, TOLERANCE)
            print(line(name, row, f"{dataset}, seen in training" if name in ours and dataset == "val" else dataset))
    for name, heuristic in ours.items():
        figures = out_of_fold(heuristic)
        if figures is not None:
            print(line(name, figures, "train and val, out of fold"))


if __name__ == "__main__":
    main()
