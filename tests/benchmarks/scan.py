"""What many runs cost: `gradtrend scan` of nested folders, again with its state, in shards, and on a Dask cluster.

python -m tests.benchmarks.scan                    # 10,000 runs of 1,000 steps, 1.2 GB, made once
python -m tests.benchmarks.scan --runs 1000        # fewer
python -m tests.benchmarks.scan --dask             # one worker, two, and this machine's own two processes
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.benchmarks.inputs import losses, norms

KINDS = 40  # different curves; each run has a first value of its own, so that none is another's copy
PACKAGE = Path(__file__).parents[2]
ONE_THREAD = os.environ | {"POLARS_MAX_THREADS": "1", "PYTHONPATH": str(PACKAGE)}


class Cost(NamedTuple):
    """Seconds elapsed, processor seconds of the call and its processes, the most MB of memory of one of them."""

    elapsed: float
    processor: float
    memory: float


def bodies(steps: int) -> list[tuple[float, list[str]]]:
    """Learning rates, and the rows of a run with each: those above 0.1 explode."""
    rng = np.random.default_rng(7)
    made = []
    for kind in range(KINDS):
        rate = float(10 ** rng.uniform(-4, 0))
        norm, loss = norms(steps, kind), losses(steps, kind)
        if rate > 0.1:
            norm = norm * 10 ** (np.maximum(0, np.arange(steps) - 0.7 * steps) / steps * 10)
        rows = [{"step": s, "train_loss": loss[s], "grad_norm": norm[s], "lr": rate} for s in range(steps)]
        made.append((rate, [json.dumps(row) + "\n" for row in rows]))
    return made


def make_runs(root: Path, runs: int, steps: int) -> None:
    """Runs three folders deep, each with its settings."""
    kinds = bodies(steps)
    for run in range(runs):
        rate, rows = kinds[run % KINDS]
        folder = root / f"team{run % 7}" / f"sweep{run % 97:02d}" / f"run{run:05d}"
        folder.mkdir(parents=True, exist_ok=True)
        first = json.dumps({"step": 0, "train_loss": 10 + run * 1e-6, "grad_norm": 1.0, "lr": rate}) + "\n"
        (folder / "metrics.jsonl").write_text("".join([first, *rows[1:]]))
        (folder / "hparams.yaml").write_text(f"lr: {rate}\nseed: {run}\nwidth: {64 << run % 3}\n")


def memory_of_group(group: int, most: list[float], stop: threading.Event) -> None:
    """Keep the most memory that one process of a group had, in MB."""
    page = os.sysconf("SC_PAGE_SIZE")
    while not stop.wait(0.1):
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if os.getpgid(int(process.name)) == group:
                    most[0] = max(most[0], int((process / "statm").read_text().split()[1]) * page / 1e6)
            except (OSError, ValueError):
                continue


def cost(*words: str | Path) -> Cost:
    """Call `gradtrend` once."""
    command = [sys.executable, "-m", "gradtrend", *map(str, words)]
    most, stop = [0.0], threading.Event()
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=ONE_THREAD, start_new_session=True)
    watch = threading.Thread(target=memory_of_group, args=(process.pid, most, stop))
    watch.start()
    _, status, used = os.wait4(process.pid, 0)
    stop.set()
    watch.join()
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"failed: {' '.join(command)}")
    return Cost(time.perf_counter() - start, used.ru_utime + used.ru_stime, most[0])


def show(what: str, cost: Cost, runs: int, more: str = "") -> None:
    print(
        f"{what:34}{cost.elapsed:8.2f} s  {runs / cost.elapsed:8.0f} runs/s  {cost.processor:8.2f} s of processor"
        f"{cost.memory:7.0f} MB  {more}",
        flush=True,
    )


def here(root: Path, runs: int, scratch: Path) -> None:
    """A first scan, a second one, and four shards and their merge."""
    state = scratch / "scan.state"
    first = cost("scan", root, "--state", state, "-o", scratch / "all.jsonl")
    show("scan", first, runs)
    again = min((cost("scan", root, "--state", state) for _ in range(3)), key=lambda cost: cost.elapsed)
    show("the same, nothing changed", again, runs, f"x{first.elapsed / again.elapsed:.0f}")
    changed = next(root.rglob("metrics.jsonl"))
    with changed.open("a") as log:
        log.write(json.dumps({"step": 10**6, "train_loss": 1.0, "grad_norm": 1.0}) + "\n")
    show("the same, one run changed", cost("scan", root, "--state", state, "-o", scratch / "all.jsonl"), runs)
    shards = [scratch / f"shard{number}.jsonl" for number in range(1, 5)]
    for number, shard in enumerate(shards, 1):
        show(f"shard {number}/4", cost("scan", root, "--shard", f"{number}/4", "-o", shard), runs // 4)
    show("merge of four", cost("scan", "--merge", *shards, "-o", scratch / "merged.jsonl"), runs)
    same = (scratch / "merged.jsonl").read_bytes() == (scratch / "all.jsonl").read_bytes()
    print(f"merged shards and one scan: {'the same bytes' if same else 'NOT the same'}")


@contextmanager
def cluster(workers: int, scratch: Path) -> Iterator[str]:
    """A scheduler and so many workers of one thread each, as processes; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    commands = [["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]]
    commands += [
        ["worker", address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(scratch / f"worker{number}")]
        for number in range(workers)
    ]
    started = [
        subprocess.Popen([sys.executable, "-m", "dask", *words], env=ONE_THREAD, stderr=subprocess.DEVNULL)
        for words in commands
    ]
    try:
        wait_for(address, workers)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def wait_for(address: str, workers: int) -> None:
    """Wait until the workers have come, and have loaded what they need."""
    from distributed import Client

    with Client(address, timeout=60, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=60)
        client.run(warm)


def warm() -> None:
    import gradtrend.pipeline.scan.engines  # noqa: F401


def on_dask(root: Path, runs: int, scratch: Path) -> None:
    """One worker, two, and two processes without Dask, twice each in turn; the best of each counts."""
    best: dict[str, Cost] = {}
    for _ in range(2):
        for workers in (1, 2):
            with cluster(workers, scratch) as address:
                words = ("--engine", "dask", "--scheduler", address, "-o", scratch / "dask.jsonl")
                keep(best, f"Dask, workers: {workers}", cost("scan", root, *words))
        keep(best, "two processes of its own", cost("scan", root, "--processes", "2", "-o", scratch / "own.jsonl"))
    for what, taken in best.items():
        show(what, taken, runs)
    one, two, own = (taken.elapsed for taken in best.values())
    same = (scratch / "dask.jsonl").read_bytes() == (scratch / "own.jsonl").read_bytes()
    print(f"two workers against one: x{one / two:.2f}; against two processes of its own: {two / own - 1:+.0%}")
    print(f"records: {'the same bytes' if same else 'NOT the same'}")


def keep(best: dict[str, Cost], what: str, taken: Cost) -> None:
    if what not in best or taken.elapsed < best[what].elapsed:
        best[what] = taken


def main(words: Sequence[str] | None = None) -> None:
    """Make the runs where they are not there yet, and print what scans of them cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--dask", action="store_true")
    given = parser.parse_args(words)
    root = Path(tempfile.gettempdir()) / f"gradtrend-scan-{given.runs}-{given.steps}"
    if not root.exists():
        make_runs(root, given.runs, given.steps)
    with tempfile.TemporaryDirectory() as scratch:
        (on_dask if given.dask else here)(root, given.runs, Path(scratch))


if __name__ == "__main__":
    main()
