"""Reads AutoHeuristic text logs.

A log is what ``torch/_inductor/autoheuristic/autoheuristic.py`` writes: one line of JSON metadata, a CSV header, then
one row per measurement: the features, the choice and its time in milliseconds. Nothing in it is quoted.

Rows are read in blocks of whole lines. Each block is split with array operations into three columns: the text of all
features, the choice, the time. Only the distinct feature texts of a block are parsed further, which is what makes
millions of rows quick: problems recur.
"""

from __future__ import annotations

import os

import numpy as np
import polars as pl
from numpy.typing import NDArray

from autoheur import fingerprint
from autoheur.dataset import choice_table
from autoheur.dataset.autoheuristic_log.header import Layout, parse_layout, parse_metadata
from autoheur.dataset.autoheuristic_log.malformed import MalformedLines, reason
from autoheur.dataset.autoheuristic_log.stream import LineBlocks
from autoheur.dataset.dataset import Dataset
from autoheur.dataset.problem_table import ProblemTable, distinct_rows, distinct_values, with_integers
from autoheur.dataset.summary import summarise
from autoheur.errors import InputError

Mask = NDArray[np.bool_]
Positions = NDArray[np.intp]

_BOM = b"\xef\xbb\xbf"
_SEPARATOR = "\x1f"  # in no good line: control characters make a line malformed


def read_log(path: str | os.PathLike[str], strict: bool = False) -> Dataset:
    """Read a log, plain or packed with gzip or zip (told by content, not by name), in bounded memory.

    Blank lines are skipped and counted. A repetition of the first two lines further down (logs that were
    concatenated) is skipped. Malformed lines are skipped, counted and the first few described in the summary; with
    ``strict`` the first one is an error. A time of ``inf`` or ``nan`` means that the choice failed, and is kept as
    ``inf``.

    Raises:
        InputError: the file cannot be read; its metadata or header are wrong; a log with other metadata follows in
            the same file; there is no usable row; or, with ``strict``, a line is malformed.
    """
    return _Reader(os.fspath(path), strict).read()


