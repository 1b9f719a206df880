"""Packed logs: told by content, damaged ones kept as far as they go."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from autoheur.dataset.autoheuristic_log.reader import read_log
from autoheur.errors import InputError

WriteFile = Callable[..., Path]
LogBytes = Callable[..., bytes]


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def many_rows(number: int) -> list[str]:
    return [f"{m},torch.float16,16,orig,{1 / (m + 1)}" for m in range(number)]


@pytest.mark.parametrize("name", ["toy.txt", "toy.gz", "toy.zip", "toy"])
@pytest.mark.parametrize("packing", ["plain", "gzip", "zip"])
def test_packing_is_told_by_content_not_by_name(
    write_file: WriteFile, log_bytes: LogBytes, name: str, packing: str
) -> None:
    data = log_bytes()
    packed = {"plain": data, "gzip": gzip.compress(data), "zip": zipped(log=data)}[packing]
    dataset = read_log(write_file(packed, name))
    assert len(dataset.rows) == 3
    assert dataset.sha256 == (hashlib.sha256(data).hexdigest(),)


@pytest.mark.usefixtures("small_blocks")
def test_gzip_members_and_padding_are_read_through(write_file: WriteFile, log_bytes: LogBytes) -> None:
    data = log_bytes(many_rows(50))
    packed = gzip.compress(data[:700]) + gzip.compress(data[700:]) + b"\0" * 500
    dataset = read_log(write_file(packed), strict=True)
    assert len(dataset.rows) == 50


@pytest.mark.parametrize("blocks", ["one", "many"])
def test_a_gzip_file_that_ends_early_keeps_its_complete_lines(
    write_file: WriteFile, log_bytes: LogBytes, request: pytest.FixtureRequest, blocks: str
) -> None:
    if blocks == "many":
        request.getfixturevalue("small_blocks")
    packed = gzip.compress(log_bytes(many_rows(3000)))
    path = write_file(packed[: len(packed) // 2])
    dataset = read_log(path)
    rows = len(dataset.rows)
    assert 500 < rows < 2900
    assert dataset.rows.get_column("time_ms").to_list() == [1 / (m + 1) for m in range(rows)]
    assert dataset.summary.malformed_lines == 1
    assert dataset.summary.skipped == (f"{path}:{rows + 3}: the gzip stream ends early",)
    with pytest.raises(InputError, match=rf":{rows + 3}: the gzip stream ends early$"):
        read_log(path, strict=True)


def test_a_gzip_file_with_a_wrong_checksum_keeps_its_lines_and_says_so(
    write_file: WriteFile, log_bytes: LogBytes
) -> None:
    packed = bytearray(gzip.compress(log_bytes(many_rows(3000))))
    packed[-8] ^= 1
    dataset = read_log(write_file(bytes(packed)))
    assert len(dataset.rows) == 3000
    assert dataset.summary.malformed_lines == 1
    assert "the gzip stream is damaged" in dataset.summary.skipped[0]


def test_a_gzip_file_cut_before_the_first_row_is_an_error(write_file: WriteFile, log_bytes: LogBytes) -> None:
    with pytest.raises(InputError, match="the gzip stream ends early; a log begins with"):
        read_log(write_file(gzip.compress(log_bytes())[:15]))


@pytest.mark.parametrize("inner", [gzip.compress(b"{}\n", mtime=0), zipped(log=b"{}\n")], ids=["gzip", "zip"])
def test_what_is_packed_twice_is_an_error(write_file: WriteFile, inner: bytes) -> None:
    with pytest.raises(InputError, match="packed twice"):
        read_log(write_file(gzip.compress(inner)))
    with pytest.raises(InputError, match="packed twice"):
        read_log(write_file(zipped(log=inner)))


def test_a_zip_archive_must_hold_exactly_one_log(write_file: WriteFile, log_bytes: LogBytes) -> None:
    extra = {"folder/": b"", "__MACOSX/._toy.txt": b"x"}
    assert len(read_log(write_file(zipped(**{"folder/toy.txt": log_bytes()}, **extra))).rows) == 3
    with pytest.raises(InputError, match=r"exactly one log, this one holds 2 \(a, b\)$"):
        read_log(write_file(zipped(a=log_bytes(), b=log_bytes())))
    with pytest.raises(InputError, match=r"exactly one log, this one holds 0 \(none\)$"):
        read_log(write_file(zipped()))


def test_a_damaged_zip_archive_is_an_error(write_file: WriteFile, log_bytes: LogBytes) -> None:
    packed = bytearray(zipped(log=log_bytes(many_rows(300))))
    with pytest.raises(InputError, match="a damaged or truncated zip archive"):
        read_log(write_file(bytes(packed[:-30])))
    packed[200] ^= 0xFF
    with pytest.raises(InputError, match="the zip archive cannot be unpacked"):
        read_log(write_file(bytes(packed)))
