"""`gradtrend scan` as a user calls it: what it prints and writes, what it keeps when it is killed, what it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import Result

from tests.cli.calls import ENVIRONMENT, gradtrend, words_of
from tests.ingest.runs.writers import fit, jsonl
from tests.pipeline.scan.scans import runs

pytestmark = pytest.mark.slow

Call = Callable[..., Result]
COUNT = 8
# Each run is waited for, and said on standard error once it is judged.
SLOWLY = """
import sys, time
from gradtrend.ingest.runs.finding import find
from gradtrend.pipeline import analyze
from gradtrend.pipeline.scan import engines
from gradtrend.cli import main
find._TOGETHER_FILES = 2
real = analyze.judge
def slow(log, *rest):
    time.sleep(0.2)
    return real(log, *rest)
analyze.judge = slow
engines.here = lambda count, here=engines.here: here(0)
main(sys.argv[1:])
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return runs(tmp_path / "runs", COUNT)


def slowly(*words: object, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SLOWLY, "scan", *map(str, words)]
    return subprocess.Popen(command, env=ENVIRONMENT, text=True, stdout=-1, stderr=-1, **more)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def shares_in(state: Path) -> int:
    return state.read_text().count('{"share":') if state.exists() else 0


# --- what it prints and writes


def test_help_says_what_it_needs(call: Call) -> None:
    done = call("scan", "--help")
    assert done.exit_code == 0
    for word in (
        "ROOT...",
        "--state",
        "--newer-than",
        "--shard",
        "--merge",
        "--engine",
        "130  interrupted",
        ".parquet",
    ):
        assert word in done.output


def test_a_table_of_the_worst_and_files_of_all(root: Path, call: Call, tmp_path: Path) -> None:
    files = [tmp_path / f"all.{suffix}" for suffix in ("jsonl", "parquet", "csv")]
    done = call("scan", root, "--processes", "1", "--rows", "2", *(word for file in files for word in ("-o", file)))
    assert done.exit_code == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == f"Runs below {root}/"
    assert len([line for line in lines if line.startswith("exploding")]) == 2
    assert lines[-1] == f"{COUNT} runs: 2 exploding, 2 nan-collapse, 2 vanishing, 2 stable"
    names = [record["run"] for record in lines_of(files[0])]
    assert len(names) == COUNT
    assert names == sorted(names)
    assert pl.read_parquet(files[1])["run"].to_list() == names
    assert pl.read_csv(files[2])["run"].to_list() == names
    assert not list(tmp_path.glob("*.part"))


