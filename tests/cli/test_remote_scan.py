"""`gradtrend scan` of a bucket: as of a folder, and what has not changed is not fetched again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.remote import BUCKET, S3, Proxy, gradtrend, proxy_before, rows, s3_server

pytestmark = pytest.mark.slow
AT = f"s3://{BUCKET}/runs"
MANY = 160  # runs, more than are read together whatever their places


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        for run in range(MANY):
            server.put(f"runs/sweep{run % 7}/run{run}/metrics.jsonl", rows(40, run))
            server.put(f"runs/sweep{run % 7}/run{run}/hparams.yaml", b"lr: %d\n" % run)
        yield server


def scan(s3: S3, tmp_path: Path, *words: str, proxy: Proxy | None = None) -> tuple[list[dict[str, Any]], str]:
    """The records of a scan with a state, and what was said."""
    to = {} if proxy is None else {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}"}
    environment: Mapping[str, str] = {**s3.environment, **to}
    records = tmp_path / "records.jsonl"
    done = gradtrend("scan", *words, "-o", str(records), environment=environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in records.read_text().splitlines()], done.stdout


def objects_in(requests: list[str]) -> set[str]:
    """The keys of the objects that were asked for, lists left out."""
    paths = (request.partition("?")[0] for request in requests)
    return {path.partition(f"{BUCKET}/")[2] for path in paths if path.partition(f"{BUCKET}/")[2]}


def test_a_bucket_is_scanned_as_a_folder_and_fetched_once(s3: S3, tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "state"))
    with proxy_before(s3.port) as proxy:
        first, said = scan(s3, tmp_path, AT, *state, proxy=proxy)
        assert len(objects_in(proxy.requests)) == 2 * MANY
        proxy.requests.clear()
        again, said_again = scan(s3, tmp_path, AT, *state, proxy=proxy)
        assert objects_in(proxy.requests) == set()
    assert (again, said_again) == (first, said)
    for record in first:
        assert record["hyperparameters"] == {"lr": int(record["run"].rpartition("run")[2])}
        assert record["size"]
        assert record["modified"]
    folder = tmp_path / "copy"
    for run in range(MANY):
        place = folder / f"sweep{run % 7}" / f"run{run}"
        place.mkdir(parents=True)
        (place / "metrics.jsonl").write_bytes(rows(40, run))
        (place / "hparams.yaml").write_text(f"lr: {run}\n")
    local, _ = scan(s3, tmp_path, str(folder))
    assert [r | {"run": r["run"].replace(str(folder), AT), "modified": None} for r in local] == [
        r | {"modified": None} for r in first
    ]


def test_only_what_has_changed_is_fetched(s3: S3, tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "state"))
    before, _ = scan(s3, tmp_path, AT, *state)
    s3.put("runs/sweep3/run3/metrics.jsonl", rows(80, 3))
    s3.put("runs/sweep4/run4/hparams.yaml", b"lr: 99\n")
    s3.put("runs/new/run0/metrics.jsonl", rows(40, 500))
    with proxy_before(s3.port) as proxy:
        after, _ = scan(s3, tmp_path, AT, *state, proxy=proxy)
        asked = objects_in(proxy.requests)
    s3.client().delete_object(Bucket=BUCKET, Key="runs/new/run0/metrics.jsonl")
    assert {"runs/sweep3/run3/metrics.jsonl", "runs/sweep4/run4/hparams.yaml", "runs/new/run0/metrics.jsonl"} <= asked
    assert {key.rpartition("/")[0] for key in asked} == {"runs/sweep3/run3", "runs/sweep4/run4", "runs/new/run0"}
    changed = {record["run"] for record in after if record not in before}
    assert changed == {f"{AT}/sweep3/run3", f"{AT}/sweep4/run4", f"{AT}/new/run0"}
    gone, _ = scan(s3, tmp_path, AT, *state)
    assert f"{AT}/new/run0" not in {record["run"] for record in gone}


def test_newer_runs_alone_are_fetched(s3: S3, tmp_path: Path) -> None:
    assert scan(s3, tmp_path, AT, "--newer-than", "2100-01-01")[0] == []
    assert len(scan(s3, tmp_path, AT, "--newer-than", "1d")[0]) == MANY


def test_shards_of_a_bucket_are_one_scan(s3: S3, tmp_path: Path) -> None:
    whole, _ = scan(s3, tmp_path, AT)
    parts = [scan(s3, tmp_path, AT, "--shard", f"{number}/3")[0] for number in (1, 2, 3)]
    assert all(parts)
    assert sorted(r["run"] for part in parts for r in part) == sorted(r["run"] for r in whole)


@pytest.mark.parametrize("size", [40, 4000])  # whole among the first bytes, and fetched when it is read
def test_what_could_not_be_fetched_is_read_by_the_next_scan(s3: S3, tmp_path: Path, size: int) -> None:
    state, at = ("--state", str(tmp_path / "state")), f"s3://{BUCKET}/busy{size}"
    for seed, log in enumerate(("one/a/metrics", "one/b/metrics", "two/a/metrics", "two/a/more")):
        s3.put(f"busy{size}/{log}.jsonl", rows(size + 10 * seed, seed))
    whole, _ = scan(s3, tmp_path, at)
    with proxy_before(s3.port) as proxy:
        proxy.of = "two/a/more.jsonl"
        if size > 40:
            proxy.before = lambda path: setattr(proxy, "status", 503 if proxy.count(proxy.of) > 1 else 0)
        else:
            proxy.status = 503
        part, said = scan(s3, tmp_path, at, *state, proxy=proxy)
    (missed,) = [record for record in part if record.get("failure")]
    assert missed["run"] == f"{at}/two/a/more.jsonl"
    assert missed["failure"] == f"{at}/two/a/more.jsonl: the store is too busy after 6 tries"
    assert missed["hint"] == "Try again later."
    assert "the store is" in said
    assert len(part) == len({record["run"] for record in part})
    assert scan(s3, tmp_path, at, *state)[0] == whole
