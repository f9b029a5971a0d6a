"""The commands on addresses of an object store: as on a folder, and nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from tests.places import EXPLODING, ROOT, RUNS
from tests.processes import SOURCE
from tests.remote import BUCKET, S3, gradtrend, proxy_before, rows, s3_server

pytestmark = pytest.mark.slow
AT = f"s3://{BUCKET}"
STORES = ("lightly", "tensorboard", "wandb", "trackio", "dvclive")


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        for folder in STORES:
            server.put_folder(RUNS / folder, f"all/{folder}")
        for i in range(3):
            server.put(f"large/run{i}/metrics.jsonl", rows(6000, i))
        yield server


@pytest.fixture
def environment(s3: S3, tmp_path: Path) -> Mapping[str, str]:
    """What reaches the store, and a temporary folder of one's own."""
    room = tmp_path / "room"
    room.mkdir()
    return {**s3.environment, "TMPDIR": str(room), "COLUMNS": "100"}


def left_in(environment: Mapping[str, str]) -> list[str]:
    return [one.name for one in Path(environment["TMPDIR"]).iterdir() if one.name.startswith("gradtrend-")]


def report(done: subprocess.CompletedProcess[str], place: str) -> dict[str, object]:
    assert done.stdout, done.stderr
    assert "gradtrend-" not in done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout.replace(place, "PLACE"))
    return found


def test_all_kinds_of_stores_are_what_they_are_on_disk(environment: Mapping[str, str], tmp_path: Path) -> None:
    for folder in STORES:
        shutil.copytree(RUNS / folder, tmp_path / "all" / folder)
    remote = gradtrend("analyze", f"{AT}/all", "--format", "json", environment=environment)
    local = gradtrend("analyze", str(tmp_path / "all"), "--format", "json", environment=environment)
    found = report(remote, f"{AT}/all")
    assert found == report(local, str(tmp_path / "all"))
    assert len(found["runs"]) > 10  # type: ignore[arg-type]
    assert remote.returncode == local.returncode
    assert not left_in(environment)


