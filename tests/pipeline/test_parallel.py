"""Work on several processes: the same results in the same order, whatever becomes of a process."""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gradtrend.pipeline import parallel
from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions
from tests.places import EXPLODING, LIGHTLY, ROOT

MUCH = parallel.LEAST_SECONDS


@pytest.fixture(autouse=True)
def tests_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the processes that do the work defined here: they are given this one's path."""
    monkeypatch.syspath_prepend(str(ROOT))


def process_of(item: int) -> tuple[int, int]:
    time.sleep(0.02)  # so that no process has done all before another has started
    return item, os.getpid()


def killed_once(flag: Path, item: int) -> int:
    """The item; the process is killed in the middle of the work."""
    if item == 5 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def ends_at_5(how: str, item: int) -> int:
    """The item; its process ends at 5 in this way."""
    if item == 5:
        if how == "memory":
            raise MemoryError
        if how == "deep":
            raise RecursionError
        if how == "exit":
            os._exit(3)
        faulthandler.disable()  # of pytest, which would tell of it
        os.kill(os.getpid(), signal.Signals[f"SIG{how}"])
    return item


def killed_if_odd(item: int) -> int:
    if item % 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def fails_never(item: int) -> int:
    return item


def slow(item: int) -> int:
    time.sleep(0.02)
    return item


def fails(item: int) -> int:
    if item == 7:
        raise ValueError(item)
    return item


@pytest.fixture(params=["forked", "spawned"])
def start(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How processes are started. A fork of the tests' own process is not sound, but does work that needs no lock."""
    if request.param == "forked" and sys.platform != "linux":
        pytest.skip("processes are forked on Linux alone")
    monkeypatch.setattr(parallel, "may_fork", lambda: request.param == "forked")
    return str(request.param)


def test_the_order_is_that_of_the_items(start: str) -> None:
    done = parallel.in_order(process_of, range(100), MUCH, 2)
    assert [item for item, _ in done] == list(range(100))
    processes = {process for _, process in done}
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_what_cannot_be_sent_to_another_process_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "may_fork", lambda: False)
    assert parallel.in_order(lambda item: (item, os.getpid()), range(4), MUCH, 2) == [
        (i, os.getpid()) for i in range(4)
    ]


@pytest.mark.parametrize(("items", "seconds", "processes"), [(40, MUCH - 0.1, 2), (40, MUCH, 1), (1, MUCH, 2)])
def test_one_process_is_started_where_more_do_not_pay(items: int, seconds: float, processes: int, start: str) -> None:
    done = parallel.in_order(process_of, range(items), seconds, processes)
    others = {process for _, process in done}
    assert len(others) == 1
    assert os.getpid() not in others


def test_no_process_is_started_for_none() -> None:
    assert parallel.in_order(process_of, range(3), MUCH, 0) == [(item, os.getpid()) for item in range(3)]


def test_the_work_of_a_killed_process_is_done_all_the_same(tmp_path: Path, start: str) -> None:
    flag = tmp_path / "killed"
    assert parallel.in_order(partial(killed_once, flag), range(40), MUCH, 2) == list(range(40))
    assert flag.exists()


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("KILL", "the process that read it was killed (signal 9): out of memory?"),
        ("BUS", "the process that read it was killed (signal 7): was the file cut while it was read?"),
        ("ABRT", "the process that read it was killed (signal 6): out of memory?"),
        ("SEGV", "the process that read it was killed (signal 11)"),
        ("exit", "the process that read it ended (exit code 3): out of memory?"),
        ("memory", "there was not enough memory to read it"),
        ("deep", "it is nested too deep"),
    ],
)
def test_what_kills_its_process_is_lost_alone(end: str, reason: str, processes: int, start: str) -> None:
    done = parallel.in_order(partial(ends_at_5, end), range(40), MUCH, processes)
    assert done == [*range(5), parallel.Lost(reason), *range(6, 40)]


def test_many_that_kill_their_process_are_lost_each(start: str) -> None:
    done = parallel.in_order(killed_if_odd, range(8), MUCH, 2)
    assert [isinstance(result, parallel.Lost) for result in done] == [False, True] * 4


