"""Nothing but regular files is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradtrend.ingest.files.regular import open_regular, read_regular


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc" * 1000)
    assert read_regular(path) == b"abc" * 1000
    with open_regular(path) as file:
        assert file.read(3) == b"abc"


def test_a_larger_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    with pytest.raises(OSError, match="larger than 2 bytes"):
        read_regular(path, most=2)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(tmp_path / "pipe")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
