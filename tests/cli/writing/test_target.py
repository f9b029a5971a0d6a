from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from gradtrend.cli.writing.target import prepared
from gradtrend.errors import ConfigError
from tests.processes import python


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    target.chmod(0o640)
    prepared(target).write("nëw\n")
    assert target.read_bytes() == "nëw\n".encode()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [target]


def test_a_new_file_gets_the_usual_mode(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        prepared(tmp_path / "report.json").write("x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "report.json").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(target)
    prepared(link).write("x")
    assert link.is_symlink()
    assert target.read_text() == "x"


def test_a_device_is_written_to_not_replaced() -> None:
    prepared(Path(os.devnull)).write("x")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_what_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for target in (tmp_path, tmp_path / "none" / "report", tmp_path / "file" / "report"):
        with pytest.raises(ConfigError, match="-o "):
            prepared(target)


def test_checking_leaves_nothing_behind(tmp_path: Path) -> None:
    prepared(tmp_path / "report.json")
    assert not list(tmp_path.iterdir())


def test_a_name_as_long_as_a_name_may_be(tmp_path: Path) -> None:
    target = tmp_path / ("a" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    prepared(target).write("x")
    assert target.read_text() == "x"
    assert list(tmp_path.iterdir()) == [target]


def test_a_longer_name_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="File name too long"):
        prepared(tmp_path / ("a" * (os.pathconf(tmp_path, "PC_NAME_MAX") + 1)))


def test_links_that_are_a_circle_are_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(ConfigError, match="-o "):
        prepared(tmp_path / "circle")


@pytest.mark.parametrize("limit", [1000, 0])
def test_the_old_report_stays_where_the_new_one_has_no_room(tmp_path: Path, limit: int) -> None:
    """Also where the disk takes a part of it."""
    target = tmp_path / "report.json"
    target.write_text("old")
    code = (
        "import resource, signal, sys\nfrom pathlib import Path\nfrom gradtrend.cli.writing.target import prepared\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\ntarget = prepared(Path(sys.argv[1]))\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\ntarget.write('new' * 1000)"
    )
    done = python("-c", code, target)
    assert "cannot be written (File too large)" in done.stderr
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_named_pipe_without_a_reader_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradtrend.cli.writing.target.WAIT_SECONDS", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="nobody reads from this pipe"):
        prepared(tmp_path / "pipe")


def test_the_reader_of_a_named_pipe_gets_the_report_whole(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", tmp_path / "got"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", f"cat {pipe} > {got}"]) as reader:
        target = prepared(pipe)
        target.write("report\n" * 100_000)
        reader.wait(60)
    assert got.read_text() == "report\n" * 100_000


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    target = prepared(tmp_path / "pipe")
    os.close(reader)
    target.write("x")
