"""``autoheur train`` and ``autoheur evaluate``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import click

from autoheur import fingerprint
from autoheur.cli.data import PATH, strict_option
from autoheur.cli.figures import choice_tables, decision_table
from autoheur.cli.heuristics import find_artifact
from autoheur.cli.output import console, json_option, print_json, print_table, status_console, table
from autoheur.errors import InputError, PluginError
from autoheur.files import check_writable
from autoheur.heuristic import artifact as artifact_files
from autoheur.registry import default_registry
from autoheur.types import Value

if TYPE_CHECKING:
    from autoheur.dataset.dataset import Dataset
    from autoheur.fingerprint import Fingerprint
    from autoheur.operators import OperatorPlugin
    from autoheur.train.examples import Filter
    from autoheur.train.figures import Row
    from autoheur.train.sampled import Sampler
    from autoheur.train.search import Progress

AUTO = "auto"
"""The learner that stands for all there are."""

LEARNED_FROM = "the heuristic was learned from these measurements, so expect it to do worse on others"

eval_option = click.option(
    "--eval", "evals", multiple=True, metavar="NAME=DATA", help="Judge on this further dataset too; repeatable."
)
tolerance_option = click.option(
    "--tolerance", type=float, default=1.05, show_default=True, help="How much slower than the best is good enough."
)


@click.command()
@click.argument("arguments", nargs=-1, required=True, metavar="[OPERATOR] DATA...")
@click.option("--val", multiple=True, type=PATH, help="Validation data [default: a random part of DATA]; repeatable.")
@click.option("--test", multiple=True, type=PATH, help="Test data, only judged [default: a part of DATA]; repeatable.")
@eval_option
@click.option("--learner", "learners", multiple=True, help="How to learn [default: the protocol's]; repeat to compare.")
@click.option("--protocol", help="How to search and set the threshold: calibrated [default] or autoheuristic.")
@click.option("--grid", multiple=True, metavar="KEY=V,V...", help="Values to try for a parameter; repeatable.")
@click.option(
    "--max-wrong-rate",
    type=float,
    help="Bound on wrong decisions, of all problems asked [default: 0.001, or what fewer problems support].",
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Confidence of that bound.")
@tolerance_option
@click.option("--seed", type=int, default=42, show_default=True, help="Seed of random splits.")
@click.option("--device", help="The device that the heuristic is for [default: what the data says].")
@click.option("--name", help="The heuristic's name [default: operator and device].")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the artifact to this file.")
@strict_option
@json_option
def train(
    arguments: tuple[str, ...],
    val: tuple[Path, ...],
    test: tuple[Path, ...],
    evals: tuple[str, ...],
    learners: tuple[str, ...],
    protocol: str | None,
    grid: tuple[str, ...],
    max_wrong_rate: float | None,
    confidence: float,
    tolerance: float,
    seed: int,
    device: str | None,
    name: str | None,
    out: Path | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Learn a heuristic from measurements: Parquet datasets or AutoHeuristic logs.

    OPERATOR may be left out where DATA names it. An operator without a plugin is trained from the features that the
    data itself names.
    """
    from autoheur.dataset import choice_table
    from autoheur.train import protocols
    from autoheur.train.protocols.contract import Options
    from autoheur.train.training import TrainRequest
    from autoheur.train.training import train as run

    if out is not None:
        check_writable(out)
    registry = default_registry()
    operator, paths = split_operator(arguments, registry.operator_names())
    method = protocols.get(protocol or protocols.DEFAULT)
    names = list(registry.learners) if AUTO in learners else learners or (method.default_learner,)
    chosen = [registry.learner(learner) for learner in dict.fromkeys(names)]
    values = parse_grid(grid)
    data, val_data, test_data = (read_data(part, strict) for part in (paths, val, test))
    named = read_named(evals, strict)
    operator = operator or data[0].operator
    plugin = registry.operators.get(operator)
    features = plugin.features if plugin else (*data[0].features, *choice_table.features_of(data))
    where = fingerprint.parse(device) if device else data[0].device
    with grid_progress() as progress:
        result = run(
            TrainRequest(
                operator=operator,
                features=features,
                train=data,
                val=val_data,
                test=test_data,
                evals=named,
                learners=chosen,
                protocol=method.name,
                grid=values,
                one_each=AUTO in learners,
                options=Options(max_wrong_rate, confidence, tolerance, seed),
                precondition=plugin.precondition(where) if plugin else None,
                device=where,
                sampler=sampler(plugin, where),
                name=name,
                progress=progress,
            )
        )
    if out is not None:
        artifact_files.write(result.artifact, out)
    print_notes([*data, *val_data, *test_data, *named.values()], result.notes)
    if as_json:
        print_json({"artifact": str(out) if out else None, "rows": [row.to_dict() for row in result.rows]})
        return
    shown = [row for row in result.rows if row.chosen]
    print_rows(shown)
    candidates = len({(row.learner, tuple(row.params.items())) for row in result.rows})
    if candidates > 1:
        console().print(f"\nthe best of {candidates} candidates; the others are in the output of --json", markup=False)
    console().print(f"wrote {out}" if out else "nothing written: give --out FILE to keep the heuristic", markup=False)


