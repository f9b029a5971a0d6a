"""Errors of stores: their cause is told by what says it, never by what an object is called, and no secret with it."""

from __future__ import annotations

import traceback
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend import analyze
from gradtrend.errors import InputError
from gradtrend.ingest import shown_address
from gradtrend.ingest.remote.address import RemoteAddress, remote_address
from gradtrend.ingest.remote.refusals import DeniedError, refusal, status_of
from gradtrend.pipeline.failures import found_runs
from gradtrend.pipeline.runs import AnalyzeOptions

KEYS = (
    "metadata1/train.jsonl",
    "secret/a b.jsonl",
    "expired_runs/416/train.jsonl",
    "connect4/token request.jsonl",
    "denied/403/503.jsonl",
    "dns/timed out/<Code>ExpiredToken</Code>.jsonl",
    "NoCredentials status code: 429/x.jsonl",
    "http://169.254.169.254/latest/meta-data.jsonl",
    "e",
    "4",
)
SECRET = st.text("abcXYZ0189-_.~", min_size=8, max_size=20).map(lambda text: f"q{text}q")


def address_of(text: str) -> RemoteAddress:
    found = remote_address(text)
    assert found is not None
    return found


def of_obstore(key: str, status: int | None, code: str, kind: str = "GenericError") -> Exception:
    """An error as obstore writes it, which says the key four times."""
    url = f"http://127.0.0.1:9/b/{quote(key)}"
    body = f"<Error><Code>{code}</Code><Key>{key.replace('<', '&lt;')}</Key></Error>"
    said = f"Server returned non-2xx status code: {status} No: {body}" if status else code
    inner = f'Status {{\n    status: {status},\n    body: Some(\n        "{body}",\n    ),\n}}' if status else "Http"
    text = (
        f"Object at location {key}: Error performing GET {url} in 3ms, after 5 retries - {said}"
        f'\n\nDebug source:\nKind {{\n    path: "{key}",\n    uri: Some(\n        {url},\n    ),\n    inner: {inner}'
    )
    return type(kind, (Exception,), {})(text)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("status", "code", "kind", "said"),
    [
        (403, "AccessDenied", "PermissionDeniedError", "access denied (AccessDenied)"),
        (403, "", "PermissionDeniedError", "access denied"),
        (503, "SlowDown", "GenericError", "the store is too busy after 6 tries"),
        (400, "ExpiredToken", "GenericError", "the credentials have expired"),
        (404, "NoSuchBucket", "GenericError", "there is no bucket b"),
        (500, "InternalError", "GenericError", "cannot be read"),
        (None, "HTTP error: error sending request", "GenericError", "no answer after 6 tries"),
        (None, "something new", "GenericError", "cannot be read"),
    ],
)
def test_the_cause_is_not_told_by_the_key(key: str, status: int | None, code: str, kind: str, said: str) -> None:
    error = of_obstore(key, status, code, kind)
    assert status_of(error) == status
    found = refusal(error, address_of("s3://b/runs"), key)
    assert found.message.startswith(f"s3://b/runs: {said}")
    assert isinstance(found, DeniedError) == (kind == "PermissionDeniedError")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Error performing PUT http://169.254.169.254/latest/api/token in 3ms - HTTP error", "no credentials found"),
        ("Generic GCS error: Error performing token request: no", "no credentials found"),
        ("The config profile (x) could not be found", "no credentials found"),
        ("Error when retrieving token from sso: Token has expired and refresh failed", "the credentials have expired"),
        ("Received redirect without LOCATION: an incorrectly configured region", "the bucket lies in another region"),
    ],
)
def test_causes_that_only_words_tell(text: str, said: str) -> None:
    assert said in refusal(Exception(text), address_of("s3://b/metadata")).message


@pytest.mark.parametrize("key", KEYS)
def test_files_of_other_systems_are_told_by_the_kind_of_error(key: str) -> None:
    address = address_of("sftp://host/x")
    for error, said in (
        (PermissionError(13, "Permission denied", f"/x/{key}"), "access denied"),
        (OSError(5, "Input/output error", f"/x/{key}"), "cannot be read"),
    ):
        assert f"sftp://host/x: {said}" in refusal(error, address).message


@given(st.sampled_from(["s3", "gs", "az", "abfss", "http", "https", "sftp", "ftp"]), SECRET, SECRET, SECRET)
def test_secrets_are_told_nowhere(scheme: str, user: str, password: str, query: str) -> None:
    password, query = f"p{password}", f"s{query}"  # which the name does not hold
    text = f"{scheme}://{user}:{password}@b/x.jsonl?sig={query}"
    address = address_of(text)
    secrets = {password, query} | (set() if address.by == "fsspec" else {user})
    errors = [
        Exception(f"Error performing GET {text} in 3ms - HTTP error: error sending request"),
        Exception(f"for path x.jsonl?sig={query}: no"),
        Exception(f"for path x.jsonl%3Fsig={query}: no"),
        ValueError(f"no port: {password!r}"),
    ]
    told = [address.shown, shown_address(text), *(refusal(error, address, address.key).message for error in errors)]
    for one in told:
        assert not [secret for secret in secrets if secret in one]


def test_secrets_are_in_no_message_report_or_traceback() -> None:
    pytest.importorskip("obstore")
    path = "http://someone:SECRET@PW@127.0.0.1:9/x.jsonl?sig=SIGNED"
    (failure,) = found_runs(path, AnalyzeOptions())
    with pytest.raises(InputError, match=r"http://127.0.0.1:9/x.jsonl: no answer") as raised:
        analyze(path)
    told = "".join(traceback.format_exception(raised.value.with_traceback(None)))
    for text in (told, str(failure), str(raised.value)):
        assert not [secret for secret in ("someone", "SECRET", "PW@", "SIGNED") if secret in text]
