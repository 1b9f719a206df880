"""What benchmarks/new_device.sh needs beside the command line.

python benchmarks/new_device.py describe --device cuda           the device and the software, line by line
python benchmarks/new_device.py shipped --operator pad_mm        names of the heuristics that PyTorch ships
python benchmarks/new_device.py times --operator pad_mm --device cuda --data held-out.parquet
python benchmarks/new_device.py summary --folder FOLDER --operators pad_mm bmm addmm
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from autoheur import default_registry
from autoheur.dataset import statistics as grouping
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.parquet import read_parquet
from autoheur.measure import devices
from autoheur.types import Problem

PROBLEMS = 20
"""Problems that decisions and benchmarks are timed on."""

MARGINS = (1.1, 2.0)
"""How much quicker than the next one a choice must be, to be counted apart."""

CALLS = 1000
"""Decisions in a row that are timed together: one takes microseconds."""


def describe(device: str) -> None:
    """Print what is measured on."""
    found = devices.device_fingerprint(device)
    print(f"label: {found.label()}")
    for name, value in {**found.to_dict(), **devices.environment(device, 0)}.items():
        if name != "threads":
            print(f"{name}: {value}")


def shipped(operator: str) -> None:
    """Print the heuristics that PyTorch ships for an operator."""
    for heuristic in default_registry().heuristics(operator):
        if heuristic.tier == "fallback":
            print(heuristic.name)


def benchmark_timer(device: str) -> Callable[[Callable[[], object]], float]:
    """What Inductor's padding pass times a choice with, in milliseconds; on a CPU, where it never pads, its kin."""
    if device == "cpu":
        from torch._inductor.runtime.benchmarking import benchmarker

        return lambda function: float(benchmarker.benchmark_cpu(function, warmup=5))
    from torch._inductor.fx_passes.pad_mm import get_do_bench

    return get_do_bench()


def times(operator_name: str, device: str, data: Path) -> None:
    """Time decisions, and autotuning of the same problems as Inductor does it, and print both as JSON."""
    registry = default_registry()
    operator = registry.operator(operator_name)
    where = devices.device_fingerprint(device)
    problems: list[Problem] = list(read_parquet(data).problems.head(PROBLEMS).iter_rows(named=True))
    bench = benchmark_timer(device)
    deciding, tuning, decided = [], [], 0
    with devices.selected(device), devices.pinned_settings():
        for problem in problems:
            deciding.append(_microseconds(functools.partial(registry.decide, operator_name, problem, where)))
            decided += not registry.decide(operator_name, problem, where).unsure
            start = time.perf_counter()
            try:
                for function in operator.benchmark(problem, device).values():
                    bench(function)
            except Exception:  # out of memory: Inductor would not get an answer either
                continue
            tuning.append((time.perf_counter() - start) * 1e3)
    print(
        json.dumps(
            {
                "problems": len(problems),
                "decided": decided,
                "decision_us": statistics.median(deciding),
                "autotuning_ms": statistics.median(tuning) if tuning else None,
            },
            indent=2,
        )
    )


def _microseconds(function: Callable[[], object]) -> float:
    function()
    start = time.perf_counter()
    for _ in range(CALLS):
        function()
    return (time.perf_counter() - start) / CALLS * 1e6


def summary(folder: Path, operators: list[str]) -> None:
    """Write what all steps found to ``summary.md`` and ``summary.json``, and print the former."""
    found = {operator: _found(folder, operator) for operator in operators}
    (folder / "summary.json").write_text(json.dumps(found, indent=2) + "\n")
    lines = [f"# {_label(folder)}", ""]
    for operator, facts in found.items():
        lines += [f"## {operator}", "", *_table(facts), ""]
    (folder / "summary.md").write_text("\n".join(lines))
    print("\n".join(lines))


def _label(folder: Path) -> str:
    return (folder / "device.txt").read_text().splitlines()[0].removeprefix("label: ")


