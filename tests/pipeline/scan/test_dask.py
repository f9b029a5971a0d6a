"""A real cluster of Dask on this machine: a scheduler and two workers, one of which is killed in mid-scan."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gradtrend.errors import ConfigError, GradtrendError
from gradtrend.ingest.runs.finding import find
from gradtrend.pipeline.runs import AnalyzeOptions
from gradtrend.pipeline.scan import engines
from gradtrend.pipeline.scan.dask import dask_cluster
from gradtrend.pipeline.scan.scan import scan_all
from gradtrend.pipeline.scan.wanted import Wanted
from tests.cli.calls import gradtrend
from tests.pipeline.scan.scans import runs, said, scan
from tests.processes import SOURCE

pytestmark = pytest.mark.slow
_SECONDS = 30.0  # for a process to start, on a machine with much else to do


@pytest.fixture(scope="module", autouse=True)
def distributed() -> Any:
    try:
        import distributed
    except ImportError:
        what = "distributed is not installed (pip install 'gradtrend[dask]')"
        if os.environ.get("CI"):
            pytest.fail(f"{what}, and CI has to test the cluster")
        pytest.skip(what)
    return distributed


def started(stack: ExitStack, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", f"distributed.cli.dask_{words[0]}", *words[1:]]
    with (folder / f"{words[0]}.txt").open("ab") as file:
        process = subprocess.Popen(command, env=environment, cwd=folder, stderr=file, stdout=file)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


class Cluster:
    """A scheduler on a free port, and workers."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        started(stack, folder, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.address = self._told(r"Scheduler at:\s+(tcp://[\d.:]+)")
        self.workers: list[subprocess.Popen[bytes]] = []

    def add_worker(self) -> None:
        words = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self._folder))
        self.workers.append(started(self._stack, self._folder, "worker", self.address, *words))

    def _told(self, pattern: str) -> str:
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until:
            found = re.search(pattern, (self._folder / "scheduler.txt").read_text())
            if found:
                return found[1]
            time.sleep(0.05)
        raise TimeoutError((self._folder / "scheduler.txt").read_text())

    def wait_for(self, count: int) -> None:
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=_SECONDS)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, distributed: Any) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(stack, tmp_path_factory.mktemp("dask"))


def test_a_scheduler_without_workers_is_said(cluster: Cluster) -> None:
    address = cluster.address
    with pytest.raises(GradtrendError, match=f"{address}: it has no workers") as caught, dask_cluster(address):
        pass
    assert f"dask worker {address}" in (caught.value.hint or "")


def test_a_worker_that_is_killed_in_mid_scan_loses_nothing(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the command line says the same of the one that is left."""
    monkeypatch.setattr(find, "_TOGETHER_FILES", 2)
    monkeypatch.setattr(engines, "_JOBS_A_BATCH", 2)
    root = runs(tmp_path / "runs", 40, points=400)
    for _ in range(2):
        cluster.add_worker()
    cluster.wait_for(2)
    killed: list[int] = []

    def heard(records: Any, done: int, count: int) -> None:
        if done > 4 and not killed:
            cluster.workers[0].send_signal(signal.SIGKILL)
            killed.append(done)

    with dask_cluster(cluster.address) as engine:
        found = scan_all([str(root)], AnalyzeOptions(), Wanted(), engine, heard=heard)
    assert killed[0] < 40
    assert cluster.workers[0].wait(_SECONDS) == -signal.SIGKILL
    assert said(found) == said(scan(root))
    assert not [record for record in found.records if record.failure]
    monkeypatch.undo()
    words = ["--engine", "dask", "--scheduler", cluster.address, "--format", "jsonl"]
    done = gradtrend("scan", root, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(gradtrend("scan", root, "--format", "jsonl").stdout.splitlines())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense"])
def test_where_no_scheduler_answers_it_is_said_within_seconds(address: str) -> None:
    began = time.monotonic()
    done = gradtrend("scan", "x", "--engine", "dask", "--scheduler", address)
    assert done.returncode == 2
    assert done.stderr.startswith(f"gradtrend: --scheduler {address}: no Dask scheduler answers (")
    assert done.stderr.splitlines()[1:] == ["  Give the address that `dask scheduler` prints, such as tcp://host:8786."]
    assert time.monotonic() - began < 20


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match="needs the package distributed") as caught, dask_cluster("tcp://127.0.0.1:1"):
        pass
    assert caught.value.hint == "pip install 'gradtrend[dask]'"
