"""What writing a file whole must not do to what is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autoheur.dataset.files import read
from autoheur.errors import InputError
from autoheur.files import check_writable, write_text


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_device_or_pipe_is_not_replaced_by_a_file(pipe: Path) -> None:
    with pytest.raises(InputError, match="not a regular file"):
        write_text(pipe, "text")
    assert pipe.is_fifo()
    assert os.listdir(pipe.parent) == ["pipe"]


def test_whether_a_file_can_be_written_is_found_out_without_touching_it(pipe: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    check_writable(tmp_path / "new")
    check_writable(tmp_path / "kept")
    for path, message in ((pipe, "regular"), (tmp_path, "folder"), (tmp_path / "nowhere" / "x", "No such file")):
        with pytest.raises(InputError, match=f"cannot write: .*{message}"):
            check_writable(path)
    assert sorted(os.listdir(tmp_path)) == ["kept", "pipe"]
    assert (tmp_path / "kept").read_text() == "kept"


def test_a_link_stays_and_what_it_names_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_pipe_is_an_error_and_not_waited_for(pipe: Path) -> None:
    with pytest.raises(InputError, match="not a regular file"):
        read(pipe)
