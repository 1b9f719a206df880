"""The heuristics that PyTorch itself brings for pad_mm, converted into artifacts: a plugin of its own.

PyTorch generates each as a Python class with nested comparisons (torch/_inductor/autoheuristic/artifacts). The source
is parsed, never executed, and torch is not imported. The artifact decides as the class does, value for value: leaf
probabilities are the rounded ones of the source, and inputs are compared in float64.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from autoheur.plugin import (
    KNOWN_DEVICES,
    Artifact,
    ArtifactError,
    Feature,
    Forest,
    Input,
    Policy,
    Precondition,
    Tree,
    hookimpl,
)
from autoheur_pad_mm.features import FEATURES, precondition

T = TypeVar("T", str, float)

logger = logging.getLogger(__name__)

_PREFIX = "_PadMM"
"""How the names of PyTorch's files begin. The rest of a file's name is the device it is for."""


@hookimpl
def autoheur_heuristics(operator: str) -> Sequence[Artifact]:
    return _converted() if operator == "pad_mm" else ()


@functools.cache
def _converted() -> tuple[Artifact, ...]:
    """All of PyTorch's files that can be read, once per process."""
    found = []
    for path in files():
        try:
            found.append(read(path))
        except ArtifactError as error:  # a later torch may write them otherwise; the others hold
            logger.warning("ignoring a heuristic of torch: %s", error)
    return tuple(found)


def files() -> list[Path]:
    """PyTorch's files for pad_mm, sorted; none where torch is not installed."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return []
    folder = Path(spec.submodule_search_locations[0], "_inductor", "autoheuristic", "artifacts")
    return sorted(path for path in folder.glob(f"{_PREFIX}*.py") if _device_key(path) in KNOWN_DEVICES)


def _device_key(path: Path) -> str:
    """``a100`` for ``_PadMMA100.py``."""
    return path.stem.removeprefix(_PREFIX).lower()


def read(path: Path, features: Sequence[Feature] = FEATURES) -> Artifact:
    """Convert one of PyTorch's files; ``features`` are those that a problem has, and that the tree reads.

    It applies to the one device model that its name says: PyTorch's own test (shared memory and capability) cannot tell
    an H100 from an H200.

    Raises:
        ArtifactError: the file cannot be read, or is not of the form that PyTorch generates.
    """
    try:
        methods = _methods(ast.parse(path.read_text(encoding="utf-8")))
        operator, choices = _constant(methods["get_name"], str), _choices(methods["fill_choices"])
        threshold = _constant(methods["get_confidence_threshold"], float)
        inputs: list[Input] = []
        tree = Tree([], [], [], [], [])
        _grow(tree, inputs, len(choices), methods["get_best_choices"].body)
    except OSError as error:
        raise ArtifactError(f"{path}: {error.strerror or error}") from None
    except (ValueError, KeyError, SyntaxError, RecursionError) as error:
        raise ArtifactError(f"{path}: not a heuristic in the form that torch generates ({error})") from None
    device = KNOWN_DEVICES[_device_key(path)]
    read_by_model = {column.feature for column in inputs}
    return Artifact(
        operator=operator,
        name=f"torch-{path.stem.removeprefix('_')}",
        features=[feature for feature in features if not feature.derived or feature.name in read_by_model],
        choices=choices,
        model=Forest(inputs, [0.0] * len(choices), [tree], layout="vector", precision="float64", statistic="score"),
        policy=Policy(threshold, guard=False),
        precondition=Precondition(device, precondition(device)),
        provenance={"learner": "decision_tree", "converted_from": path.name},
    )


def _methods(module: ast.Module) -> dict[str, ast.FunctionDef]:
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    if len(classes) != 1:
        raise ValueError(f"{len(classes)} classes instead of one")
    return {node.name: node for node in classes[0].body if isinstance(node, ast.FunctionDef)}


def _constant(function: ast.FunctionDef, kind: type[T]) -> T:
    match function.body:
        case [ast.Return(value=ast.Constant(value=value))] if isinstance(value, kind):
            return value
    raise ValueError(f"{function.name} does not return a {kind.__name__}")


def _choices(function: ast.FunctionDef) -> list[str]:
    """The choices, in the order of ``self.choices.append('orig')`` and so on."""
    found = []
    for statement in function.body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append"), args=[ast.Constant(value=str(choice))])):
                found.append(choice)
            case _:
                raise ValueError(f"line {statement.lineno} does not append a choice")
    return found


def _grow(tree: Tree, inputs: list[Input], width: int, body: list[ast.stmt]) -> int:
    """Append the subtree that ``body`` is (an ``if`` with ``else``, or a ``return``); returns its root's position."""
    node = len(tree.feature)
    for column, blank in ((tree.feature, -1), (tree.left, 0), (tree.right, 0)):
        column.append(blank)
    tree.threshold.append(0.0)
    tree.value.append([])
    match body:
        case [ast.Return(value=ast.List(elts=leaf))]:
            tree.value[node] = _leaf(leaf, width)
        case [ast.If(test=test, body=yes, orelse=no)]:
            tested, threshold = _test(test)
            if tested not in inputs:
                inputs.append(tested)
            tree.feature[node], tree.threshold[node] = inputs.index(tested), threshold
            tree.left[node] = _grow(tree, inputs, width, yes)
            tree.right[node] = _grow(tree, inputs, width, no)
        case _:
            raise ValueError(f"line {body[0].lineno if body else '?'} is neither a comparison nor a leaf")
    return node


def _leaf(pairs: list[ast.expr], width: int) -> list[float]:
    """``[(0.579, 1), (0.421, 0)]`` as one probability per choice; a choice that is not listed has none."""
    scores = [0.0] * width
    for pair in pairs:
        match pair:
            case ast.Tuple(elts=[ast.Constant(value=float(score)), ast.Constant(value=int(choice))]) if choice < width:
                scores[choice] = score
            case _:
                raise ValueError(f"line {pair.lineno} is not a leaf")
    return scores


def _test(test: ast.expr) -> tuple[Input, float]:
    """The model input and the threshold of a comparison; it holds where input <= threshold."""
    match test:
        case ast.Compare(
            left=ast.Call(func=ast.Attribute(attr="get_value"), args=[ast.Constant(value=str(feature))]),
            ops=[ast.LtE()],
            comparators=[ast.Constant(value=float(threshold))],
        ):
            return Input(feature), threshold
        case ast.Compare(
            left=ast.Call(
                func=ast.Name(id="str"),
                args=[ast.Call(func=ast.Attribute(attr="get_value"), args=[ast.Constant(value=str(feature))])],
            ),
            ops=[ast.NotEq()],
            comparators=[ast.Constant(value=str(category))],
        ):
            return Input(feature, category), 0.5  # the indicator is 0 where the value differs
    raise ValueError(f"line {test.lineno} is not a comparison that torch generates")
