"""A real tracking server on localhost: every point, choosing a run, clear errors; its sqlite store directly."""

from __future__ import annotations

import math
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest

from gradtrend.errors import InputError
from gradtrend.ingest.formats.mlflow import reader as mlflow_reader
from gradtrend.ingest.formats.mlflow import server as mlflow_server
from gradtrend.ingest.formats.mlflow import sqlite
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions
from tests.ingest.readings import long_table, read_one
from tests.places import EXPLODING

POINTS = 1200  # more than one batch of 1000, the most that MLflow logs at once
READY_SECONDS = 60.0


@dataclass(frozen=True)
class Server:
    address: str
    database: Path
    ids: dict[str, str]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_until_ready(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server did not become ready")


def log_runs(address: str) -> dict[str, str]:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client = MlflowClient(tracking_uri=address)
    experiment = client.create_experiment("toy")
    ids = {}
    for number, name in enumerate(("old", "empty", "long", "deleted")):
        start = 1_700_000_000_000 + 1000 * number
        run = client.create_run(experiment, start_time=start, run_name=name).info.run_id
        ids[name] = run
        if name == "empty":
            continue
        count = POINTS if name == "long" else 5
        values = [1.0 + step for step in range(count)]
        values[-2:] = [math.inf, math.nan]
        metrics = [Metric("train/grad norm", value, start + step, step) for step, value in enumerate(values)]
        metrics += [Metric("loss", -math.inf if step == 3 else 0.5, start + step, step) for step in range(5)]
        metrics += [
            Metric("loss", 0.25, start + 9, 4),
            Metric("unstepped", 1.0, start, 0),
            Metric("unstepped", 2.0, start + 1, 0),
        ]
        for begin in range(0, len(metrics), 1000):
            client.log_batch(run, metrics=metrics[begin : begin + 1000])
        client.log_batch(run, params=[Param("model_args/lr", "0.01"), Param("precision", "16-mixed")])
    client.delete_run(ids["deleted"])
    return ids


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("mlflow")
    database, port = folder / "mlflow.db", free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{database}"]
    command += ["--artifacts-destination", str(folder / "artifacts"), "--host", "127.0.0.1", "--port", str(port)]
    command += ["--workers", "1"]
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        wait_until_ready(address, process)
        yield Server(address, database, log_runs(address))
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(5)


def read_server(address: str, run_id: str | None = None) -> Reading:
    return read_one(mlflow_server.read, Path(address), run_id)


def series(reading: Reading, metric: str) -> pl.DataFrame:
    return long_table(reading).filter(pl.col("metric") == metric)


def test_every_point_of_the_newest_run(server: Server) -> None:
    reading = read_server(server.address)
    norm = series(reading, "train/grad norm")
    assert norm["step"].to_list() == list(range(POINTS))
    assert norm["value"][POINTS - 2] == math.inf
    assert math.isnan(norm["value"][POINTS - 1])
    assert series(reading, "loss")["value"].to_list() == [0.5, 0.5, 0.5, -math.inf, 0.5, 0.25]
    assert series(reading, "loss")["step"].to_list() == [0, 1, 2, 3, 4, 4]
    assert series(reading, "unstepped")["step"].to_list() == [None, None]
    assert reading.started == 1_700_000_002.0
    assert (reading.settings.learning_rate, reading.settings.precision) == (0.01, "16-mixed")
    assert reading.run is not None
    assert (reading.run.name, reading.run.experiment[-1]) == ("long", "toy")


def test_a_real_run_on_a_server_is_judged_as_from_its_files(server: Server) -> None:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    source = EXPLODING
    with sqlite3.connect(f"file:{source / 'mlflow.db'}?mode=ro", uri=True) as database:
        metrics = database.execute("SELECT key, value, timestamp, step, is_nan FROM metrics").fetchall()
        params = database.execute("SELECT key, value FROM params").fetchall()
    database.close()
    client = MlflowClient(tracking_uri=server.address)
    run = client.create_run("0", start_time=1_600_000_000_000, run_name="real").info.run_id
    logged = [Metric(key, math.nan if is_nan else value, time, step) for key, value, time, step, is_nan in metrics]
    for begin in range(0, len(logged), 1000):
        client.log_batch(run, metrics=logged[begin : begin + 1000])
    for begin in range(0, len(params), 100):
        client.log_batch(run, params=[Param(*param) for param in params[begin : begin + 100]])
    (report,), failures = analyze_paths((server.address,), AnalyzeOptions(run_ids=(run,)))
    (expected,), _ = analyze_paths((str(source / "metrics.jsonl"),), AnalyzeOptions())
    assert failures == ()
    assert (report.verdict, report.nonfinite) == (expected.verdict, expected.nonfinite)
    assert [(s.points, s.trend, s.onset_step) for s in report.series if s.role == "grad_norm"] == [
        (s.points, s.trend, s.onset_step) for s in expected.series if s.role == "grad_norm"
    ]
    assert report.settings.framework == "lightly-train"
    (none,) = analyze_paths((server.address,), AnalyzeOptions(run_ids=("nosuchrun",)))[1]
    assert "no run nosuchrun" in none.message


@pytest.mark.parametrize("wanted", ["id", "prefix", "name"])
def test_a_run_as_asked_for(server: Server, wanted: str) -> None:
    run = server.ids["old"]
    reading = read_server(server.address, {"id": run, "prefix": run[:12], "name": "old"}[wanted])
    assert series(reading, "train/grad norm").height == 5


@pytest.mark.parametrize("unknown", ["nosuchrun", "0" * 32])
def test_unknown_run_lists_what_is_there(server: Server, unknown: str) -> None:
    with pytest.raises(InputError, match=f"no run {unknown}") as caught:
        read_server(server.address, unknown)
    assert server.ids["long"] in (caught.value.hint or "")


def test_each_run_and_a_page_of_one(server: Server) -> None:
    reports, failures = analyze_paths((server.address,), AnalyzeOptions(experiment="toy"))
    assert failures == ()
    assert [report.name for report in reports] == ["old", "long"]
    assert [report.run for report in reports] == [f"{server.address}/{server.ids[name]}" for name in ("old", "long")]
    page = f"{server.address}/#/experiments/1/runs/{server.ids['long']}/model-metrics"
    ((report,), _) = analyze_paths((page,), AnalyzeOptions())
    assert (report.run, report.name) == (page, "long")
    ((deleted,), _) = analyze_paths((server.address,), AnalyzeOptions(run_ids=(server.ids["deleted"],)))
    assert deleted.name == "deleted"
    ((newest,), _) = analyze_paths((server.address,), AnalyzeOptions(experiment="toy", newest=True))
    assert newest.name == "long"
    assert "toy" in (analyze_paths((server.address,), AnalyzeOptions(experiment="tony"))[1][0].hint or "")


def test_the_server_s_database_read_directly_is_the_same(server: Server) -> None:
    before = {path.name: path.read_bytes() for path in server.database.parent.glob("mlflow.db*")}
    (reading,) = sqlite.read(server.database, ReadOptions())
    by = ["metric", "time", "step", "value"]
    assert long_table(reading).sort(by).equals(long_table(read_server(server.address)).sort(by))
    assert reading.settings == read_server(server.address).settings
    assert {path.name: path.read_bytes() for path in server.database.parent.glob("mlflow.db*")} == before


def test_no_server_there_is_a_quick_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    begin = time.monotonic()
    with pytest.raises(InputError, match="no answer"):
        read_server(f"http://127.0.0.1:{free_port()}")
    assert time.monotonic() - begin < 20
    assert list(tmp_path.iterdir()) == []


def test_another_server_than_mlflow(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        with pytest.raises(InputError, match="cannot read from"):
            read_server(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(5)


def test_claims_addresses_only() -> None:
    claims = mlflow_reader.claims
    assert claims(Path("http://host:5000"), b"")
    assert claims(Path("https://host/prefix"), b"")
    assert not claims(Path("runs/http"), b"")


def test_a_locked_database(server: Server, tmp_path: Path) -> None:
    copy = tmp_path / "mlflow.db"
    copy.write_bytes(server.database.read_bytes())
    holder = sqlite3.connect(copy, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(InputError, match="locked"):
            sqlite.read(copy, ReadOptions())
    finally:
        holder.close()


@pytest.mark.parametrize(
    "address", ["http://:5000", "http://localhost:port", "http://[::1", "http://no.such.host.invalid"]
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(InputError, match="cannot read from"):
        read_server(address)


@pytest.mark.parametrize(
    "content", [b"[]", b"3", b"null", b'{"experiments": 3}', b'{"experiments": [3]}', b"<html>", b""]
)
def test_a_server_that_answers_nonsense(content: bytes) -> None:
    class Nonsense(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815  the name that the server looks for

    with ThreadingHTTPServer(("127.0.0.1", 0), Nonsense) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(InputError):
            mlflow_server.read(Path(f"http://127.0.0.1:{server.server_port}"), ReadOptions())
        server.shutdown()
