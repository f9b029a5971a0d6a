"""Which addresses are of remote logs, and what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from gradtrend.errors import InputError

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_OBJECT_STORES = frozenset({"s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl"})
# Of fsspec those that people keep logs in, so that they are told which package is missing; it knows some more.
_FILE_SYSTEMS = frozenset(
    ["hf", "memory", "sftp", "ssh", "ftp", "smb", "webdav", "hdfs", "webhdfs", "github", "gdrive", "dropbox", "oci"]
)
# What fsspec also calls a file system: this machine's own, and what lies before another.
_NOT_REMOTE = frozenset(
    {"file", "local", "data", "dir", "cached", "blockcache", "filecache", "simplecache", "reference", "generic"}
)
# A file of a web server; any other address of one is that of an MLflow server.
_FILE = re.compile(
    r"(?:\.(?:jsonl|ndjson|json|csv|tsv|log|out|err|txt|wandb|db|sqlite3?)(?:\.\d+)?(?:\.(?:gz|zst|bz2|xz))?"
    r"|\.(?:gz|zst|bz2|xz)|tfevents[^/]*)$",
    re.IGNORECASE,
)
# A name and a password before a host: to the last `@` before the path; where what looks like a port is no number, it is
# a password with a slash in it.
_LOGIN = re.compile(r"(?<=//)(?:[^/?#\s'\"]*@|[^/?#@:\[\s]*:(?!\d*(?:[/?#\s'\"),]|:\s|$))[^\s'\"]*@)")
_QUERY = re.compile(r"(?:\?|%3[Ff])[^\s'\")]*")  # may hold a signature
_QUERY_OF_KEY = re.compile(r"\?[^?]*=.*", re.DOTALL)  # a key may hold a question mark
_AZURE = frozenset({"az", "azure", "abfs", "abfss", "adl"})
_SHORTEST_SECRET = 3  # characters; a shorter one stands in many a word


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """A remote place. `given` is what a client is opened with, `shown` what people are told: without passwords, and
    without what stands behind `?`, which may be a signature. `key` leads from the bucket to the place.
    """

    given: str
    shown: str
    scheme: str
    by: Literal["obstore", "web", "fsspec"]
    bucket: str = ""
    key: str = ""

    @property
    def parts(self) -> list[str]:
        """The names that lead to the place, beginning with the bucket or host."""
        return [part for part in self.shown.partition("://")[2].split("/") if part]

    def without_secrets(self, text: str) -> str:
        """A text about the place, in which a library may say what was given to it."""
        text = without_secrets(text)
        for secret in sorted(_secrets(self.given), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def without_secrets(text: str) -> str:
    """A text without names and passwords in its addresses, and without what stands behind `?`."""
    return _QUERY.sub("", _LOGIN.sub("", text))


def _secrets(address: str) -> set[str]:
    """The password and the values of the query of an address, as they stand there and as libraries write them."""
    login = _LOGIN.search(address)
    query = _LOGIN.sub("", address).partition("#")[0].partition("?")[2]
    own = [] if login is None else [login[0].removesuffix("@").partition(":")[2]]
    own += [part.partition("=")[2] or part for part in query.split("&")]
    forms = {form for one in own for form in (one, unquote(one), quote(one), quote(one, safe=""))}
    return {form for form in forms if len(form) >= _SHORTEST_SECRET}


def remote_address(text: str, source: str = "auto") -> RemoteAddress | None:
    """What an address means, None where it is none of remote logs: a path, a database, a server of MLflow, which may be
    the `source` outright. Raises InputError for one without a bucket or host.
    """
    scheme, _ = _parts(text)
    if scheme in _OBJECT_STORES:
        return _of_object_store(text, scheme)
    if scheme in ("http", "https"):
        return _of_web(text, scheme) if source != "mlflow" else None
    return _of_fsspec(text, scheme) if scheme in _FILE_SYSTEMS else None


def further_address(text: str) -> RemoteAddress | None:
    """As `remote_address`, for what fsspec alone knows, where it is installed; asked last, as it has to be loaded."""
    scheme, _ = _parts(text)
    if not scheme or scheme in _NOT_REMOTE:
        return None
    try:
        from fsspec import available_protocols
    except ImportError:
        return None
    return _of_fsspec(text, scheme) if scheme in available_protocols() else None


def _parts(text: str) -> tuple[str, str]:
    """The scheme and the rest, empty for what is no address."""
    found = _ADDRESS.fullmatch(text)
    return (found[1].lower(), found[2]) if found else ("", "")


def _of_object_store(text: str, scheme: str) -> RemoteAddress:
    login = _LOGIN.search(text)  # which is of no use: clients ask the environment
    named = login is not None and scheme in _AZURE and ":" not in login[0]  # a container, of the account behind it
    plain = text if named else _LOGIN.sub("", text, count=1)
    bucket, _, key = plain.partition("://")[2].partition("/")
    shown = _QUERY_OF_KEY.sub("", plain).rstrip("/")
    bucket = _QUERY_OF_KEY.sub("", bucket)
    if not bucket:
        raise InputError(f"{shown}: names no bucket", f"Give {scheme}://BUCKET/FOLDER.")
    return RemoteAddress(text, shown, scheme, "obstore", bucket, key.strip("/"))


def _of_web(text: str, scheme: str) -> RemoteAddress | None:
    plain = _LOGIN.sub("", text, count=1)
    try:
        url = urlsplit(plain)
        path = unquote(url.path)
        host = url.hostname
    except ValueError:  # a bracket that is not closed
        return None
    if not host or not _FILE.search(path):
        return None
    given = text.removesuffix(f"#{url.fragment}") if url.fragment else text
    return RemoteAddress(given, f"{scheme}://{url.netloc}{path}", scheme, "web", url.netloc)


def _of_fsspec(text: str, scheme: str) -> RemoteAddress:
    given = text if text.endswith("://") else text.rstrip("/")
    login = _LOGIN.search(given)
    name = "" if login is None else login[0].removesuffix("@").partition(":")[0]
    shown = _QUERY_OF_KEY.sub("", _LOGIN.sub(lambda _: f"{name}@" if name else "", given, count=1))
    return RemoteAddress(given, shown, scheme, "fsspec")


def is_file_name(name: str) -> bool:
    """Whether a name is rather that of a log than that of a folder."""
    return _FILE.search(name) is not None
