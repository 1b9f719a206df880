"""``autoheur report``: one HTML file without scripts, for people who did not train the heuristic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autoheur.cli.data import out_option, strict_option
from autoheur.cli.figures import choice_tables, decision_table
from autoheur.cli.heuristics import find_artifact
from autoheur.cli.output import console, json_option, print_json
from autoheur.cli.train import LEARNED_FROM, eval_option, named_datasets, print_notes, tolerance_option
from autoheur.files import check_writable, write_text
from autoheur.heuristic.artifact import Artifact
from autoheur.registry import default_registry
from autoheur.types import Value

if TYPE_CHECKING:
    from autoheur.train.figures import Row
    from autoheur.train.report import Mistake, Section, Step

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #8885; padding: 0.2rem 0.8rem 0.2rem 0; text-align: left; vertical-align: top; }
th:first-child, td:first-child { white-space: nowrap; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
svg { max-width: 100%; height: auto; } svg text { font-size: 12px; fill: currentColor; }
svg line, svg polyline { stroke: currentColor; fill: none; } .grid { opacity: 0.2; }
.strict { opacity: 0.45; stroke-dasharray: 4 3; } .chosen { stroke: #d33 !important; }
code, pre { font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
"""


@click.command()
@click.argument("artifact")
@click.argument("data", nargs=-1, type=click.Path(path_type=Path))
@eval_option
@tolerance_option
@out_option
@strict_option
@json_option
def report(
    artifact: str,
    data: tuple[Path, ...],
    evals: tuple[str, ...],
    tolerance: float,
    out: Path,
    strict: bool,
    as_json: bool,
) -> None:
    """Write an HTML report on ARTIFACT, a file or a known heuristic's name, judged on DATA and --eval sets.

    Figures, what other thresholds would decide, groups of problems, the worst decisions, and where the heuristic came
    from. DATA and --eval sets are taken as `autoheur evaluate` takes them.
    """
    from autoheur.train.report import report_on

    check_writable(out)
    found = find_artifact(artifact, default_registry())
    datasets = named_datasets("report", data, evals, strict)
    sections = [report_on(found, name, dataset, tolerance, rule) for name, dataset, rule in datasets]
    write_text(out, "".join(_page(found, sections, tolerance)))
    print_notes([dataset for _, dataset, _ in datasets])
    if as_json:
        rows = [section.row.to_dict() for section in sections]
        print_json({"artifact": artifact, "report": str(out), "rows": rows})
    else:
        console().print(f"wrote {out}", markup=False)


def _page(artifact: Artifact, sections: Sequence[Section], tolerance: float) -> Iterator[str]:
    title = f"{artifact.operator}: {artifact.name}"
    yield f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
    yield f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
    yield from _table((), _facts(artifact))
    yield "<h2>Decisions</h2>\n"
    yield from _figures("dataset", [section.row for section in sections])
    yield (
        f"<p>A decision is wrong when another choice has a smaller median; beyond tolerance when it costs more than "
        f"{tolerance:g} times the best and noise does not explain it. Regret is the time of the choice taken over that "
        "of the best, over the problems decided; of the others the choices that are left are benchmarked.</p>\n"
    )
    for section in sections:
        yield f"<h2>{escape(section.row.dataset)}</h2>\n"
        if section.learned_from:
            yield f"<p>Mind that {LEARNED_FROM}.</p>\n"
        yield from _trade_off(section, artifact.policy.threshold)
        for feature, rows in section.groups.items():
            yield f"<h3>By {escape(feature)}</h3>\n"
            yield from _figures(feature, rows, leave_out=("threshold", "max_wrong_speedup", "gmean_wrong_speedup"))
        yield f"<h3>Worst decisions</h3>\n{'' if section.mistakes else '<p>None is wrong.</p>'}"
        if section.mistakes:
            yield from _mistakes(section.mistakes)
    yield "<h2>Where it came from</h2>\n"
    yield f"<pre>{escape(json.dumps(artifact.provenance, indent=2, ensure_ascii=False))}</pre>\n</body>\n</html>\n"


def _facts(artifact: Artifact) -> Iterator[tuple[str, str]]:
    provenance, policy, model = artifact.provenance, artifact.policy, artifact.model
    yield "device", artifact.precondition.device.label()
    if artifact.precondition.formula is not None:
        yield "asked where", artifact.precondition.formula
    yield "choices", _first(artifact.choices)
    if artifact.raw_choice_features:
        yield "features of choices", ", ".join(feature.name for feature in artifact.raw_choice_features)
    yield "learner", str(provenance.get("learner", "unknown"))
    yield "model", f"{len(model.trees)} trees, {sum(map(len, (tree.feature for tree in model.trees))):,} nodes"
    guard = ", inside the ranges seen in training" if policy.guard else ""
    yield "keeps choices", f"up to a {model.statistic} of scores of {policy.threshold:.6g}{guard}"
    tested = [
        tree.feature[node] for tree in model.trees for node in range(len(tree.feature)) if tree.feature[node] >= 0
    ]
    names = [model.inputs[column].feature or f"choice {model.inputs[column].choice}" for column in tested]
    counts = sorted({name: names.count(name) for name in set(names)}.items(), key=lambda item: (-item[1], item[0]))
    yield "splits", ", ".join(f"{name} {count}" for name, count in counts)
    yield "date", str(provenance.get("date", "unknown"))


