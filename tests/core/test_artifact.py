from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from autoheur.errors import ArtifactError, InputError
from autoheur.fingerprint import Fingerprint
from autoheur.heuristic import artifact as artifacts
from autoheur.heuristic.artifact import Artifact, Precondition, Seen
from autoheur.heuristic.installed import Store
from autoheur.heuristic.model import Forest, Input, Policy, Tree
from autoheur.types import Feature


def example() -> Artifact:
    """A tree that pads where m*k is large and m is odd."""
    tree = Tree(
        feature=[0, -1, 1, -1, -1],
        threshold=[1e6, 0.0, 0.5, 0.0, 0.0],
        left=[1, 0, 3, 0, 0],
        right=[2, 0, 4, 0, 0],
        value=[[], [1.0, 0.1 + 0.2], [], [0.5, 1e-300], [0.25, 2.0]],
    )
    return Artifact(
        operator="example",
        name="example_heuristic",
        features=[
            Feature("m", integer=True),
            Feature("k", integer=True),
            Feature("dtype", "categorical"),
            Feature("m*k", formula="m * k"),
            Feature("odd", "categorical", formula="m % 2 == 1"),
        ],
        choices=["orig", "pad"],
        model=Forest([Input("m*k"), Input("odd", "True")], [0.0, 0.0], [tree], layout="vector", precision="float64"),
        policy=Policy(1.5),
        precondition=Precondition(Fingerprint("cuda", capability="8.0"), "m >= 16"),
        seen={"m": Seen(1.0, 4096.0), "dtype": Seen(categories=["torch.float16", 'x"); import os #'])},
        provenance={"learner": "by hand"},
    )


def test_json_round_trips_exactly_and_the_same_artifact_gives_the_same_bytes() -> None:
    artifact = example()
    text = artifacts.to_json(artifact)
    assert artifacts.from_json(text) == artifact
    assert artifacts.to_json(artifacts.from_json(text)) == text


def _set(data: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    target: Any = data
    for part in parents:
        target = target[int(part)] if isinstance(target, list) else target[part]
    if isinstance(target, list):
        target[int(last)] = value
    else:
        target[last] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("version", 3, "version 3"),
        ("format", "other", "not an autoheur artifact"),
        ("choices", ["orig"], "fewer than two choices"),
        ("choices", ["orig", "orig"], "listed twice"),
        ("operator", 3, "operator"),
        ("policy.threshold", "1.5", "threshold"),
        ("policy.threshold", None, "threshold"),
        ("policy.statistic", "guess", "statistic"),
        ("policy.extra", 1, "extra"),
        ("features.3.formula", "__import__('os')", "not in the formula language"),
        ("features.3.formula", "unknown * k", "'unknown'"),
        ("features.3.formula", "m == k", "yields truth, which it must not"),
        ("features.4.name", "m", "same name"),
        ("precondition.formula", "m * k", "yields integer, which it must not"),
        ("precondition.device.kind", 4, "kind"),
        ("model.inputs.0.feature", "nobody", "unknown feature"),
        ("model.inputs.0.category", "x", "is numerical"),
        ("model.inputs.1.category", None, "is categorical"),
        ("model.base", [0.0], "base"),
        ("model.trees.0.left", [1], "different length"),
        ("model.trees.0.left.0", 0, "out of order"),
        ("model.trees.0.right.2", 9, "out of order"),
        ("model.trees.0.feature.0", 7, "no model input"),
        ("model.trees.0.value.1", [1.0], "values, not 2"),
        ("model.trees.0.threshold.0", True, "finite number"),
        ("model.layout", "row", "base"),
        ("seen.k", {"categories": ["a"]}, "needs a range"),
        ("seen.odd", {"low": 0.0, "high": 1.0}, "not a raw feature"),
    ],
)
def test_a_contradiction_is_one_error_that_names_the_field(path: str, value: Any, message: str) -> None:
    data = json.loads(artifacts.to_json(example()))
    _set(data, path, value)
    with pytest.raises(ArtifactError) as error:
        artifacts.from_json(json.dumps(data), source="h.json")
    assert str(error.value).startswith("h.json: ")
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "autoheur.artifact"}', "\x00", "[" * 100_000])
def test_what_is_no_artifact_is_refused(text: str) -> None:
    with pytest.raises(ArtifactError):
        artifacts.from_json(text)


def test_not_a_number_cannot_get_in_or_out() -> None:
    text = artifacts.to_json(example()).replace("1.5", "NaN")
    with pytest.raises(ArtifactError):
        artifacts.from_json(text)
    with pytest.raises(ValueError, match="JSON"):
        artifacts.to_json(attrs.evolve(example(), policy=Policy(float("nan"))))


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "h.json"
    artifacts.write(example(), target)
    before = target.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(InputError, match="No space left"):
        artifacts.write(example(), target)
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["h.json"]


def test_a_missing_file_or_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"none\.json: No such file"):
        artifacts.read(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot write"):
        artifacts.write(example(), tmp_path / "nowhere" / "h.json")


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[Artifact], Store]:
    def put(artifact: Artifact) -> Store:
        source = tmp_path / "source.json"
        artifacts.write(artifact, source)
        store = Store(tmp_path / "store")
        store.install(source)
        return store

    return put


def test_installing_copies_under_the_artifacts_name_and_uninstalling_removes(
    stored: Callable[[Artifact], Store],
) -> None:
    store = stored(example())
    assert [path.name for path in store.files()] == ["example_heuristic.json"]
    with pytest.raises(InputError, match="installed: example_heuristic"):
        store.uninstall("other")
    with pytest.raises(InputError):
        store.uninstall("../source")
    store.uninstall("example_heuristic")
    assert list(store.files()) == []


def test_a_name_that_would_leave_the_folder_is_refused(stored: Callable[[Artifact], Store]) -> None:
    with pytest.raises(ArtifactError, match="cannot be a file name"):
        stored(attrs.evolve(example(), name="../../etc/x"))
