"""Logs behind a real S3 API on this machine, and behind what goes wrong on the way to one."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gradtrend.errors import InputError
from gradtrend.ingest import Choice, ReadOptions, RunFiles, find_runs, load_run, localized, read_runs, shown_path
from gradtrend.ingest.remote import fetch, mirror, object_store
from gradtrend.model.runlog import RunLog
from tests.places import EXPLODING
from tests.remote import BUCKET, S3, Proxy, error_body, proxy_before, rows, s3_server

pytestmark = pytest.mark.slow
LONG = rows(4000)  # beyond the first bytes of it
AT = f"s3://{BUCKET}"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        server.put_folder(EXPLODING, "exploding")
        server.put("long/metrics.jsonl", LONG)
        for i in range(40):
            server.put(f"many/run{i:02}/metrics.jsonl", rows(20, i))
        yield server


@pytest.fixture
def proxy(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """What the client goes through; nothing goes wrong by itself."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    with proxy_before(s3.port) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{between.port}")
        yield between


def logs_of(files: RunFiles) -> list[RunLog]:
    with localized(files) as local:
        return [local.told_log(load_run(run, Choice())) for run in read_runs(local.files, ReadOptions(), Choice())]


def bytes_of(files: RunFiles) -> bytes:
    with localized(files) as local:
        return local.files.logs[0].path.read_bytes()