def _first(choices: Sequence[str], count: int = 12) -> str:
    more = f" and {len(choices) - count} more" if len(choices) > count else ""
    return ", ".join(choices[:count]) + more


def _figures(first: str, rows: Sequence[Row], leave_out: Sequence[str] = ()) -> Iterator[str]:
    for each in (decision_table(rows, first, leave_out), *choice_tables(rows, first)):
        yield from _table(each.headers, each.lines, numbers_from=1)


def _mistakes(mistakes: Sequence[Mistake]) -> Iterator[str]:
    lines = (
        [
            f"{mistake.regret:.4f}",
            f"{mistake.confidence:.6g}",
            mistake.chosen,
            mistake.best,
            ", ".join(f"{choice} {time_ms:.6g}" for choice, time_ms in mistake.times_ms.items()),
            ", ".join(f"{name}={_value(value)}" for name, value in mistake.problem.items()),
        ]
        for mistake in mistakes
    )
    yield from _table(("regret", "confidence", "chosen", "best", "medians in ms", "problem"), lines)


def _value(value: Value) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _table(headers: Sequence[str], lines: Iterable[Sequence[str]], numbers_from: int | None = None) -> Iterator[str]:
    """A table; columns from ``numbers_from`` on hold numbers. All text is escaped here."""

    def row(tag: str, cells: Sequence[str]) -> str:
        kinds = [numbers_from is not None and position >= numbers_from for position in range(len(cells))]
        text = (
            f"<{tag}{' class=n' if right else ''}>{escape(cell)}</{tag}>"
            for right, cell in zip(kinds, cells, strict=True)
        )
        return f"<tr>{''.join(text)}</tr>\n"

    yield "<table>\n"
    if headers:
        yield row("th", headers)
    for line in lines:
        yield row("td", line)
    yield "</table>\n"


WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM = 640, 280, 60, 20, 40


def _trade_off(section: Section, threshold: float) -> Iterator[str]:
    """How many benchmarks would be saved at how many losses, with thresholds other than the chosen one."""
    steps = section.steps
    if not steps:
        yield "<p>The heuristic applies to none of these problems.</p>\n"
        return
    highest = max(step.wrong for step in steps) or 1 / section.row.total

    def x(share: float) -> float:
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(share: float) -> float:
        return HEIGHT - BOTTOM - share / highest * (HEIGHT - BOTTOM - 10)

    def line(points: Iterable[tuple[float, float]], kind: str) -> str:
        return f'<polyline class="{kind}" points="{" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)}"/>\n'

    yield "<h3>Other thresholds</h3>\n"
    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" aria-label="trade-off">\n'
    for tick in range(6):
        share = tick / 5
        yield f'<line class="grid" x1="{x(share):.1f}" x2="{x(share):.1f}" y1="{y(0):.1f}" y2="{y(highest):.1f}"/>\n'
        yield f'<text x="{x(share):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{share:.0%}</text>\n'
        up = highest * share
        yield f'<line class="grid" x1="{x(0):.1f}" x2="{x(1):.1f}" y1="{y(up):.1f}" y2="{y(up):.1f}"/>\n'
        yield f'<text x="{LEFT - 6}" y="{y(up) + 4:.1f}" text-anchor="end">{up:.2%}</text>\n'
    yield f'<text x="{WIDTH // 2}" y="{HEIGHT - 6}" text-anchor="middle">benchmarks saved</text>\n'
    yield line(((step.saved, step.wrong) for step in steps), "strict")
    yield line(((step.saved, step.too_slow) for step in steps), "beyond")
    chosen = section.row.benchmarks_saved or 0.0
    yield f'<line class="chosen" x1="{x(chosen):.1f}" x2="{x(chosen):.1f}" y1="{y(0):.1f}" y2="{y(highest):.1f}"/>\n'
    yield (
        "</svg>\n<p>Share of all problems that lose: dashed, whose best choice is not left; solid, with nothing left "
        f"that is good enough. Red: the threshold in use, {threshold:.6g}.</p>\n"
    )
    headers = ("threshold", "benchmarks saved", "decided", "best not left", "beyond tolerance")
    yield from _table(headers, _few(steps), numbers_from=0)


def _few(steps: Sequence[Step]) -> Iterator[list[str]]:
    """The steps nearest to round shares saved."""
    for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0):
        if share > steps[-1].saved + 0.05:
            break
        step = min(steps, key=lambda step: abs(step.saved - share))
        shares = (f"{step.saved:.1%}", f"{step.coverage:.1%}", f"{step.wrong:.3%}", f"{step.too_slow:.3%}")
        yield [f"{step.threshold:.6g}", *shares]