def _found(folder: Path, operator: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for name in ("learn", "held-out"):
        if (path := folder / f"{operator}-{name}.parquet").exists():
            dataset = read_parquet(path)
            batches = dataset.environment["batches"]
            quiet = sum(batch["problems"] for batch in batches if batch["quiet"])
            facts[name] = {
                "problems": len(dataset.problems),
                "rows": len(dataset.rows),
                "quiet_problems": quiet,
                "wins": wins(dataset),
            }
    rows = {}
    if (path := folder / f"{operator}-train.json").exists():
        rows["autoheur"] = next(row for row in _rows(path) if row["chosen"] and row["dataset"] == "test")
    for path in sorted(folder.glob(f"{operator}-torch-*.json")):
        rows[path.stem.removeprefix(f"{operator}-")] = _rows(path)[0]
    facts["heuristics"] = rows
    if (path := folder / f"{operator}-times.json").exists():
        facts["times"] = json.loads(path.read_text())
    return facts


def wins(dataset: Dataset) -> dict[str, list[float]]:
    """Choice -> on which share of the problems it was quickest, and by more than each of :data:`MARGINS`."""
    medians = grouping.statistics(dataset).median_ms
    times = np.sort(np.where(np.isfinite(medians), medians, np.inf), axis=1)
    best = np.where(np.isfinite(medians), medians, np.inf).argmin(axis=1)
    works = np.isfinite(times[:, 0])
    with np.errstate(invalid="ignore"):
        margin = np.where(works, times[:, 1] / times[:, 0], 0.0)
    return {
        choice: [float(((best == position) & works & (margin > least)).mean()) for least in (1.0, *MARGINS)]
        for position, choice in enumerate(dataset.choices)
    }


def _rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
    return rows


def _table(facts: Mapping[str, Any]) -> list[str]:
    lines = [
        f"- {name}: {facts[name]['problems']} problems ({facts[name]['quiet_problems']} of them measured in quiet)"
        for name in ("learn", "held-out")
        if name in facts
    ]
    if "learn" in facts:
        margins = ", ".join(f"by more than {margin:g} x" for margin in MARGINS)
        for choice, shares in facts["learn"]["wins"].items():
            quickest = ", ".join(f"{share:.1%}" for share in shares)
            lines.append(f"- {choice} is quickest on {quickest} (at all, {margins})")
    if "times" in facts:
        spent = facts["times"]
        tuning = "-" if spent["autotuning_ms"] is None else f"{spent['autotuning_ms']:.1f} ms"
        lines.append(f"- a decision takes {spent['decision_us']:.1f} µs, autotuning {tuning} (medians)")
    columns = (
        "correct",
        "wrong",
        "unsure",
        "total",
        "wrong_beyond_tolerance",
        "coverage",
        "regret_gmean",
        "regret_max",
    )
    lines += ["", "| on the held-out problems | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for name, row in facts["heuristics"].items():
        cells = (row[column] for column in columns)
        shown = (f"{cell:.4f}" if isinstance(cell, float) else "-" if cell is None else str(cell) for cell in cells)
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("describe", "shipped", "times", "summary"):
        command = commands.add_parser(name)
        if name in ("describe", "times"):
            command.add_argument("--device", required=True)
        if name in ("shipped", "times"):
            command.add_argument("--operator", required=True)
        if name == "times":
            command.add_argument("--data", type=Path, required=True)
        if name == "summary":
            command.add_argument("--folder", type=Path, required=True)
            command.add_argument("--operators", nargs="+", required=True)
    arguments = parser.parse_args()
    if arguments.command == "describe":
        describe(arguments.device)
    elif arguments.command == "shipped":
        shipped(arguments.operator)
    elif arguments.command == "times":
        times(arguments.operator, arguments.device, arguments.data)
    else:
        summary(arguments.folder, arguments.operators)


if __name__ == "__main__":
    main()