def on_disk(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


def test_a_run_is_what_it_is_in_a_folder(proxy: Proxy) -> None:
    ((log,), (local,)) = (
        [log for files in find_runs(path) for log in logs_of(files)] for path in (f"{AT}/exploding/", str(EXPLODING))
    )
    assert log.run == f"{AT}/exploding"
    assert log.table.equals(local.table)
    assert replace(log, table=None, run="", folder=None) == replace(local, table=None, run="", folder=None)


def test_a_log_by_itself_has_the_settings_beside_it(proxy: Proxy) -> None:
    (files,) = find_runs(f"{AT}/exploding/metrics.jsonl")
    (log,), (local,) = logs_of(files), logs_of(find_runs(str(EXPLODING / "metrics.jsonl"))[0])
    assert log.run == f"{AT}/exploding/metrics.jsonl"
    assert shown_path(files, files.logs[0].path) == f"{AT}/exploding/metrics.jsonl"
    assert log.sources == local.sources
    assert log.table.equals(local.table)


def test_a_long_log_takes_room_only_while_it_is_read(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "PIECE_BYTES", 50_000)
    (files,) = find_runs(f"{AT}/long")
    assert files.remote is not None
    log = files.logs[0].path
    assert log.stat().st_size == len(LONG)
    assert on_disk(log.parent) < len(LONG) / 2
    proxy.requests.clear()
    assert bytes_of(files) == LONG
    assert proxy.count("metrics.jsonl") == -(-(len(LONG) - 65536) // 50_000)  # what was there is not asked for again
    assert on_disk(log.parent) < len(LONG) / 2
    assert bytes_of(files) == LONG


def test_throttling_is_waited_for(proxy: Proxy) -> None:
    proxy.slow = 3
    assert bytes_of(find_runs(f"{AT}/long")[0]) == LONG


def test_throttling_without_end_is_left_and_told(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "MOST_TRIES", 3)
    proxy.slow = 10**6
    with pytest.raises(InputError, match=r"s3://training-logs/long: the store is too busy after 3 tries"):
        find_runs(f"{AT}/long")
    assert len(proxy.requests) == 3


def test_connections_that_are_cut_in_the_middle_are_made_again(proxy: Proxy) -> None:
    proxy.of, proxy.cut = "metrics.jsonl", 3
    assert bytes_of(find_runs(f"{AT}/long")[0]) == LONG


def test_connections_that_are_always_cut_are_left_and_told(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "MOST_TRIES", 3)
    monkeypatch.setattr(fetch, "MOST_TRIES", 3)
    (files,) = find_runs(f"{AT}/long")
    proxy.of, proxy.cut = "metrics.jsonl", 10**6
    proxy.requests.clear()
    with pytest.raises(InputError, match=r"s3://training-logs/long/metrics.jsonl: no whole answer in 3 tries"):
        bytes_of(files)
    assert len(proxy.requests) < 40


def test_a_server_that_says_nothing_is_left(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "SECONDS_TO_LIST", 1.0)
    proxy.hang = 10**6
    start = time.monotonic()
    with pytest.raises(InputError, match=r"s3://training-logs/long: not listed within 1 s"):
        find_runs(f"{AT}/long")
    assert time.monotonic() - start < 10


def test_a_fetch_that_does_not_end_is_left(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    (files,) = find_runs(f"{AT}/long")
    monkeypatch.setattr(fetch, "SECONDS_TO_FETCH", 1.0)
    proxy.hang = 10**6
    with pytest.raises(InputError, match=r"s3://training-logs/long: not fetched within 1 s"):
        bytes_of(files)


def test_requests_at_the_same_time_are_few(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "REQUESTS_AT_ONCE", 4)
    assert len(find_runs(f"{AT}/many")[0].logs) == 40
    assert 1 < proxy.most_at_once <= 4


def test_an_object_that_was_written_anew_is_read_as_the_newer(proxy: Proxy, s3: S3) -> None:
    s3.put("anew/metrics.jsonl", LONG)
    (files,) = find_runs(f"{AT}/anew")
    newer = rows(5000, 5)
    s3.put("anew/metrics.jsonl", newer)
    assert bytes_of(files) == newer
    shorter = rows(3000, 6)
    s3.put("anew/metrics.jsonl", shorter)
    assert bytes_of(files) == shorter


def test_states_of_an_object_are_never_mixed(proxy: Proxy, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "PIECE_BYTES", 50_000)
    s3.put("mixed/metrics.jsonl", LONG)
    (files,) = find_runs(f"{AT}/mixed")
    newer = rows(4000, 9)
    count = len(proxy.requests)

    def write_anew(path: str) -> None:
        if len(proxy.requests) == count + 3:
            s3.put("mixed/metrics.jsonl", newer)

    proxy.before = write_anew
    assert bytes_of(files) == newer


def test_an_object_that_changes_all_the_time_is_told(proxy: Proxy, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "PIECE_BYTES", 100_000)
    s3.put("restless/metrics.jsonl", LONG)
    (files,) = find_runs(f"{AT}/restless")
    proxy.before = lambda path: s3.put("restless/metrics.jsonl", rows(4000, len(proxy.requests)))
    with pytest.raises(InputError, match=r"restless/metrics.jsonl: changes all the time"):
        bytes_of(files)


def test_an_object_that_is_gone_is_told(proxy: Proxy, s3: S3) -> None:
    s3.put("gone/metrics.jsonl", LONG)
    (files,) = find_runs(f"{AT}/gone")
    s3.client().delete_object(Bucket=BUCKET, Key="gone/metrics.jsonl")
    with pytest.raises(InputError, match=r"s3://training-logs/gone/metrics.jsonl: is not there any more"):
        bytes_of(files)


@pytest.mark.parametrize(
    ("status", "code", "said", "hint"),
    [
        (403, "AccessDenied", "access denied", "AWS_ACCESS_KEY_ID"),
        (400, "ExpiredToken", "the credentials have expired", "Log in again"),
        (403, "InvalidAccessKeyId", "the credentials are not accepted", "AWS_ACCESS_KEY_ID"),
        (404, "NoSuchBucket", "there is no bucket training-logs", "Check the name"),
        (301, "PermanentRedirect", "the bucket lies in another region", "AWS_REGION"),
    ],
)
def test_refusals_say_what_is_wrong_and_what_to_do(proxy: Proxy, status: int, code: str, said: str, hint: str) -> None:
    proxy.status, proxy.body = status, error_body(code)
    with pytest.raises(InputError) as raised:
        find_runs(f"{AT}/long")
    assert said in raised.value.message
    assert raised.value.message.startswith("s3://training-logs/long: ")
    assert hint in (raised.value.hint or "")
    assert "\n" not in raised.value.message
    assert len(proxy.requests) <= 3


def test_one_object_that_may_not_be_read_is_told_beside_the_others(proxy: Proxy) -> None:
    proxy.of, proxy.status, proxy.body = "run07", 403, error_body("AccessDenied")
    (files,) = find_runs(f"{AT}/many")
    assert len(files.logs) == 39
    (passed,) = files.passed_over
    assert passed.unread
    assert "access denied" in passed.reason


def test_many_denied_objects_are_told_as_that_whatever_they_are_called(proxy: Proxy, s3: S3) -> None:
    for i in range(8):
        s3.put(f"named/m/metadata{i} expired/connect4/metrics.jsonl", rows(20, i))
    for i in range(4):
        s3.put(f"named/sound{i}/416/metrics.jsonl", rows(20, i))
    proxy.of, proxy.status, proxy.body = "connect4", 403, error_body("AccessDenied")
    (files,) = find_runs(f"{AT}/named")
    assert len(files.logs) == 4
    assert [one.reason for one in files.passed_over] == ["access denied (AccessDenied)"] * 8


def test_a_busy_store_is_no_log_that_was_cut_down(proxy: Proxy, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "MOST_TRIES", 2)
    s3.put("run-416/metrics.jsonl", LONG)
    (files,) = find_runs(f"{AT}/run-416")
    proxy.of, proxy.slow = "metrics.jsonl", 10**6
    with pytest.raises(InputError, match=r"run-416/metrics.jsonl: the store is too busy after 2 tries"):
        bytes_of(files)


def test_another_machine_fetches_a_share_by_what_it_is_sent(proxy: Proxy, tmp_path: Path) -> None:
    (files,) = find_runs(f"{AT}/exploding")
    (as_before,) = logs_of(files)
    sent = pickle.dumps(files)
    assert len(sent) < 20_000
    there = pickle.loads(sent)
    Path(there.remote.root).rename(tmp_path / "away")
    with localized(there) as local:
        here = local.files.folder
        assert here.is_dir()
        assert here.name == "exploding"
        assert here != files.folder
    assert not here.exists()
    (log,) = logs_of(there)
    assert replace(log, table=None) == replace(as_before, table=None)
    assert log.table.equals(as_before.table)


def test_a_key_that_is_no_path_is_told(proxy: Proxy, s3: S3) -> None:
    s3.put("hostile/../x/metrics.jsonl", LONG)
    s3.put("hostile/a/metrics.jsonl", LONG)
    with pytest.raises(InputError, match=r"hostile: holds a key that is no path"):
        find_runs(f"{AT}/hostile")
    assert find_runs(f"{AT}/hostile/a")


def test_nothing_at_an_address_is_told(proxy: Proxy) -> None:
    for path in (f"{AT}/nothing", f"{AT}/nothing/metrics.jsonl"):
        with pytest.raises(InputError, match="nothing lies at or below this address"):
            find_runs(path)


def test_one_of_several_runs_of_a_log_is_asked_for_by_its_number(proxy: Proxy, s3: S3) -> None:
    s3.put("two/metrics.jsonl", rows(60, 1) + rows(60, 2))
    (both,) = find_runs(f"{AT}/two/metrics.jsonl")
    names = [log.run for log in logs_of(both)]
    assert names == [f"{AT}/two/metrics.jsonl#1", f"{AT}/two/metrics.jsonl#2"]
    (second,) = find_runs(names[1])
    assert [log.run for log in logs_of(second)] == [names[1]]
