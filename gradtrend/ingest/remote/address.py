"""Which addresses are of remote logs, and what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

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
_PASSWORD = re.compile(r"(?<=://)([^/:@]*):[^/@]*@")


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """A remote place. `given` is what a client is opened with, `shown` what people are told: without passwords, and of
    a web server without what stands behind `?`, which may be a signature. `key` leads from the bucket to the place.
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


def remote_address(text: str, source: str = "auto") -> RemoteAddress | None:
    """What an address means, None where it is none of remote logs: a path, a database, a server of MLflow, which may be
    the `source` outright. Raises InputError for one without a bucket or host.
    """
    scheme, rest = _parts(text)
    if scheme in _OBJECT_STORES:
        bucket, _, key = rest.partition("/")
        if not bucket:
            raise InputError(f"{text}: names no bucket", f"Give {scheme}://BUCKET/FOLDER.")
        return RemoteAddress(text, text.rstrip("/"), scheme, "obstore", bucket, key.strip("/"))
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


def _of_web(text: str, scheme: str) -> RemoteAddress | None:
    try:
        url = urlsplit(text)
        path = unquote(url.path)
        host = url.hostname
    except ValueError:  # a bracket that is not closed
        return None
    if not host or not _FILE.search(path):
        return None
    shown = f"{scheme}://{url.netloc.rpartition('@')[2]}{path}"
    return RemoteAddress(text.partition("#")[0], shown, scheme, "web", url.netloc)


def _of_fsspec(text: str, scheme: str) -> RemoteAddress:
    given = text if text.endswith("://") else text.rstrip("/")
    return RemoteAddress(given, _PASSWORD.sub(r"\1@", given), scheme, "fsspec")


def is_file_name(name: str) -> bool:
    """Whether a name is rather that of a log than that of a folder."""
    return _FILE.search(name) is not None
