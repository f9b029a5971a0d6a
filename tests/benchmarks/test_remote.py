"""600 small runs in an object store, against getting them into a folder and analysing that."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.remote import BUCKET, S3, gradtrend, rows, s3_server

pytestmark = pytest.mark.benchmark

RUNS = 600
STEPS = 285  # 20 kB
_GET = """
import sys, obstore, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from obstore.store import S3Store
store = S3Store(sys.argv[1], client_options={"allow_http": True})
folder = Path(sys.argv[2])
def get(key):
    target = folder / key
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(obstore.get(store, key).bytes())
keys = [one["path"] for page in obstore.list(store, "runs", chunk_size=1000) for one in page]
with ThreadPoolExecutor(32) as pool:
    list(pool.map(get, keys))
"""


def _seconds(call: Callable[[], object]) -> tuple[float, float]:
    """How long a process takes, and how much time of a processor: other load on the machine must not count. The
    server's is not in it.
    """
    start, used = time.monotonic(), sum(os.times()[2:4])
    call()
    return time.monotonic() - start, sum(os.times()[2:4]) - used


def _put_runs(server: S3) -> None:
    client = server.client()
    with ThreadPoolExecutor(8) as pool:
        put = lambda i: client.put_object(Bucket=BUCKET, Key=f"runs/run{i:03}/metrics.jsonl", Body=rows(STEPS, i))  # noqa: E731
        list(pool.map(put, range(RUNS)))


def test_600_small_runs_take_little_longer_than_getting_and_analysing_them(tmp_path: Path) -> None:
    with s3_server() as server:
        _put_runs(server)
        environment = {**os.environ, **server.environment}
        ratios = []
        for attempt in range(3):
            folder = tmp_path / str(attempt)
            get = [sys.executable, "-c", _GET, BUCKET, str(folder)]
            there = str(folder / "runs")
            fetched = _seconds(lambda get=get: subprocess.run(get, env=environment, check=True))
            analysed = _seconds(lambda there=there: gradtrend("analyze", there, environment=server.environment))
            remote = _seconds(lambda: gradtrend("analyze", f"s3://{BUCKET}/runs", environment=server.environment))
            both = [remote[i] / (fetched[i] + analysed[i]) for i in (0, 1)]
            print(
                f"getting {fetched[0]:.2f} s ({fetched[1]:.2f} of a processor), analysing {analysed[0]:.2f} s"
                f" ({analysed[1]:.2f}), remote {remote[0]:.2f} s ({remote[1]:.2f}): {both[0]:.2f} times ({both[1]:.2f})"
            )
            ratios.append(both)
        assert min(wall for wall, _ in ratios) <= 1.5
        assert min(processor for _, processor in ratios) <= 1.5
