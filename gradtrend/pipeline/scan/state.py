"""What an earlier scan knows, in a file of JSON lines to which each result is added as soon as it is there.

A scan that is killed loses the line that it was writing at most, which is passed over when the file is read again. The
first line names what the results hang on (version, options, rules); `formats` are files whose format is known, `share`
the runs of logs that were read together, and `root` says that all below a folder was judged as it lay there.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradtrend.errors import ConfigError
from gradtrend.model.many.record import Record
from gradtrend.pipeline.whole_file import replace_whole, write_all
from gradtrend.report.json.records import record_from_dict, record_to_dict

_VERSION = 1
_MARK = "gradtrend_state"
_LEFT_OVER = 1.5  # times the lines that are needed, before the file is written anew


@dataclass(frozen=True, slots=True)
class Root:
    """A folder or bucket as it was when all below it was judged: the digest of its files, and the names and signatures
    of the shares that its logs were read in.
    """

    digest: str
    shares: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class State:
    """What is known, and the file that it is added to; `file` is None where nothing is to be kept."""

    path: Path | None = None
    key: str = ""
    shares: dict[str, tuple[str, tuple[Record, ...]]] = field(default_factory=dict)  # name -> signature, records
    formats: dict[str, tuple[int, int, str]] = field(default_factory=dict)  # path -> size, modified, format
    roots: dict[str, Root] = field(default_factory=dict)
    tells: tuple[str, tuple[str, ...]] = ("", ())  # a digest of what they were made of, and sentences
    was_other: bool = False  # it held what was found by other options, rules or another version
    _file: io.FileIO | None = None
    _lines: int = 0
    _is_stale: bool = False  # what the file holds is not of this state; it is there until something takes its place

    def records_of(self, share: str, signature: str | None) -> tuple[Record, ...] | None:
        """The runs of a share whose files are as they were; None where it is to be read."""
        known = self.shares.get(share)
        return known[1] if known is not None and signature is not None and known[0] == signature else None

    def format_of(self, path: str, size: int, modified: int) -> str | None:
        """The format of a file that is as it was, None for another."""
        known = self.formats.get(path)
        return known[2] if known is not None and known[:2] == (size, modified) else None

    def keep_share(self, share: str, signature: str, records: Sequence[Record]) -> None:
        """Remember the runs of a share."""
        self.shares[share] = signature, tuple(records)
        self._add(_share_line(share, signature, records))

    def keep_formats(self, found: dict[str, tuple[int, int, str]]) -> None:
        """Remember the formats of files."""
        self.formats |= found
        if found:
            self._add({"formats": {path: list(known) for path, known in found.items()}})

    def keep_root(self, name: str, root: Root) -> None:
        """Remember that all below a root was judged."""
        if self.roots.get(name) != root:
            self.roots[name] = root
            self._add(_root_line(name, root))

    def keep_tells(self, made_of: str, tells: Sequence[str]) -> None:
        """Remember what tells the sick runs from the healthy ones."""
        self.tells = made_of, tuple(tells)
        self._add({"tells": list(tells), "of": made_of})

    def close(self, tidy: bool = False) -> None:
        """Let go of the file; with `tidy` it is first written anew, where much in it is out of date."""
        if self._file is None:
            return
        lines = [*self._all_lines()] if tidy and self._lines > _LEFT_OVER * self._needed() else None
        if lines is not None and self.path is not None:
            with suppress(OSError):  # it holds all that it needs as it is
                replace_whole(Path(os.path.realpath(self.path)), b"".join(map(_line, lines)))
        self._file.close()
        self._file = None

    def _needed(self) -> int:
        return 3 + len(self.roots) + len(self.shares)

    def _all_lines(self) -> Iterator[dict[str, Any]]:
        yield _head(self.key)
        yield {"formats": {path: list(known) for path, known in self.formats.items()}}
        for share, (signature, records) in self.shares.items():
            yield _share_line(share, signature, records)
        for name, root in self.roots.items():
            yield _root_line(name, root)
        yield {"tells": list(self.tells[1]), "of": self.tells[0]}

    def forget_gone(self, below: str, shares: Collection[str], files: Collection[str]) -> None:
        """Forget what is known of a root, but for the shares and files that are there."""
        inside = below.rstrip("/") + "/"
        for name in [one for one in self.shares if (one == below or one.startswith(inside)) and one not in shares]:
            del self.shares[name]
        for name in [one for one in self.formats if one.startswith(inside) and one not in files]:
            del self.formats[name]

    def _begin_anew(self) -> None:
        assert self._file is not None
        self._is_stale = False
        self._file.seek(0)
        self._file.truncate()
        self._add(_head(self.key))

    def _add(self, line: dict[str, Any]) -> None:
        if self._file is None:
            return
        if self._is_stale:
            self._begin_anew()
        try:
            write_all(self._file, _line(line))
        except OSError as error:
            raise _unusable(self.path, f"cannot be written ({error.strerror or error})") from None
        self._lines += 1


def open_state(path: Path | None, key: str) -> State:
    """What the file at a path knows, and the file itself, to be added to; empty without a path. What was found by other
    options, rules or another version is forgotten.

    Raises `ConfigError` for a file that is something else, that cannot be written, or that another scan is using.
    """
    if path is None:
        return State(None, key)
    try:
        file = _opened(path)
    except OSError as error:
        raise _unusable(path, f"cannot be used ({error.strerror or error})") from None
    try:
        return _filled(State(path, key, _file=file), file, path)
    except OSError as error:
        file.close()
        raise _unusable(path, f"cannot be written ({error.strerror or error})") from None
    except BaseException:
        file.close()
        raise


def _filled(state: State, file: io.FileIO, path: Path) -> State:
    held = file.read()
    head = _object(held.split(b"\n", 1)[0])
    begins = b'{"' + _MARK.encode()
    cut_in_its_first_line = b"\n" not in held and (held.startswith(begins) or begins.startswith(held))
    if held and head.get(_MARK) != _VERSION and not cut_in_its_first_line:
        raise _unusable(path, "is no state of a scan", "Name another file, or remove it.")
    if head.get("key") != state.key:
        state.was_other = _MARK in head
        state._is_stale = True
        if not state.was_other:
            state._begin_anew()
    else:
        _take(held, state)
        if not held.endswith(b"\n"):
            write_all(file, b"\n")
    return state


def _opened(path: Path) -> io.FileIO:
    """The file, unbuffered: what is added is there whatever becomes of this process. Nobody else's meanwhile."""
    if path.exists() and not path.is_file():  # a pipe would be waited for, a device has no end
        raise _unusable(path, "is no file", "Name another.")
    while True:
        file = io.FileIO(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
        _lock(file, path)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # another scan has put a tidy file in its place meanwhile


def _lock(file: io.FileIO, path: Path) -> None:
    with suppress(ImportError):  # not on Windows
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise _unusable(path, "is used by another scan", "Wait for it, or name another file.") from None
        except OSError:  # a file system without locks
            pass


def _unusable(path: Path | None, why: str, hint: str | None = None) -> ConfigError:
    return ConfigError(f"--state {path}: {why}", hint)


def _head(key: str) -> dict[str, Any]:
    return {_MARK: _VERSION, "key": key}


def _share_line(share: str, signature: str, records: Sequence[Record]) -> dict[str, Any]:
    return {"share": share, "signature": signature, "records": [record_to_dict(record) for record in records]}


def _root_line(name: str, root: Root) -> dict[str, Any]:
    return {"root": name, "digest": root.digest, "shares": [list(share) for share in root.shares]}


def _line(value: dict[str, Any]) -> bytes:
    """A line, for no other program: what is written comes back as it was, NaN and bytes of names that no text has."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _take(held: bytes, state: State) -> None:
    """Fill in what the lines say; of what they say twice the last counts, what is damaged is not known."""
    for line in held.splitlines():
        found = _object(line)
        state._lines += 1
        if "share" in found:
            _take_share(found, state)
        elif isinstance(tells := found.get("tells"), list):
            state.tells = str(found.get("of")), tuple(map(str, tells))
        elif isinstance(formats := found.get("formats"), dict):
            good = {path: tuple(known) for path, known in formats.items() if _is_known(known)}
            state.formats |= good
        elif isinstance(root := found.get("root"), str) and _are_shares(shares := found.get("shares", ())):
            state.roots[root] = Root(str(found.get("digest")), tuple((name, signature) for name, signature in shares))


def _is_known(known: Any) -> bool:
    return isinstance(known, list) and [type(one) for one in known] == [int, int, str]


def _are_shares(shares: Any) -> bool:
    return isinstance(shares, list) and all(
        isinstance(share, list) and [type(one) for one in share] == [str, str] for share in shares
    )


def _take_share(found: dict[str, Any], state: State) -> None:
    share, signature, given = found["share"], found.get("signature"), found.get("records")
    if not (isinstance(share, str) and isinstance(signature, str) and isinstance(given, list)):
        return
    records = [record_from_dict(one) if isinstance(one, dict) else None for one in given]
    if all(record is not None for record in records):
        state.shares[share] = signature, tuple(record for record in records if record is not None)