def sampler(plugin: OperatorPlugin | None, device: Fingerprint) -> Sampler | None:
    """What makes up problems of the operator on the device; ``None`` where its plugin cannot."""
    if plugin is None:
        return None
    try:
        plugin.problems(Random(0), device)
    except PluginError:
        return None
    return lambda random: plugin.problems(random, device)


def split_operator(arguments: Sequence[str], operators: Sequence[str]) -> tuple[str | None, list[Path]]:
    """Tell whether the first argument names an operator or a file.

    Raises:
        InputError: no data is left, or the first argument is neither.
    """
    first = arguments[0]
    if Path(first).is_file() or not (first in operators or first.isidentifier()):
        return None, [Path(argument) for argument in arguments]
    if len(arguments) == 1:
        known = ", ".join(operators)
        raise InputError(f"{first}: name the data to train on after the operator (or no such file; operators: {known})")
    return first, [Path(argument) for argument in arguments[1:]]


def read_data(paths: Sequence[Path], strict: bool) -> list[Dataset]:
    """Read datasets and logs, with the features of choices that the operators' plugins tell from names."""
    from autoheur.dataset import choice_names, choice_table
    from autoheur.dataset.files import read

    def described(dataset: Dataset) -> Dataset:
        plugin = default_registry().operators.get(dataset.operator)
        if plugin is None or not plugin.raw_choice_features:
            return dataset
        declared = plugin.raw_choice_features

        def of_name(name: str) -> Mapping[str, Value]:
            told = plugin.choice_features(name)
            return choice_names.values(name, declared) if told is None else told

        return choice_table.with_features(dataset, declared, of_name)

    return [described(read(path, strict=strict)) for path in paths]


def print_notes(datasets: Sequence[Dataset], notes: Sequence[str] = ()) -> None:
    """Say on stderr what was read, and more. Only after all went well: an error is one line and nothing else."""
    for note in (*(f"{dataset.name}: {dataset.summary}" for dataset in datasets), *notes):
        status_console().print(note, markup=False, soft_wrap=True)


def read_named(evals: Sequence[str], strict: bool) -> dict[str, Dataset]:
    """Read ``NAME=DATA`` arguments.

    Raises:
        InputError: an argument without a name, or a name given twice.
    """
    named: dict[str, Dataset] = {}
    for text in evals:
        name, separator, path = text.partition("=")
        if not separator or not name or not path:
            raise InputError(f"--eval {text!r} is not NAME=DATA")
        if name in named:
            raise InputError(f"--eval {name!r} is given twice")
        [named[name]] = read_data([Path(path)], strict)
    return named


