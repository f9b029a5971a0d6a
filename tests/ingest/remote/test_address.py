"""Which addresses are of remote logs; all others are what they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.errors import GradtrendError, InputError
from gradtrend.ingest import is_remote
from gradtrend.ingest.remote.address import further_address, remote_address

REMOTE = [
    ("s3://bucket", "obstore", "bucket", "", "s3://bucket"),
    ("s3://bucket/", "obstore", "bucket", "", "s3://bucket"),
    ("S3://bucket/runs/a/", "obstore", "bucket", "runs/a", "S3://bucket/runs/a"),
    ("s3a://bucket/w%20x#1", "obstore", "bucket", "w%20x#1", "s3a://bucket/w%20x#1"),
    ("gs://bucket/a b/c", "obstore", "bucket", "a b/c", "gs://bucket/a b/c"),
    ("az://box/runs", "obstore", "box", "runs", "az://box/runs"),
    ("azure://box/runs", "obstore", "box", "runs", "azure://box/runs"),
    (
        "abfss://box@account.dfs.core.windows.net/runs",
        "obstore",
        "box@account.dfs.core.windows.net",
        "runs",
        "abfss://box@account.dfs.core.windows.net/runs",
    ),
    ("https://host/a/metrics.jsonl", "web", "host", "", "https://host/a/metrics.jsonl"),
    ("http://host:8000/train.log.gz", "web", "host:8000", "", "http://host:8000/train.log.gz"),
    ("https://me:secret@host/a.csv?sig=secret#x", "web", "host", "", "https://host/a.csv"),
    ("https://host/events.out.tfevents.1.host", "web", "host", "", "https://host/events.out.tfevents.1.host"),
    ("hf://datasets/me/runs/a/", "fsspec", "", "", "hf://datasets/me/runs/a"),
    ("memory://runs", "fsspec", "", "", "memory://runs"),
    ("sftp://me:secret@host/runs", "fsspec", "", "", "sftp://me@host/runs"),
    ("sftp://me:se@secret@host", "fsspec", "", "", "sftp://me@host"),
    ("sftp://me:se/secret@host:22/a@b", "fsspec", "", "", "sftp://me@b"),
    ("sftp://host:22/a@b", "fsspec", "", "", "sftp://host:22/a@b"),
    ("s3://KEY:secret@bucket/runs", "obstore", "bucket", "runs", "s3://bucket/runs"),
    ("az://box/runs?sv=1&sig=secret", "obstore", "box", "runs?sv=1&sig=secret", "az://box/runs"),
    ("s3://bucket/what?/a", "obstore", "bucket", "what?/a", "s3://bucket/what?/a"),
]
OTHER = [
    "runs/a",
    "/runs/a",
    "-",
    "",
    "C:\\runs",
    "C:/runs",
    "file:///srv/mlruns",
    "sqlite:///mlflow.db",
    "runs:/0123456789abcdef0123456789abcdef",
    "mlflow-artifacts:/0/abc",
    "http://localhost:5000",
    "https://host/mlflow/#/experiments/1/runs/0123456789abcdef0123456789abcdef",
    "http://host:5000/?x=a.csv",
    "http://",
    "https://[/a.csv",
    "nonsense://host/a",
    "://a",
]


@pytest.mark.parametrize(("text", "by", "bucket", "key", "shown"), REMOTE)
def test_remote_addresses(text: str, by: str, bucket: str, key: str, shown: str) -> None:
    address = remote_address(text)
    assert address is not None
    assert (address.by, address.bucket, address.key, address.shown) == (by, bucket, key, shown)
    assert "secret" not in address.shown
    assert is_remote(text)


@pytest.mark.parametrize("text", OTHER)
def test_other_addresses_stay_what_they_were(text: str) -> None:
    assert not is_remote(text)


def test_a_file_of_a_web_server_may_be_a_server_of_mlflow_by_its_source() -> None:
    assert remote_address("http://host/mlflow.db", "mlflow") is None


def test_an_address_without_a_bucket_is_an_error() -> None:
    with pytest.raises(InputError, match="names no bucket"):
        remote_address("s3:///runs")


def test_what_fsspec_alone_knows_is_remote_and_this_machine_is_not() -> None:
    pytest.importorskip("fsspec")
    address = further_address("lakefs://repository/main/runs")
    assert address is not None
    assert address.by == "fsspec"
    for scheme in ("file", "local", "filecache", "data", "nonsense"):
        assert further_address(f"{scheme}://host/a") is None


@given(st.one_of(st.text(), st.tuples(st.sampled_from([one[0] for one in REMOTE]), st.text()).map("".join)))
def test_any_text_is_an_address_or_none_or_an_error_for_people(text: str) -> None:
    try:
        address = remote_address(text)
    except GradtrendError:
        return
    if address is not None:
        assert address.given in text or address.given == text.rstrip("/")
        assert not {"", ".."} & {address.scheme}
        assert all(address.parts)
