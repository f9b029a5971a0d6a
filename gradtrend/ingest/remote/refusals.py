"""What goes wrong with stores -> errors that say what, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from gradtrend.errors import InputError
from gradtrend.ingest.remote.address import RemoteAddress, without_secrets

# obstore's words end in a part for programmers, in which texts of others are quoted, and a line is its own.
_FOR_PROGRAMMERS = "\n\nDebug source:\n"
_STATUS = re.compile(r"^\s+status: (\d{3}),$", re.MULTILINE)
_BODY = re.compile(r"^\s+body: Some\(\s+\"(.*)\",$", re.MULTILINE)
_STATUS_SAID = re.compile(r"status code: (\d{3})\b")
_CODE = re.compile(r"<Code>(\w+)</Code>|\b(?:error[_ ]?code|ErrorCode)\W{1,3}(\w+)")
# Where any word may stand: addresses, paths, and how a store repeats the key.
_NAMES = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+|<(Key|Resource|Prefix)>.*?</\1>|path: \".*\"|\S*[/\\]\S*")
_OF_MACHINE = re.compile(
    r"(?<!\S)https?://(?:169\.254\.\d|metadata\.)"
)  # who tells a machine in a cloud its credentials
_EXPIRED = re.compile(r"expired|TokenRefreshRequired", re.IGNORECASE)
_NO_CREDENTIALS = re.compile(
    r"token request|NoCredentials|Account must be|Received None from|config profile|metadata (?:service|server)"
)
_NO_ANSWER = re.compile(r"error sending request|timed out|connect|dns|Name or service", re.IGNORECASE)
_LONGEST = 300  # characters of what a library says
_LOGINS = {
    "s3": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN), or install boto3, which reads"
    " AWS_PROFILE and `aws sso login`; AWS_SKIP_SIGNATURE=true for a public bucket.",
    "gs": "Set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`.",
    "az": "Set AZURE_STORAGE_ACCOUNT_NAME, and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN.",
    "hf": "Run `hf auth login`, or set HF_TOKEN.",
}
_BUCKET_HINT = "Check the name, and the endpoint (AWS_ENDPOINT_URL) where the store is not Amazon's."
_REGION_HINT = "Set AWS_REGION to the bucket's own region."


class DeniedError(InputError):
    """Access is denied: to this object, perhaps not to others."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What a library said: the number of the answer and the store's own code where it has them, and its words without
    names of objects and addresses. `asked_machine` says that it was the machine that refused, not the store.
    """

    status: int | None
    code: str
    words: str
    asked_machine: bool


def refusal(error: BaseException, address: RemoteAddress, key: str = "") -> InputError:
    """The error for people; `key` is the object that was asked for."""
    said = _said(error, (key, address.key, address.shown, address.given))
    shown = address.shown
    login = _LOGINS.get(_family(address.scheme))
    code, kind = said.code, type(error).__name__
    if code in ("NoSuchBucket", "ContainerNotFound") or "bucket does not exist" in said.words:
        return InputError(f"{shown}: there is no bucket {address.bucket}", _BUCKET_HINT)
    if _EXPIRED.search(code) or (not code and said.status in (None, 400, 401, 403) and _EXPIRED.search(said.words)):
        return InputError(f"{shown}: the credentials have expired", f"Log in again. {login or ''}".strip())
    if code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken") or "Unauthenticated" in kind:
        return InputError(f"{shown}: the credentials are not accepted{_in_brackets(code)}", login)
    if code in ("PermanentRedirect", "AuthorizationHeaderMalformed") or "incorrectly configured region" in said.words:
        return InputError(f"{shown}: the bucket lies in another region", _REGION_HINT)
    if said.asked_machine or _NO_CREDENTIALS.search(f"{kind} {said.words}"):
        return InputError(f"{shown}: no credentials found", login)
    if code in ("AccessDenied", "AllAccessDisabled", "AuthorizationFailure") or _is_denied(error, said):
        return DeniedError(f"{shown}: access denied{_in_brackets(code)}", login)
    if code in ("SlowDown", "ServerBusy", "TooManyRequests") or said.status in (429, 503):
        return InputError(f"{shown}: the store is too busy{_tries(said.words)}", "Try again later.")
    told = heart(str(error), address)
    if "InvalidPath" in kind:
        return InputError(f"{shown}: holds a key that is no path: {told}", "Give a folder without it.")
    if said.status is None and (isinstance(error, ConnectionError | TimeoutError) or _NO_ANSWER.search(said.words)):
        return InputError(f"{shown}: no answer{_tries(said.words)}: {told}", "Is the address right, and the network?")
    return InputError(f"{shown}: cannot be read: {told or kind}", login)


def _said(error: BaseException, names: Iterable[str]) -> _Said:
    text = _text(error)
    _, for_programmers, rest = text.rpartition(_FOR_PROGRAMMERS)
    body = _BODY.search(rest) if for_programmers else None
    for name in sorted({form for one in names for form in (one, quote(one)) if form}, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text)
    words = _NAMES.sub(" ", text)
    found = _CODE.search(body[1] if body else words)
    return _Said(
        status_of(error),
        (found[1] or found[2]) if found else "",
        words,
        asked_machine=_OF_MACHINE.search(text) is not None,
    )


def status_of(error: BaseException) -> int | None:
    """The number of the answer (404) that an error is about, None where it says none."""
    for one in (getattr(error, "response", None), error):
        for name in ("status_code", "status"):
            number = getattr(one, name, None)
            if isinstance(number, int):
                return number
    _, for_programmers, rest = _text(error).rpartition(_FOR_PROGRAMMERS)
    said = _STATUS.findall(rest) if for_programmers else _STATUS_SAID.findall(rest)
    return int(said[-1]) if said else None


def _text(error: BaseException) -> str:
    """What an error says, where that can be told apart without the file it is about."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def as_cause(error: BaseException) -> BaseException | None:
    """An error as the cause of another, None where it tells what is secret: a traceback shows causes too."""
    text = str(error)
    return error if without_secrets(text) == text else None


def too_many(address: RemoteAddress, most: int) -> InputError:
    """The error for a place that holds more than anybody means."""
    return InputError(f"{address.shown}: more than {most:,} objects lie below", "Give a folder further down.")


def nothing_there(address: RemoteAddress) -> InputError:
    """The error for an address with nothing behind it."""
    return InputError(f"{address.shown}: nothing lies at or below this address", "Check its spelling.")


def _family(scheme: str) -> str:
    if scheme in ("az", "azure", "abfs", "abfss", "adl"):
        return "az"
    return "s3" if scheme == "s3a" else scheme


def _is_denied(error: BaseException, said: _Said) -> bool:
    return isinstance(error, PermissionError) or "PermissionDenied" in type(error).__name__ or said.status in (401, 403)


def _in_brackets(code: str) -> str:
    return f" ({code})" if code else ""


def _tries(text: str) -> str:
    found = re.search(r"after (\d+) retries", text)
    return f" after {int(found[1]) + 1} tries" if found else ""


def heart(text: str, address: RemoteAddress | None = None) -> str:
    """The first line of what a library says, without what may be secret."""
    line = re.sub(r"<\?xml.*", "", (text.strip().splitlines() or [""])[0])
    plain = without_secrets(line) if address is None else address.without_secrets(line)
    return plain.strip(" :")[:_LONGEST]