def parse_grid(grid: Sequence[str]) -> dict[str, list[Any]]:
    """Read ``key=v,v`` arguments; values are numbers, True, False, None or text.

    Raises:
        InputError: an argument without ``=``, or a key given twice.
    """
    values: dict[str, list[Any]] = {}
    for text in grid:
        key, separator, listed = text.partition("=")
        if not separator or not key:
            raise InputError(f"--grid {text!r} is not KEY=VALUE,VALUE…")
        if key in values:
            raise InputError(f"--grid {key!r} is given twice")
        values[key] = [_grid_value(value.strip()) for value in listed.split(",") if value.strip()]
    return values


def _grid_value(text: str) -> Any:
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


@contextmanager
def grid_progress() -> Iterator[Progress | None]:
    """A progress bar over candidates on stderr, where a person looks at it."""
    target = status_console()
    if not target.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=target, transient=True) as bar:
        task = bar.add_task("", total=None)

        def advance(done: int, total: int, label: str) -> None:
            bar.update(task, completed=done, total=total, description=label)

        yield advance


@click.command()
@click.argument("artifact")
@click.argument("data", nargs=-1, type=PATH)
@eval_option
@tolerance_option
@strict_option
@json_option
def evaluate(
    artifact: str, data: tuple[Path, ...], evals: tuple[str, ...], tolerance: float, strict: bool, as_json: bool
) -> None:
    """Judge ARTIFACT, a file or a known heuristic's name, on DATA (called by their files' names) and --eval sets.

    Measurements of DATA are filtered as they were in training; those of --eval sets are taken as they are.
    """
    from autoheur.train.apply import apply, learned_from

    loaded = find_artifact(artifact, default_registry())
    datasets = named_datasets("evaluate", data, evals, strict)
    rows = [apply(loaded, dataset, rule).judge(loaded, name, tolerance) for name, dataset, rule in datasets]
    notes = [f"{name}: {LEARNED_FROM}" for name, dataset, _ in datasets if learned_from(loaded, dataset)]
    print_notes([dataset for _, dataset, _ in datasets], notes)
    if as_json:
        print_json({"artifact": artifact, "rows": [row.to_dict() for row in rows]})
    else:
        print_rows(rows)


def named_datasets(
    command: str, data: Sequence[Path], evals: Sequence[str], strict: bool
) -> list[tuple[str, Dataset, Filter | None]]:
    """What ``command`` is to judge on, with names: DATA, filtered as in training, and --eval sets, taken as they are.

    Raises:
        InputError: there is none, or see :func:`read_named`.
    """
    from autoheur.train.examples import UNFILTERED

    if not data and not evals:
        raise InputError(f"{command}: name at least one dataset, as DATA or as --eval NAME=DATA")
    named: dict[str, Dataset] = {}
    for path, dataset in zip(data, read_data(data, strict), strict=True):
        name = path.name.split(".")[0]
        named[name if name not in named else str(path)] = dataset
    further = read_named(evals, strict)
    return [*((*item, None) for item in named.items()), *((*item, UNFILTERED) for item in further.items())]


def print_rows(rows: Sequence[Row]) -> None:
    """Print the result table, and under it shortlists and rankings where there are more than two choices."""
    decisions = decision_table(rows)
    result = table("learner", "dataset", *(f">{header}" for header in decisions.headers[1:]))
    for row, line in zip(rows, decisions.lines, strict=True):
        result.add_row(_label(row), *line)
    print_table(result)
    for each in choice_tables(rows):
        result = table(each.headers[0], *(f">{header}" for header in each.headers[1:]))
        for line in each.lines:
            result.add_row(*line)
        console().print()
        print_table(result)


def _label(row: Row) -> str:
    parameters = " ".join(f"{key}={value}" for key, value in row.params.items())
    return f"{row.learner} {parameters}".strip()
