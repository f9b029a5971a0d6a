from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gradtrend.cli.output import check_writable, write_whole
from gradtrend.errors import ConfigError


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    target.chmod(0o640)
    write_whole(target, "nëw\n")
    assert target.read_bytes() == "nëw\n".encode()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [target]


def test_a_new_file_gets_the_usual_mode(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_whole(tmp_path / "report.json", "x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "report.json").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(target)
    write_whole(link, "x")
    assert link.is_symlink()
    assert target.read_text() == "x"


def test_a_device_is_written_to_not_replaced() -> None:
    write_whole(Path(os.devnull), "x")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_what_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for target in (tmp_path, tmp_path / "none" / "report", tmp_path / "file" / "report"):
        with pytest.raises(ConfigError, match="-o "):
            check_writable(target)


def test_checking_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "report.json")
    assert not list(tmp_path.iterdir())