class _Lines:
    """A block of text with the positions of its lines and commas."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.text: NDArray[np.uint8] = np.frombuffer(data, np.uint8)
        self.ends: Positions = np.flatnonzero(self.text == ord("\n"))
        self.starts: Positions = np.concatenate((np.zeros(1, np.intp), self.ends[:-1] + 1))
        self.commas: Positions = np.flatnonzero(self.text == ord(","))
        self.commas_before: Positions = np.searchsorted(self.commas, self.ends)
        self.comma_counts: Positions = np.diff(self.commas_before, prepend=0)

    def __len__(self) -> int:
        return len(self.ends)

    def line(self, number: int) -> bytes:
        return self.data[self.starts[number] : self.ends[number]]

    def holding(self, positions: Positions) -> Positions:
        """The lines that hold the bytes at these positions, each once."""
        return np.unique(np.searchsorted(self.ends, positions))


class _Reader:
    def __init__(self, source: str, strict: bool) -> None:
        self.source = source
        self.blocks = LineBlocks(source)
        self.malformed = MalformedLines(source, strict)
        self.blank = 0
        self.line = 1
        self.choices: dict[str, int] = {}
        self.chosen: list[NDArray[np.uint32]] = []
        self.times: list[NDArray[np.float64]] = []

    def read(self) -> Dataset:
        begun = False
        for data in self.blocks:
            if not begun:
                data = self._begin(data)
                begun = True
            if data:
                self._block(data)
        if not begun:
            what = self.blocks.damage or "the file is empty"
            raise InputError(f"{self.source}: {what}; a log begins with a line of JSON metadata")
        if self.blocks.damage is not None:
            self.malformed.add(self.line, self.blocks.damage)
        if not self.times:
            skipped = f" (first skipped: {self.malformed.shown[0]})" if self.malformed.shown else ""
            raise InputError(f"{self.source}: the log has no usable row{skipped}")
        return self._finish()

    def _begin(self, data: bytes) -> bytes:
        """Take the first two lines off and set up what depends on them."""
        metadata, _, rest = data.removeprefix(_BOM).partition(b"\n")
        header, _, rest = rest.partition(b"\n")
        self.head = (metadata.removesuffix(b"\r"), header.removesuffix(b"\r"))
        self.layout = parse_layout(self.source, *self.head)
        self.choices = {choice: number for number, choice in enumerate(self.layout.choices or ())}
        self.table = ProblemTable([feature.name for feature in self.layout.features])
        self.line = 3
        return rest

    def _block(self, data: bytes) -> None:
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        if not data.endswith(b"\n"):
            data += b"\n"
        lines = _Lines(data)
        blank, repeated, good = self._sort_out(lines)
        frame = _split(lines, good)
        problem, problems, fine = _parse(self.layout, frame)
        if not fine.all():
            good[np.flatnonzero(good)[~fine]] = False
            frame = frame.filter(pl.Series(fine))
            problem, problems, _ = _parse(self.layout, frame)
        self._report(lines, ~(blank | repeated | good))
        self.blank += int(blank.sum())
        self.line += len(lines)
        if len(frame):
            self.table.add(problems, problem)
            self.chosen.append(self._choice_numbers(frame.get_column("choice")))
            # A choice that failed may have been logged as nan.
            self.times.append(frame.get_column("time").fill_nan(np.inf).to_numpy())

    def _sort_out(self, lines: _Lines) -> tuple[Mask, Mask, Mask]:
        """Tell which lines are blank, which repeat the first two lines of the file, and which may be rows."""
        blank = np.zeros(len(lines), np.bool_)
        for number in np.flatnonzero(lines.comma_counts == 0).tolist():
            blank[number] = not lines.line(number).strip()
        repeated = self._repeated_head(lines)
        good = (lines.comma_counts == self.layout.fields - 1) & ~repeated
        control = np.flatnonzero((lines.text < ord(" ")) & (lines.text != ord("\n")) & (lines.text != ord("\t")))
        good[lines.holding(control)] = False
        if not lines.data.isascii():
            for number in lines.holding(np.flatnonzero(lines.text >= 128)).tolist():
                good[number] &= _is_utf8(lines.line(number))
        return blank, repeated, good

    def _repeated_head(self, lines: _Lines) -> Mask:
        repeated = np.zeros(len(lines), np.bool_)
        for head in self.head:
            position = lines.data.find(head)
            while position >= 0:
                number = int(np.searchsorted(lines.ends, position))
                repeated[number] |= lines.line(number) == head
                position = lines.data.find(head, int(lines.ends[number]))
        last = np.maximum(lines.ends - 1, 0)
        objects = (lines.text[lines.starts] == ord("{")) & (lines.text[last] == ord("}")) & ~repeated
        for number in np.flatnonzero(objects).tolist():
            metadata = parse_metadata(lines.line(number))
            if metadata == self.layout.metadata:
                repeated[number] = True
            elif metadata is not None:
                # Its rows might fit, yet be times of another device.
                raise InputError(
                    f"{self.source}:{self.line + number}: another log with different metadata begins here; "
                    "split the file and read the parts together"
                )
        return repeated

    def _report(self, lines: _Lines, malformed: Mask) -> None:
        numbers = np.flatnonzero(malformed)
        described = 0
        while described < len(numbers) and self.malformed.describing:
            number = int(numbers[described])
            self.malformed.add(self.line + number, reason(self.layout, lines.line(number)))
            described += 1
        self.malformed.count += len(numbers) - described

    def _choice_numbers(self, column: pl.Series) -> NDArray[np.uint32]:
        names, positions = distinct_rows(column.to_frame())
        numbers = [self.choices.setdefault(name, len(self.choices)) for name in names.to_series()]
        return np.asarray(numbers, np.uint32)[positions]

    def _finish(self) -> Dataset:
        problems, ids = self.table.finish()
        columns: dict[str, NDArray[np.uint32] | NDArray[np.float64]] = {"problem": np.concatenate(ids)}
        ids.clear()
        columns["choice"] = np.concatenate(self.chosen)
        self.chosen.clear()
        columns["time_ms"] = np.concatenate(self.times)
        self.times.clear()
        rows = pl.DataFrame(columns)
        malformed = self.malformed
        dataset = Dataset(
            operator=self.layout.operator,
            features=with_integers(self.layout.features, problems),
            choices=tuple(self.choices),
            device=fingerprint.from_log_metadata(self.layout.metadata),
            metadata=self.layout.metadata,
            problems=problems,
            rows=rows,
            sources=(self.source,),
            summary=summarise(
                rows, len(problems), len(self.choices), self.blank, malformed.count, tuple(malformed.shown)
            ),
            sha256=(self.blocks.sha256,),
        )
        return choice_table.from_names(dataset)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _split(lines: _Lines, good: Mask) -> pl.DataFrame:
    """The good lines as columns ``problem`` (the text of all features), ``choice`` and ``time`` (text as well)."""
    packed = lines.text.copy()
    last = lines.commas_before[good] - 1
    packed[lines.commas[last]] = ord(_SEPARATOR)
    packed[lines.commas[last - 1]] = ord(_SEPARATOR)
    if not good.all():
        packed = packed[np.repeat(good, lines.ends - lines.starts + 1)]
    if not len(packed):
        return pl.DataFrame(schema={"problem": pl.String, "choice": pl.String, "time": pl.Float64})
    frame = pl.read_csv(
        packed.tobytes(),
        has_header=False,
        separator=_SEPARATOR,
        quote_char=None,
        schema=dict.fromkeys(("problem", "choice", "time"), pl.String),
    )
    # An empty field was read as null; so is a time that is not a number.
    return frame.with_columns(pl.col("problem", "choice").fill_null(""), pl.col("time").cast(pl.Float64, strict=False))


def _parse(layout: Layout, frame: pl.DataFrame) -> tuple[NDArray[np.uint32], pl.DataFrame, Mask]:
    """Each row's problem (a position), the distinct problems as typed columns, and which rows are fine."""
    texts, positions = distinct_values(frame.get_column("problem"))
    valid = np.ones(len(texts), np.bool_)
    columns = []
    fields = texts.str.split_exact(",", len(layout.features) - 1).struct.unnest().get_columns()
    for feature, column in zip(layout.features, fields, strict=True):
        if feature.kind == "numerical":
            column = _numbers(column)
            valid &= column.is_finite().fill_null(False).to_numpy()
        columns.append(column)
    time = frame.get_column("time")
    choice = frame.get_column("choice")
    fine = (time > 0).fill_null(False) & (choice != "")  # nan counts as greater than any number
    if layout.choices is not None:
        fine &= choice.is_in(list(layout.choices))
    return positions, pl.DataFrame(columns), fine.to_numpy() & valid[positions]


def _numbers(texts: pl.Series) -> pl.Series:
    """Int64 where every text is a plain whole number that fits, else Float64 with null for what is no number."""
    if texts.str.contains(r"^-?[0-9]+$").all():
        whole = texts.cast(pl.Int64, strict=False)
        if not whole.null_count():
            return whole
    return texts.cast(pl.Float64, strict=False)
