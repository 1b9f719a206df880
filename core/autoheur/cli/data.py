"""``autoheur import``, ``export``, ``merge`` and ``collect``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from autoheur.cli.output import console, json_option, print_json, status_console
from autoheur.registry import default_registry

if TYPE_CHECKING:
    from autoheur.dataset.dataset import Dataset
    from autoheur.measure.collector import Progress
    from autoheur.measure.engines import Engine

strict_option = click.option("--strict", is_flag=True, help="Stop at the first malformed line instead of skipping it.")
out_option = click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write."
)
PATH = click.Path(path_type=Path)


def describe(dataset: Dataset) -> dict[str, Any]:
    """What a dataset holds, for ``--json``."""
    return {
        "operator": dataset.operator,
        "device": dataset.device.to_dict(),
        "problems": len(dataset.problems),
        "measurements": len(dataset.rows),
        "choices": list(dataset.choices),
        "features": [feature.name for feature in dataset.features],
    }


@click.command("import")
@click.argument("logs", nargs=-1, required=True, type=PATH)
@out_option
@strict_option
@json_option
def import_command(logs: tuple[Path, ...], out: Path, strict: bool, as_json: bool) -> None:
    """Read AutoHeuristic LOGS (.txt, .gz or .zip) or datasets of one operator and device into one Parquet dataset."""
    from autoheur.dataset.combine import combine
    from autoheur.dataset.files import read
    from autoheur.dataset.parquet import write_parquet

    datasets = [read(log, strict=strict) for log in logs]
    combined = combine(datasets)
    write_parquet(combined, out)
    for log, dataset in zip(logs, datasets, strict=True):
        status_console().print(f"{log}: {dataset.summary}", markup=False, soft_wrap=True)
    if as_json:
        print_json({"out": str(out), **describe(combined)})
    else:
        console().print(f"wrote {out}: {combined.summary}", markup=False)


@click.command()
@click.argument("files", nargs=-1, required=True, type=PATH)
@out_option
@click.option("--allow-mixed-devices", is_flag=True, help="Merge measurements of different devices all the same.")
@strict_option
@json_option
def merge(files: tuple[Path, ...], out: Path, allow_mixed_devices: bool, strict: bool, as_json: bool) -> None:
    """Merge FILES, datasets or AutoHeuristic logs of one operator and device, into one dataset.

    What two files hold of the same measurements is kept once; where everything came from is kept with it.
    """
    from autoheur.dataset.files import read
    from autoheur.dataset.merging import merge as merge_datasets
    from autoheur.dataset.parquet import write_parquet

    datasets = [read(path, strict=strict) for path in files]
    merged = merge_datasets(datasets, allow_mixed_devices, [str(path) for path in files])
    write_parquet(merged.dataset, out)
    for path, dataset in zip(files, datasets, strict=True):
        status_console().print(f"{path}: {dataset.summary}", markup=False, soft_wrap=True)
    if as_json:
        parts = [{"problems": part["problems"], "measurements": part["measurements"]} for part in merged.parts]
        print_json(
            {"out": str(out), "parts": parts, "duplicate_measurements": merged.duplicates, **describe(merged.dataset)}
        )
        return
    console().print(
        f"wrote {out}: {merged.dataset.summary}; from {len(merged.parts)} part(s), "
        f"{merged.duplicates:,} measurements were there twice",
        markup=False,
    )


@click.command()
@click.argument("dataset", type=PATH)
@out_option
def export(dataset: Path, out: Path) -> None:
    """Write DATASET back as an AutoHeuristic text log (gzipped if the name ends in .gz)."""
    from autoheur.dataset.autoheuristic_log.writer import write_log
    from autoheur.dataset.files import read

    write_log(read(dataset), out)
    console().print(f"wrote {out}", markup=False)


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)?")


def duration(text: str) -> float:
    """Seconds of a time span such as ``60s``, ``5m`` or ``1.5h``; a bare number is seconds."""
    match = _DURATION.fullmatch(text)
    if not match:
        raise click.BadParameter(f"{text!r} is not a time span such as 60s, 5m or 1h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2] or "s"]


@click.command()
@click.argument("operator")
@out_option
@click.option("--device", default="cpu", show_default=True, help="The device to measure on: cpu, cuda, cuda:1, xpu…")
@click.option("--problems", type=click.IntRange(min=1), help="Stop when the dataset holds this many problems.")
@click.option("--time-budget", type=duration, help="Stop after this time, such as 60s or 10m.")
@click.option("--from", "shapes", type=PATH, help="Measure the problems of this CSV or Parquet file.")
@click.option("--seed", type=int, help="Seed of the sampled problems [default: 0, or what --resume continues].")
@click.option(
    "--resume", is_flag=True, help="Continue an interrupted or finished collection; nothing is measured twice."
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Measure with so many processes: one per GPU, or on a CPU one per set of cores [default: 1; ray: all GPUs].",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Measure on this machine, or on a Ray cluster (RAY_ADDRESS, else one started here).",
)
@json_option
def collect(
    operator: str,
    out: Path,
    device: str,
    problems: int | None,
    time_budget: float | None,
    shapes: Path | None,
    seed: int | None,
    resume: bool,
    workers: int | None,
    engine: str,
    as_json: bool,
) -> None:
    """Measure problems of OPERATOR into a dataset.

    Ctrl-C, or even a kill, loses at most the few problems in flight; --resume continues.
    """
    from autoheur.measure import collection
    from autoheur.measure.shapes import read_shapes

    plugin = default_registry().operator(operator)
    source = read_shapes(shapes, plugin) if shapes else None
    with collect_progress() as progress:
        result = collection.collect(
            plugin,
            out,
            device,
            problems=problems,
            time_budget_s=time_budget,
            seed=seed,
            source=source,
            resume=resume,
            engine=_engine(engine, workers),
            progress=progress,
        )
    if as_json:
        print_json({**attrs.asdict(result), "path": str(result.path), "wins": dict(result.wins)})
        return
    state = "interrupted (--resume continues)" if result.interrupted else "done"
    wins = ", ".join(f"{choice} {count}" for choice, count in sorted(result.wins.items()))
    out_console = console()
    out_console.print(
        f"{state}: measured {result.measured} problems in {result.seconds:.0f} s ({wins or 'nothing won'}), "
        f"{result.failed} choices failed; {result.path} holds {result.problems} problems",
        markup=False,
    )
    if result.lost:
        out_console.print(f"{result.lost} workers were lost; what they measured was measured again", markup=False)
    if result.noisy_batches:
        out_console.print(
            f"{result.noisy_batches} of {result.batches} batches were measured while the machine was noisy or "
            "throttled; they are marked in the dataset",
            markup=False,
        )


def _engine(name: str, workers: int | None) -> Engine | None:
    """Where to measure; ``None`` is this process."""
    if name == "ray":
        from autoheur.measure.cluster import RayCluster

        return RayCluster(workers)
    if workers is None or workers == 1:
        return None
    from autoheur.measure.pool import Pool

    return Pool(workers)


@contextmanager
def collect_progress() -> Iterator[Callable[[Progress], None] | None]:
    """A progress bar on stderr with rate, remaining time and who wins, where a person looks at it."""
    target = status_console()
    if not target.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("measuring"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=target
    ) as bar:
        task = bar.add_task("", total=1.0)

        def advance(progress: Progress) -> None:
            bar.update(task, completed=_share_done(progress), description=_describe_progress(progress))

        yield advance


def _share_done(progress: Progress) -> float:
    """How far along, by problems or by time, whichever ends the collection first."""
    shares = [0.0]
    if progress.goal:
        shares.append(progress.problems / progress.goal)
    if progress.budget_s:
        shares.append(progress.seconds / progress.budget_s)
    return min(1.0, max(shares))


def _describe_progress(progress: Progress) -> str:
    rate = progress.measured / progress.seconds if progress.seconds else 0.0
    done = _share_done(progress)
    remaining = f", {progress.seconds * (1 - done) / done:.0f} s to go" if done else ""
    total = sum(progress.wins.values()) or 1
    wins = ", ".join(f"{choice} {count / total:.0%}" for choice, count in sorted(progress.wins.items()))
    failed = f", {progress.failed} failed" if progress.failed else ""
    return f"{progress.problems} problems, {rate:.1f}/s{remaining}; wins: {wins}{failed}"