def test_a_store_of_files_and_a_database_that_is_written_to(
    s3: S3, environment: Mapping[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "tracking"
    write_file_store(folder / "mlruns")
    shutil.copy(EXPLODING / "mlflow.db", folder / "mlflow.db")
    with closing(sqlite3.connect(folder / "mlflow.db")) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("update metrics set value = value * 2 where key = 'train_loss'")
        connection.commit()
        assert (folder / "mlflow.db-wal").stat().st_size
        s3.put_folder(folder, "tracking")
        local = gradtrend("analyze", str(folder), "--format", "json", environment=environment)
    remote = gradtrend("analyze", f"{AT}/tracking", "--format", "json", environment=environment)
    found = report(remote, f"{AT}/tracking")
    assert found == report(local, str(folder))
    assert len(found["runs"]) == 4  # type: ignore[arg-type]
    alone, there = (
        gradtrend("analyze", f"{place}/mlruns", "--run-id", "2" * 32, environment=environment).stdout
        for place in (f"{AT}/tracking", str(folder))
    )
    assert "2" * 32 in alone
    assert alone == there.replace(str(folder), f"{AT}/tracking")


def write_file_store(mlruns: Path) -> None:
    """MLflow's `mlruns/` with three runs, the metrics of which are too long for the first bytes."""
    (mlruns / "0").mkdir(parents=True)
    (mlruns / "0" / "meta.yaml").write_text("experiment_id: '0'\nname: Default\nlifecycle_stage: active\n")
    for i in range(3):
        run = mlruns / "0" / (str(i) * 32)
        for name in ("metrics", "params", "tags"):
            (run / name).mkdir(parents=True)
        (run / "meta.yaml").write_text(
            f"run_id: '{run.name}'\nrun_name: fit{i}\nexperiment_id: '0'\nlifecycle_stage: active\nstatus: 3\n"
            f"start_time: {1700000000000 + i}\n"
        )
        (run / "tags" / "mlflow.runName").write_text(f"fit{i}")
        for metric in ("grad_norm", "loss"):
            lines = (f"{1700000000000 + step} {1 + (step * 7 + i) % 5 / 9} {step}\n" for step in range(5000))
            (run / "metrics" / metric).write_text("".join(lines))


def test_large_logs_are_fetched_by_the_processes_that_read_them(environment: Mapping[str, str]) -> None:
    done = gradtrend("analyze", f"{AT}/large", f"{AT}/all/lightly", environment=environment)
    assert "run2" in done.stdout
    assert "Traceback" not in done.stderr
    assert not left_in(environment)


def test_series_and_its_table(environment: Mapping[str, str], tmp_path: Path) -> None:
    table = tmp_path / "values.csv"
    done = gradtrend("series", f"{AT}/large/run1", "-o", str(table), environment=environment)
    assert done.returncode == 0
    assert table.read_text().count("\n") == 2 * 6000 + 1
    assert f"{AT}/large/run1" in table.read_text()


def test_what_the_page_says_of_remote_logs(s3: S3, environment: Mapping[str, str], tmp_path: Path) -> None:
    section = (ROOT / "docs" / "remote.md").read_text()
    calls = [line.partition("#")[0].split()[1:] for line in section.splitlines() if line.startswith("gradtrend ")]
    ours = [call for call in calls if any(f"{AT}/" in word for word in call)]
    assert len(ours) >= 3
    s3.put_folder(EXPLODING, "runs/exploding")
    s3.put("runs/steady/metrics.jsonl", rows(50))
    for call in ours:
        done = gradtrend(*call, environment=environment, folder=tmp_path)
        assert done.returncode in (0, 1), done.stderr
        assert done.stdout
    assert (tmp_path / "values.csv").is_file()


def test_captured_steps_are_to_be_copied_first(environment: Mapping[str, str]) -> None:
    for words in (("replay", f"{AT}/large"), ("analyze", "--replay", f"{AT}/large")):
        done = gradtrend(*words, environment=environment)
        assert done.returncode == 3
        assert "Copy the run here first" in done.stdout + done.stderr


def test_a_signature_and_a_password_stand_in_no_report(environment: Mapping[str, str]) -> None:
    for address in ("http://127.0.0.1:9/a.csv?sig=secret", "sftp://me:secret@127.0.0.1:9/runs"):
        for more in (("--format", "json"), ("--replay",)):
            done = gradtrend("analyze", address, *more, environment=environment)
            assert done.returncode == 3
            assert "secret" not in done.stdout + done.stderr
            assert "Traceback" not in done.stderr


def test_one_address_of_several_that_is_wrong(environment: Mapping[str, str]) -> None:
    done = gradtrend("analyze", f"{AT}/large/run0", "s3://no-such-bucket/a", environment=environment)
    assert done.returncode == 3
    assert f"{AT}/large/run0: stable" in done.stdout
    assert "there is no bucket no-such-bucket" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_credentials_of_a_profile_by_boto3(environment: Mapping[str, str], tmp_path: Path) -> None:
    pytest.importorskip("boto3")
    (tmp_path / "credentials").write_text("[lab]\naws_access_key_id = a\naws_secret_access_key = b\n")
    without = {name: value for name, value in environment.items() if "KEY" not in name}
    files = {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"), "AWS_CONFIG_FILE": str(tmp_path / "none")}
    done = gradtrend("analyze", f"{AT}/large/run0", environment=without | files | {"AWS_PROFILE": "lab"})
    assert done.returncode == 0, done.stderr
    for profile in ({}, {"AWS_PROFILE": "none"}):
        neither = gradtrend("analyze", f"{AT}/large/run0", environment=without | files | profile)
        assert neither.returncode == 3
        assert "Traceback" not in neither.stderr
        assert f"{AT}/large/run0: error: no credentials found" in neither.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("answered", [0, 1], ids=["while it lists", "while it fetches"])
def test_nothing_is_left_where_it_is_ended(
    answered: int, number: signal.Signals, s3: S3, environment: Mapping[str, str]
) -> None:
    with proxy_before(s3.port) as proxy:
        hangs = lambda path: proxy.count("run2/metrics.jsonl") > answered and setattr(proxy, "hang", 10**6)  # noqa: E731
        proxy.of, proxy.before = "run2/metrics.jsonl", hangs
        there = {**environment, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}", "PYTHONPATH": str(SOURCE)}
        process = subprocess.Popen(
            [sys.executable, "-m", "gradtrend", "analyze", f"{AT}/large"],
            env=os.environ | there,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until = time.monotonic() + 60
        while proxy.count("run2/metrics.jsonl") <= answered and time.monotonic() < until:
            time.sleep(0.05)
        assert left_in(environment)
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == (130 if number == signal.SIGINT else 143)
    assert "Traceback" not in errors
    assert not left_in(environment)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_nothing_is_left_where_memory_is_limited(environment: Mapping[str, str]) -> None:
    command = f"ulimit -v 6000000; exec {sys.executable} -m gradtrend analyze {AT}/large/run0"
    done = subprocess.run(
        ["bash", "-c", command],
        env=os.environ | environment | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 3), done.stderr
    assert not left_in(environment)


def test_a_program_has_reports_that_read_their_logs_again(environment: Mapping[str, str]) -> None:
    code = (
        "import gradtrend, os\n"
        f"runs = list(gradtrend.analyze_all('{AT}/large'))\n"
        f"assert [run.run for run in runs] == ['{AT}/large/run%d' % i for i in range(3)], runs\n"
        "assert runs[1].series_frame().height == 12000\n"
        f"one = gradtrend.analyze('{AT}/large/run2/metrics.jsonl')\n"
        f"assert one.run == '{AT}/large/run2/metrics.jsonl'\n"
        "try:\n"
        f"    gradtrend.analyze('{AT}/large')\n"
        "except gradtrend.InputError as error:\n"
        "    print(error.message)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"{AT}/large: holds 3 runs\n", done.stderr
    assert not left_in(environment)
