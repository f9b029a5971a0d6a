"""What goes wrong with stores -> errors that say what, and what to do."""

from __future__ import annotations

import re

from gradtrend.errors import InputError
from gradtrend.ingest.remote.address import RemoteAddress

_CODE = re.compile(r"<Code>(\w+)</Code>|\b(?:error[_ ]?code|ErrorCode)\W{1,3}(\w+)")
_LONGEST = 300  # characters of what a library says
_QUERY = re.compile(r"\?[^\s\"')]*")  # may hold a signature
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


def refusal(error: BaseException, address: RemoteAddress) -> InputError:
    """The error for people."""
    text = str(error)
    found = _CODE.search(text)
    code = (found[1] or found[2]) if found else ""
    shown = address.shown
    login = _LOGINS.get(_family(address.scheme))
    if code in ("NoSuchBucket", "ContainerNotFound") or "bucket does not exist" in text:
        return InputError(f"{shown}: there is no bucket {address.bucket}", _BUCKET_HINT)
    if re.search(r"Expired|expired|TokenRefreshRequired", code or text):
        return InputError(f"{shown}: the credentials have expired", f"Log in again. {login or ''}".strip())
    if (
        code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken")
        or "Unauthenticated" in type(error).__name__
    ):
        return InputError(f"{shown}: the credentials are not accepted{_in_brackets(code)}", login)
    if code in ("PermanentRedirect", "AuthorizationHeaderMalformed") or "incorrectly configured region" in text:
        return InputError(f"{shown}: the bucket lies in another region", _REGION_HINT)
    if re.search(
        r"169\.254\.|metadata|token request|NoCredentials|Account must be|Received None from|config profile", text
    ):
        return InputError(f"{shown}: no credentials found", login)
    if code in ("AccessDenied", "AllAccessDisabled", "AuthorizationFailure") or _is_denied(error, text):
        return DeniedError(f"{shown}: access denied{_in_brackets(code)}", login)
    if code in ("SlowDown", "ServerBusy", "TooManyRequests") or re.search(r"\b(?:429|503)\b", text):
        return InputError(f"{shown}: the store is too busy{_tries(text)}", "Try again later.")
    if re.search(r"error sending request|timed out|connect|dns|Name or service", text, re.IGNORECASE):
        return InputError(f"{shown}: no answer{_tries(text)}: {heart(text)}", "Is the address right, and the network?")
    if "InvalidPath" in type(error).__name__:
        return InputError(f"{shown}: holds a key that is no path: {heart(text)}", "Give a folder without it.")
    return InputError(f"{shown}: cannot be read: {heart(text) or type(error).__name__}", login)


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


def _is_denied(error: BaseException, text: str) -> bool:
    return (
        isinstance(error, PermissionError)
        or re.search(r"PermissionDenied|\b(?:401|403)\b", f"{type(error).__name__} {text}") is not None
    )


def _in_brackets(code: str) -> str:
    return f" ({code})" if code else ""


def _tries(text: str) -> str:
    found = re.search(r"after (\d+) retries", text)
    return f" after {int(found[1]) + 1} tries" if found else ""


def heart(text: str) -> str:
    """The first line of what a library says, without what may be secret."""
    line = (text.strip().splitlines() or [""])[0]
    return _QUERY.sub("", re.sub(r"<\?xml.*", "", line)).strip(" :")[:_LONGEST]