def test_exit_codes(root: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    broken = tmp_path / "broken"
    jsonl(broken / "a" / "metrics.jsonl", fit("stable", 1))
    (broken / "b").mkdir()
    (broken / "b" / "metrics.jsonl").write_bytes(b"\xff" * 50)
    (root / "stable").mkdir()
    for words, code in (
        ((root,), 0),
        ((root, "--fail-on", "error"), 1),
        ((root, "--fail-on", "sick"), 1),
        ((root, "--fail-on", "GT102"), 1),
        ((root, "--fail-on", "GT106"), 0),
        ((root, "--fail-on", "error", "--verdict", "stable"), 0),
        ((broken,), 0),
        ((tmp_path / "missing",), 3),
        ((tmp_path / "empty",), 3),
        ((tmp_path / "missing", root), 3),
        ((tmp_path / "missing", root, "--fail-on", "error"), 1),
        ((), 2),
        ((root, "--fail-on", "GT999"), 2),
    ):
        done = call("scan", *words, "--processes", "1")
        assert done.exit_code == code, (words, done.output)
    from gradtrend.pipeline import analyze

    monkeypatch.setattr(analyze, "judge", lambda *_: 1 / 0)
    done = call("scan", broken / "a", "--processes", "1")
    assert done.exit_code == 4
    assert "internal error: ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_scan_reads_nothing_and_says_when_it_forgets(root: Path, call: Call, tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = call("scan", root, "--state", state, "--processes", "1")
    before = state.read_bytes()
    second = call("scan", root, "--state", state, "--processes", "1")
    assert (second.stdout, second.stderr) == (first.stdout, "")
    assert state.read_bytes() == before
    third = call("scan", root, "--state", state, "--processes", "1", "--ignore", "GT101")
    assert "was of other options, rules or another version: all was read again" in third.stderr


def test_shards_and_their_merge(root: Path, call: Call, tmp_path: Path) -> None:
    call("scan", root, "-o", tmp_path / "whole.jsonl", "--processes", "1")
    parts = [tmp_path / f"{number}.jsonl" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        assert call("scan", root, "--shard", f"{number}/2", "-o", part, "--processes", "1").exit_code == 0
    done = call("scan", "--merge", *parts, "-o", tmp_path / "merged.jsonl")
    assert (done.exit_code, done.stderr) == (0, "")
    assert (tmp_path / "merged.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    shown = call("scan", "--merge", *parts, "--format", "jsonl", "--verdict", "exploding")
    assert {json.loads(line)["verdict"] for line in shown.stdout.splitlines()} == {"exploding"}
    nothing = call("scan", "--merge", tmp_path / "missing.jsonl", *parts)
    assert nothing.exit_code == 3
    assert "missing.jsonl: No such file" in nothing.stderr


def test_settings_of_a_project_apply(root: Path, tmp_path: Path) -> None:
    (tmp_path / "gradtrend.toml").write_text('[rules.GT101]\nlimits = { "nonsense" = 1 }\n')
    done = gradtrend("scan", "runs", "--processes", "1", folder=tmp_path)
    assert done.returncode == 2
    assert "gradtrend.toml" in done.stderr
    (tmp_path / "gradtrend.toml").write_text('metric = "no_such_norm"\n')
    done = gradtrend("scan", "runs", folder=tmp_path)
    assert "8 unreadable" in done.stdout
    assert "(--metric)" in done.stdout
    assert "unreadable" not in gradtrend("scan", "runs", "--no-config", folder=tmp_path).stdout


# --- while it works, and when it is ended


def test_jsonl_is_there_long_before_the_end(root: Path) -> None:
    with slowly(root, "--format", "jsonl") as call:
        assert call.stdout is not None
        began = time.monotonic()
        first = json.loads(call.stdout.readline())
        early = time.monotonic()
        rest = call.stdout.readlines()
        assert time.monotonic() - early > 0.2 * (COUNT - 3)
        assert call.wait() == 0
    assert first["run"].startswith(str(root))
    assert len(rest) == COUNT - 1
    assert early > began


def test_killed_at_any_moment_the_same_call_goes_on(root: Path, tmp_path: Path) -> None:
    state, output = tmp_path / "state", tmp_path / "all.jsonl"
    with slowly(root, "--state", state, "-o", output) as call:
        wait_for(lambda: shares_in(state) >= 3)
        part = output.with_name("all.jsonl.part")
        assert part.exists()
        assert not output.exists()
        call.kill()
    kept = shares_in(state)
    assert len(lines_of(part)) in (kept, kept - 1)
    with slowly(root, "--state", state, "-o", output, "--format", "jsonl") as call:
        out, err = call.communicate()
    assert (call.returncode, err) == (0, "")
    assert len(out.splitlines()) == COUNT
    assert shares_in(state) == COUNT  # each was judged once
    assert not part.exists()
    assert gradtrend("scan", root, "--format", "jsonl").returncode == 0
    with slowly(root, "-o", tmp_path / "plain.jsonl") as call:
        call.communicate()
    assert output.read_bytes() == (tmp_path / "plain.jsonl").read_bytes()


def test_ctrl_c_shows_what_is_done_and_how_to_go_on(root: Path, tmp_path: Path) -> None:
    state, output = tmp_path / "state", tmp_path / "all.jsonl"
    with slowly(root, "--state", state, "-o", output) as call:
        wait_for(lambda: shares_in(state) >= 2)
        call.send_signal(signal.SIGINT)
        out, err = call.communicate()
    assert call.returncode == 130
    done = int(re.search(r"interrupted; runs judged: (\d)", err)[1])  # type: ignore[index]
    assert 2 <= done < COUNT
    assert out.splitlines()[-1].startswith(f"{done} runs: ")
    assert f"What was judged is kept in {state}; the same call goes on from there." in err
    assert len(lines_of(output.with_name("all.jsonl.part"))) == done
    assert not output.exists()
    assert "Traceback" not in err


def test_a_bar_and_colours_only_on_a_terminal(root: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in ENVIRONMENT.items() if key != "NO_COLOR"} | {"TERM": "xterm"}
    with subprocess.Popen(words_of("scan", root), stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
    os.close(ours)
    assert b"Judging" in seen
    assert b"\x1b[31m" in seen
    done = gradtrend("scan", root)
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the other end is closed
        return b""


# --- where it writes


def test_into_a_pipe_and_into_a_full_disk(root: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    assert gradtrend("scan", root, "-o", pipe).returncode == 0
    reader.join(10)
    assert len(read[0].splitlines()) == COUNT
    if Path("/dev/full").exists():
        (tmp_path / "full.jsonl").symlink_to("/dev/full")
        done = gradtrend("scan", root, "-o", tmp_path / "full.jsonl")
        assert done.returncode == 2
        assert "full.jsonl: cannot be written (No space left on device)" in done.stderr


def test_a_closed_pipe_ends_quietly(root: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = gradtrend("scan", root, "--format", "jsonl", capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_log_is_never_replaced(root: Path, call: Call, tmp_path: Path) -> None:
    log = root / "lr-0" / "run-0" / "metrics.jsonl"
    table = root / "lr-1" / "run-4" / "metrics.csv"
    (tmp_path / "link.jsonl").symlink_to(log)
    before = log.read_bytes(), table.read_bytes()
    for words in (
        (root, "-o", log),
        (root, "-o", table),
        (root, "-o", tmp_path / "link.jsonl"),
        (log, "-o", log),
        (log.parent, tmp_path, "-o", log),
        (root, "--state", log),
        ("--merge", log, "-o", log),
    ):
        done = call("scan", *words)
        assert done.exit_code == 2, words
        assert "Name another file" in done.stderr
        assert (log.read_bytes(), table.read_bytes()) == before


def test_files_in_the_tree_are_written_anew_and_are_no_runs(root: Path, tmp_path: Path) -> None:
    words = ["scan", "runs", "--state", "runs/state.jsonl", "-o", "runs/metrics.jsonl", "-o", "runs/log.csv"]
    seen = [gradtrend(*words, folder=tmp_path) for _ in range(3)]
    for done in seen:
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == seen[0].stdout
    assert shares_in(root / "state.jsonl") == 1
    assert len(lines_of(root / "metrics.jsonl")) == COUNT


def test_a_refusal_leaves_no_file_behind(root: Path, call: Call, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("something else\n")
    done = call("scan", root, "--state", tmp_path / "state", "-o", tmp_path / "all.jsonl")
    assert done.exit_code == 2
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "state"}


# --- what it refuses


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "x.txt"], "no file of records has the suffix '.txt'\n  Known: .jsonl, .parquet, .csv."),
        (["-o", "/dev/stdout"], "no file of records has the suffix ''\n  Known: .jsonl, .parquet, .csv."),
        (["-o", "no/such/x.jsonl"], "-o no/such/x.jsonl: cannot be written (No such file or directory)"),
        (["-o", "x.jsonl", "-o", "./x.jsonl"], "name one file twice"),
        (["-o", "x.jsonl", "--state", "x.jsonl"], "name one file twice"),
        (["--state", "no/such/state"], "--state no/such/state: cannot be used (No such file or directory)"),
        (["--newer-than", "soon"], "neither an age nor a date\n  Such as 12h, 2d, 1w"),
        (["--verdict", "bad"], "there is no verdict 'bad'\n  Known: exploding"),
        (["--shard", "5/4"], "not one of so many shares\n  Such as 1/4"),
        (["--rows", "-1"], "-1 is not in the range x>=0"),
        (["--processes", "0"], "0 is not in the range x>=1"),
        (["--format", "json"], "'json' is not one of 'text', 'jsonl'"),
        (["--engine", "dask"], "--engine dask and --scheduler ADDRESS belong together"),
        (["--scheduler", "tcp://a:1"], "--engine dask and --scheduler ADDRESS belong together"),
        (
            ["--engine", "dask", "--scheduler", "tcp://a:1", "--processes", "2"],
            "--processes: the workers of the cluster",
        ),
        (["--merge", "--shard", "1/2"], "--merge reads no logs"),
        (["--merge", "--state", "s"], "--merge reads no logs"),
        (["--select", "GT999"], "GT999"),
        (["--source", "nonsense"], "nonsense"),
        (["--rules", "no/such"], "no/such"),
        (["--fail-on", "whatever"], "whatever"),
    ],
)
def test_a_bad_option_is_told_with_what_to_do(
    root: Path, call: Call, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(root.parent)
    done = call("scan", "runs", *words)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert not list(root.parent.glob("*x*"))


# --- names that are hostile


@pytest.mark.skipif(sys.platform != "linux", reason="a name may be any bytes")
def test_hostile_names_are_shown_and_written_as_text(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    names = [b"\x1b[31mred", b"a\nb", b"\xff\xfe", "\u202eevil".encode(), b"=cmd()", b"quote\",'"]
    for number, name in enumerate(names):
        jsonl(root / os.fsdecode(name) / "metrics.jsonl", fit("exploding", number))
    files = [tmp_path / f"all.{suffix}" for suffix in ("jsonl", "csv", "parquet")]
    for _ in range(2):
        words = ["scan", root, "--state", tmp_path / "state", *(word for file in files for word in ("-o", file))]
        done = gradtrend(*words)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) == 2 + len(names) + 2
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", done.stdout)
        found = [record["run"] for record in lines_of(files[0])]
        assert {name.removeprefix(f"{root}/") for name in found} == {
            os.fsdecode(name).encode("utf-8", "backslashreplace").decode() for name in names
        }
        assert pl.read_csv(files[1])["run"].to_list() == found
        assert pl.read_parquet(files[2])["run"].to_list() == found
    out = gradtrend("scan", root, "--format", "jsonl").stdout
    assert out.isascii()
    assert len(out.splitlines()) == len(names)
