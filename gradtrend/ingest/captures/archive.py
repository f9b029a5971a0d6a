"""The zip container that `torch.save` writes: its pickle and where its storages lie. Nothing is extracted."""

from __future__ import annotations

import io
import os
import stat
import struct
import weakref
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from gradtrend.errors import InputError
from gradtrend.ingest.files.regular import buffered, open_regular, without_waiting
from gradtrend.model.contents import StorageSpan

# The pickle holds names and shapes, no tensor data: 60 KiB for a network of 340 tensors.
_MAX_PICKLE_BYTES = 64 * 1024 * 1024
MAX_DIRECTORY_BYTES = 4 * 1024 * 1024  # of the zip file's list of members: 50,000 storages
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # a zip member's local header: magic, length of the name, of the extra field
_CHUNK = 1024 * 1024
_LONGEST_READ = 1 << 30  # Linux reads at most 2 GiB at once
_SAVE_AGAIN = "Load it in the environment that wrote it and save it again with torch.save (PyTorch 1.6 or newer)."
_COPY_AGAIN = "Copy the file again, or capture the step again."
_DAMAGE = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, struct.error)


@dataclass(frozen=True, slots=True)
class TorchArchive:
    """An opened capture file: `pickle` is `data.pkl`, `storages` maps storage keys to zip members."""

    path: Path
    pickle: bytes
    storages: Mapping[str, zipfile.ZipInfo]

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes really present, by storage key."""
        return {key: member.file_size for key, member in self.storages.items()}


class HeldFile:
    """A capture that stays open while it is replayed: a script that is imported for it may write to its path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open_regular(path)
        weakref.finalize(self, self._file.close)
        self._opened = self._state()

    def bytes_at(self, start: int, size: int) -> bytearray:
        """Bytes of the file. Raises `InputError` where it is not the file any more that was opened."""
        data = bytearray(size)
        view, place = memoryview(data), 0
        while place < size:
            count = os.preadv(self._file.fileno(), [view[place : place + _LONGEST_READ]], start + place)
            if not count:
                break
            place += count
        if place < size or self._state() != self._opened:
            raise InputError(
                f"{self._path} was written to while it was read",
                "Copy the capture to another folder, where the model's own code does not write, and replay it there.",
            )
        return data

    def _state(self) -> tuple[int, int]:
        state = os.fstat(self._file.fileno())
        return state.st_size, state.st_mtime_ns


class _ShortReads(io.FileIO):
    """A file that refuses to be read in long pieces: `zipfile` takes the whole list of members at once."""

    def read(self, size: int | None = -1) -> bytes:
        left = os.fstat(self.fileno()).st_size - self.tell()
        if (left if size is None or size < 0 else size) > MAX_DIRECTORY_BYTES:
            raise zipfile.BadZipFile("it lists far more members than a capture has")
        return super().read(size) or b""


def open_archive(path: Path) -> TorchArchive:
    """The archive at `path`. Raises `InputError` (what is wrong, what to do) for anything torch.save did not write."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise InputError(f"{path} is not a regular file", "Give the capture file itself.")
        with _ShortReads(path, opener=without_waiting) as file:
            _check_head(path, file.read(64))
            with zipfile.ZipFile(cast(IO[bytes], file)) as archive:
                return _read_archive(path, archive)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}", "Check the path and rights.") from error
    except _DAMAGE as error:
        raise InputError(f"{path} is truncated or damaged ({error})", _COPY_AGAIN) from error


def _check_head(path: Path, head: bytes) -> None:
    if head.startswith(b"PK"):
        return
    if not head:
        raise InputError(f"{path} is empty", _COPY_AGAIN)
    if head[:1] == b"\x80":
        raise InputError(
            f"{path} is a plain pickle or in torch.save's old format, which is not read because it can run code",
            _SAVE_AGAIN,
        )
    raise InputError(f"{path} is not a file of torch.save", "Give a nan_capture.pt or a *.gradtrend.pt file.")


def _read_archive(path: Path, archive: zipfile.ZipFile) -> TorchArchive:
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        _check_member(path, member)
        if member.filename in members:
            raise InputError(f"{path} holds {member.filename[:80]!r} twice", _COPY_AGAIN)
        members[member.filename] = member
    if sum(member.file_size for member in members.values()) > os.path.getsize(path):  # noqa: PTH202 (one stat)
        raise InputError(f"{path} declares more data than it holds", _COPY_AGAIN)
    roots = [name.removesuffix("/data.pkl") for name in members if name.count("/") == 1 and name.endswith("/data.pkl")]
    if len(roots) != 1:
        raise InputError(f"{path} is a zip file, but not one of torch.save", "Give the capture file itself.")
    root = roots[0]
    if f"{root}/constants.pkl" in members:
        raise InputError(f"{path} is a TorchScript program, not a capture", "Give the capture file itself.")
    order = members.get(f"{root}/byteorder")
    if order is not None and (order.file_size > len("little") or archive.read(order) != b"little"):
        raise InputError(f"{path} was written on a big-endian machine, which is not supported", _SAVE_AGAIN)
    pickle = members[f"{root}/data.pkl"]
    if pickle.file_size > _MAX_PICKLE_BYTES:
        raise InputError(f"{path} has {pickle.file_size:,} bytes of pickle, far more than a capture needs", _COPY_AGAIN)
    prefix = f"{root}/data/"
    storages = {name.removeprefix(prefix): member for name, member in members.items() if name.startswith(prefix)}
    with archive.open(pickle) as data:
        return TorchArchive(path, b"".join(iter(lambda: data.read(_CHUNK), b"")), storages)


def _check_member(path: Path, member: zipfile.ZipInfo) -> None:
    name = PurePosixPath(member.filename)
    if name.is_absolute() or ".." in name.parts or "\\" in member.filename:
        raise InputError(
            f"{path} holds a path that leads out of it: {member.filename[:80]!r}", "Do not trust this file."
        )
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 0x1 or member.file_size != member.compress_size:
        raise InputError(f"{path} is compressed or encrypted; torch.save writes neither", _SAVE_AGAIN)


def locate_storages(archive: TorchArchive, keys: Iterable[str]) -> dict[str, StorageSpan]:
    """Where the bytes of these storages lie; each one's checksum is compared. Raises `InputError` for damage."""
    spans: dict[str, StorageSpan] = {}
    try:
        with buffered(archive.path) as file, zipfile.ZipFile(file) as opened:
            for key in keys:
                member = archive.storages[key]
                with opened.open(member) as data:  # zipfile compares the CRC at the end of the data
                    while data.read(_CHUNK):
                        pass
                file.seek(member.header_offset)
                _, name_length, extra_length = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
                start = member.header_offset + _LOCAL_HEADER.size + name_length + extra_length
                spans[key] = StorageSpan(start, member.file_size)
    except (*_DAMAGE, OSError) as error:
        raise InputError(f"{archive.path} is damaged: {error}", _COPY_AGAIN) from error
    return spans
