"""The bytes of a log, whatever it is packed in, in blocks of whole lines."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from autoheur.errors import InputError

BLOCK_BYTES = 16 * 2**20
"""About how much text is held at a time; also the longest line that is accepted."""

GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_CHUNK = 2**20


class _Damage(Exception):
    """The packed stream breaks off or is corrupt; everything before was delivered."""


class LineBlocks:
    """Iterates over a file's unpacked content in blocks of whole lines; the last one may lack its newline.

    After the iteration ``damage`` says what was wrong with the packed stream, if anything was (the incomplete last
    line is then left out), and ``sha256`` is the digest of the unpacked content.

    Raises (while iterating):
        InputError: the file cannot be opened, is a damaged zip archive or one with other than one member, is packed
            twice, or has a line longer than a block.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.damage: str | None = None
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[bytes]:
        parts: list[bytes] = []
        size = lines = 0
        try:
            for chunk in _chunks(self.path):
                self._digest.update(chunk)
                parts.append(chunk)
                size += len(chunk)
                if size >= BLOCK_BYTES:
                    data = b"".join(parts)
                    cut = data.rfind(b"\n") + 1
                    if not cut:
                        longest = f"{BLOCK_BYTES // 2**20} MiB"
                        raise InputError(f"{self.path}:{lines + 1}: a line longer than {longest}; this is not a log")
                    yield data[:cut]
                    lines += data.count(b"\n")
                    parts = [data[cut:]]
                    size = len(parts[0])
        except _Damage as damage:
            self.damage = str(damage)
        except OSError as error:
            raise InputError(f"{self.path}: cannot read: {error.strerror or error}") from None
        rest = b"".join(parts)
        if self.damage is not None:
            rest = rest[: rest.rfind(b"\n") + 1]
        if rest:
            yield rest


def _chunks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    with Path(path).open("rb") as file:
        magic = file.read(4)
        file.seek(0)
        if magic[:2] == GZIP_MAGIC:
            chunks = _inflate(file)
        elif magic in ZIP_MAGIC:
            chunks = _unzip(path, file)
        else:
            yield from iter(lambda: file.read(_CHUNK), b"")
            return
        for position, chunk in enumerate(chunks):
            if position == 0 and (chunk[:2] == GZIP_MAGIC or chunk[:4] in ZIP_MAGIC):
                raise InputError(f"{path}: packed twice (a gzip or zip inside another); unpack it once")
            yield chunk


def _inflate(file: BinaryIO) -> Iterator[bytes]:
    """Unpack gzip members one after another.

    Not through ``gzip.open``: at a damaged place it drops up to one read of good bytes before it.
    """
    engine = zlib.decompressobj(wbits=31)
    while piece := file.read(_CHUNK):
        while piece:
            if engine.eof:  # another member follows, or zeros that pad to a tape block
                piece = piece.lstrip(b"\0")
                if not piece:
                    break
                engine = zlib.decompressobj(wbits=31)
            before = engine.copy()
            try:
                unpacked = engine.decompress(piece, _CHUNK)
            except zlib.error as error:
                yield from _salvage(before, piece)
                raise _Damage(f"the gzip stream is damaged ({error})") from None
            if unpacked:
                yield unpacked
            piece = engine.unused_data if engine.eof else engine.unconsumed_tail
    rest = engine.flush()
    if rest:
        yield rest
    if not engine.eof:
        raise _Damage("the gzip stream ends early")


def _salvage(engine: zlib._Decompress, piece: bytes) -> Iterator[bytes]:
    """What comes out before the damage: a failing call returns nothing, so go byte by byte."""
    for position in range(len(piece)):
        try:
            yield engine.decompress(piece[position : position + 1])
        except zlib.error:
            return


def _unzip(path: str | os.PathLike[str], file: BinaryIO) -> Iterator[bytes]:
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise InputError(f"{path}: a damaged or truncated zip archive; pack it again") from None
    members = [info for info in archive.infolist() if not info.is_dir() and not info.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        names = ", ".join(info.filename for info in members[:3]) or "none"
        raise InputError(f"{path}: a zip archive must hold exactly one log, this one holds {len(members)} ({names})")
    try:
        with archive.open(members[0]) as member:
            while chunk := member.read(_CHUNK):
                yield chunk
    # Damaged, encrypted, or packed with a method that Python lacks.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise InputError(f"{path}: the zip archive cannot be unpacked: {error or 'it ends early'}") from None