def test_a_process_that_dies_at_its_start_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more work than a pipe holds; the next process does it."""
    monkeypatch.setattr(parallel, "may_fork", lambda: False)
    started = []

    def killed_first(process: object) -> None:
        start_of(process)
        started.append(process.pid)  # type: ignore[attr-defined]
        if len(started) == 1:
            os.kill(started[0], signal.SIGKILL)

    start_of = multiprocessing.context.SpawnProcess.start  # type: ignore[attr-defined]
    monkeypatch.setattr("multiprocessing.context.SpawnProcess.start", killed_first)
    assert parallel.in_order(len, ["x" * 200_000] * 4, MUCH, 1) == [200_000] * 4
    assert len(started) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a stream stays open in a fork alone")
def test_a_stream_is_not_taken_up_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parallel, "may_fork", lambda: True)
    (lost,) = parallel.in_order(partial(killed_once, tmp_path / "flag"), [5], MUCH, 1, streams=[0])
    assert isinstance(lost, parallel.Lost)


def test_a_stream_is_taken_up_here_where_processes_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "may_fork", lambda: False)
    done = parallel.in_order(process_of, range(2), MUCH, 1, streams=[1])
    assert done[0][1] != done[1][1] == os.getpid()


def test_an_error_is_raised(start: str) -> None:
    with pytest.raises(ValueError, match="7"):
        parallel.in_order(fails, range(40), MUCH, 2)


def no_process(*process: object) -> None:
    raise BlockingIOError("no more processes")


def test_without_more_processes_this_one_does_all(monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    monkeypatch.setattr("multiprocessing.context.SpawnProcess.start", no_process)
    monkeypatch.setattr("os.fork", no_process)
    done = parallel.in_order(process_of, range(40), MUCH, 3)
    assert done == [(item, os.getpid()) for item in range(40)]


def test_in_another_thread() -> None:
    done: list[int] = []
    thread = threading.Thread(target=lambda: done.extend(parallel.in_order(fails_never, range(40), MUCH, 2)))
    thread.start()
    thread.join(60)
    assert done == list(range(40))


@pytest.mark.skipif(not Path("/proc").exists(), reason="sees in /proc what the processes do")
def test_processes_end_with_the_one_that_started_them() -> None:
    code = f"from tests.pipeline.test_parallel import *; parallel.in_order(slow, range(10_000), {MUCH}, 2)"
    call = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, start_new_session=True)
    assert until(lambda: len(group_of(call.pid)) > 2)  # one more keeps track of what is shared
    call.terminate()
    call.wait(60)
    assert until(lambda: not alive(call.pid))


def test_a_script_without_a_guard_reports_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from gradtrend.pipeline import parallel\nfrom gradtrend.cli import main\nparallel.LEAST_SECONDS = 0\n"
        "parallel.may_fork = lambda: False\n"
        f"main(['analyze', {str(LIGHTLY)!r}, '--format', 'json', '--exit-zero'])\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=60)
    assert len(json.loads(done.stdout)["runs"]) == len(list(LIGHTLY.iterdir()))
    assert done.stderr == ""


def test_a_script_without_a_guard_that_calls_the_library_is_told(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from gradtrend.pipeline import parallel\nparallel.may_fork = lambda: False\n"
        f"print(parallel.in_order(str, range(4), {MUCH}, 2))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "['0', '1', '2', '3']\n"
    assert done.stderr.count("UnguardedScriptError: a process that was started runs the script again") == 2  # processes


def test_a_script_without_a_guard_ends_however_much_work_it_has(tmp_path: Path) -> None:
    """More than a pipe holds waits for a process that never reads it."""
    script = tmp_path / "script.py"
    work = f"parallel.in_order(len, ['x' * 200_000] * 4, {MUCH}, 2)"
    script.write_text(f"from gradtrend.pipeline import parallel\nparallel.may_fork = lambda: False\nprint({work})\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[200000, 200000, 200000, 200000]\n"


def test_reports_and_failures_do_not_depend_on_the_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").touch()
    paths = [*map(str, sorted(LIGHTLY.iterdir())), "missing", str(tmp_path / "empty.jsonl"), str(LIGHTLY)]
    alone = analyze_paths(paths, AnalyzeOptions())
    monkeypatch.setattr(parallel, "LEAST_SECONDS", 0.0)
    assert repr(analyze_paths(paths, AnalyzeOptions(), processes=2)) == repr(alone)
    assert [failure.path for failure in alone[1]] == ["missing", str(tmp_path / "empty.jsonl")]
    assert len(alone[0]) == 2 * len(list(LIGHTLY.iterdir()))
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(not Path("/proc").exists(), reason="sees in /proc what the processes do")
def test_ctrl_c_shows_what_is_done_and_ends_the_processes(tmp_path: Path) -> None:
    log = (EXPLODING / "metrics.jsonl").read_bytes()
    for i in range(1000):
        (tmp_path / f"run{i}").mkdir()
        (tmp_path / f"run{i}" / "metrics.jsonl").write_bytes(log)
    command = [sys.executable, "-m", "gradtrend", "analyze", str(tmp_path)]
    call = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert until(lambda: at_work(call.pid))
    os.killpg(call.pid, signal.SIGINT)
    out, err = call.communicate(timeout=60)
    assert call.returncode == 130
    assert b"Traceback" not in err
    if out or err:  # what had been judged by then
        judged = err.split(b"runs judged: ")[1].split(b",")[0]
        assert f"\n{int(judged)} run{'s' * (int(judged) > 1)}: {int(judged)} exploding".encode() in out
    assert until(lambda: not alive(call.pid))


def until(holds: Callable[[], bool]) -> bool:
    """Whether it comes to hold within a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return False


def group_of(group: int) -> list[int]:
    """The processes of a group."""
    stats = [path.read_text().rsplit(")", 1)[1].split() for path in Path("/proc").glob("[0-9]*/stat")]
    return [int(fields[2]) for fields in stats if int(fields[2]) == group]


def alive(group: int) -> bool:
    """Whether a process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def at_work(process: int) -> bool:
    """Whether the processes that it started have loaded what they need: they have used some processor time."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    used = [Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split() for child in children]
    ticks = [int(fields[11]) + int(fields[12]) for fields in used]
    return len(ticks) > 1 and sorted(ticks)[-1] > 0.4 * os.sysconf("SC_CLK_TCK")
