"""Whoever does the work, the records are the same; what is lost with a worker is told or done again."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gradtrend.errors import ConfigError, GradtrendError
from gradtrend.ingest.runs.finding import find
from gradtrend.pipeline.analyze import plan_of
from gradtrend.pipeline.runs import AnalyzeOptions
from gradtrend.pipeline.scan import engines
from gradtrend.pipeline.scan.engines import elsewhere, here, judge_batch
from tests.pipeline.scan.scans import runs, said, scan

COUNT = 9


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs that are read one by one, and go out in several batches."""
    monkeypatch.setattr(find, "_TOGETHER_FILES", 2)
    monkeypatch.setattr(engines, "_JOBS_A_BATCH", 4)
    return runs(tmp_path / "runs", COUNT)


class Here(Executor):
    """An executor that does all at once, in this process, through pickles as another would."""

    def __init__(self, spoil: Callable[[int, Any], None] = lambda count, jobs: None) -> None:
        self.batches: list[list[str]] = []
        self._spoil = spoil

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        jobs = args[2]
        self.batches.append([job.name for job in jobs])
        try:
            self._spoil(len(self.batches), jobs)
            function, arguments = pickle.loads(pickle.dumps((fn, args)))
            future.set_result(pickle.loads(pickle.dumps(function(*arguments, **named))))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture(params=["threads", "processes", "here"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param == "here":
        yield Here()
        return
    spawn = multiprocessing.get_context("spawn")
    with ThreadPoolExecutor(2) if request.param == "threads" else ProcessPoolExecutor(2, spawn) as pool:
        yield pool


def test_every_executor_gives_the_records_of_this_machine(root: Path, executor: Executor, tmp_path: Path) -> None:
    state = tmp_path / "state"
    (root / "lr-0" / "run-0" / "metrics.jsonl").write_bytes(b"\xff" * 50)  # of which a failure comes back
    expected = scan(root, engine=here(0))
    found = scan(root, engine=elsewhere(executor), state=state)
    assert said(found) == said(expected)
    assert len(found.records) == COUNT
    again = scan(root, engine=elsewhere(executor), state=state)
    assert (again.read, said(again)) == (0, said(expected))


def test_rules_of_a_folder_and_limits_go_with_the_work(root: Path, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    rule = (Path(__file__).parents[3] / "rules" / "GT101-exploding.toml").read_text()
    (tmp_path / "rules" / "x.toml").write_text(rule.replace('severity = "error"', 'severity = "info"', 1))
    options = AnalyzeOptions(rules_dir=tmp_path / "rules", announce=lambda text: None)
    found = scan(root, engine=elsewhere(Here()), options=options)
    assert said(found) == said(scan(root, options=options))
    assert said(found) != said(scan(root))


def test_two_processes_of_this_machine_give_the_records_of_one(root: Path) -> None:
    assert said(scan(root, engine=here(2))) == said(scan(root, engine=here(0)))


def test_a_batch_that_is_lost_is_tried_again_run_by_run(root: Path) -> None:
    def loses(count: int, jobs: Any) -> None:
        if count == 2:
            raise OSError("the worker is gone")

    executor = Here(loses)
    assert said(scan(root, engine=elsewhere(executor))) == said(scan(root))
    assert [len(batch) for batch in executor.batches] == [4, 4, 1, 1, 1, 1, 1]


def test_a_run_that_its_worker_never_survives_is_alone_in_that(root: Path, tmp_path: Path) -> None:
    def dies(count: int, jobs: Any) -> None:
        if any(job.name.endswith("run-4") for job in jobs):
            raise RuntimeError("killed\nby somebody")

    state = tmp_path / "state"
    for read in (COUNT, 1, 1):
        found = scan(root, engine=elsewhere(Here(dies)), state=state)
        assert found.read == read
        assert len(found.records) == COUNT
        (lost,) = [record for record in found.records if record.failure]
        assert lost.run.endswith("run-4")
        assert "the worker that read it was lost: RuntimeError: killed" in (lost.failure or "")
    whole = scan(root, state=state)
    assert (whole.read, said(whole)) == (1, said(scan(root)))


def test_an_executor_that_breaks_keeps_what_was_done(root: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(os.getpid).result()
        (process,) = pool._processes.values()

        class Breaks(Executor):
            def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
                if args[2][0].name.endswith("run-8"):
                    process.kill()
                    process.join()
                future = pool.submit(fn, *args, **named)
                future.exception()
                return future

        with pytest.raises(GradtrendError, match="the executor does no more work") as caught:
            scan(root, engine=elsewhere(Breaks()), state=state)
    assert "--state" in (caught.value.hint or "")
    again = scan(root, state=state)
    assert 0 < again.read < COUNT
    assert said(again) == said(scan(root))


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_an_executor_that_was_shut_down_is_said(root: Path, kind: str) -> None:
    executor: Executor = ThreadPoolExecutor(1)
    if kind == "processes":
        executor = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    executor.shutdown()
    with pytest.raises(GradtrendError, match="the executor does no more work: cannot schedule"):
        scan(root, engine=elsewhere(executor))


def test_a_pool_of_copies_of_a_process_with_threads_is_refused() -> None:
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork"))
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with pytest.raises(ConfigError, match="has threads") as told:
            elsewhere(pool)
        assert 'get_context("spawn")' in str(told.value.hint)
    finally:
        stop.set()
        thread.join()
        pool.shutdown()


def test_work_that_is_cancelled_is_said(root: Path) -> None:
    class Cancels(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with pytest.raises(GradtrendError, match="the executor does no more work: CancelledError"):
        scan(root, engine=elsewhere(Cancels()))


def test_workers_that_cannot_do_the_work_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(count: int, jobs: Any) -> None:
        raise ModuleNotFoundError("No module named 'gradtrend'")

    with pytest.raises(ConfigError, match=r"cannot load gradtrend \(No module named 'gradtrend'\)"):
        scan(root, engine=elsewhere(Here(lacks)))
    with monkeypatch.context() as patch:
        patch.setattr(engines, "__version__", "0.0.1")
        packed = pickle.dumps(plan_of(AnalyzeOptions()))
        with pytest.raises(ConfigError, match=r"a worker has gradtrend 0\.0\.1, this process has 9"):
            judge_batch("9", packed, [])
        pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        with pool, pytest.raises(ConfigError, match=r"this process has 0\.0\.1") as caught:
            scan(root, engine=elsewhere(pool))
    assert "same one everywhere" in (caught.value.hint or "")


def test_no_more_is_handed_out_than_waits(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_JOBS_A_BATCH", 1)
    monkeypatch.setattr(engines, "_MOST_WAITING", 2)

    class Counts(ThreadPoolExecutor):
        most = 0

        def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
            future = super().submit(fn, *args, **named)
            self.waiting = [one for one in [*getattr(self, "waiting", []), future] if not one.done()]
            self.most = max(self.most, len(self.waiting))
            return future

    with Counts(1) as executor:
        assert said(scan(root, engine=elsewhere(executor))) == said(scan(root))
        assert executor.most <= 2


def test_a_pipe_is_read_by_this_process(tmp_path: Path) -> None:
    """No worker has it."""
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    lines = "".join(f"step {step} | loss 1.0 | grad_norm 1.{step % 7}\n" for step in range(40))
    threading.Thread(target=pipe.write_text, args=(lines,), daemon=True).start()
    executor = Here()
    (record,) = scan(pipe, engine=elsewhere(executor)).records
    assert record.verdict == "stable", record
    assert not executor.batches
