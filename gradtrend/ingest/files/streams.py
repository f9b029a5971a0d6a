"""Any text log as whole lines of UTF-8: compressed, UTF-16, still being written, or one endless line."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from gradtrend.errors import InputError
from gradtrend.ingest.files.regular import buffered
from gradtrend.ingest.limits import ALWAYS_EXPANDED, LONGEST_HEAD, LONGEST_LINE, MOST_GROWTH
from gradtrend.model.runlog import Skipped

CHUNK_BYTES = 4 * 1024 * 1024  # large enough that the work a chunk costs in Python does not show
_LINES_TOLD_BY = 2  # a header and a row
_UTF8_BOM = codecs.BOM_UTF8
_A_LINE = re.compile(rb"[^\r\n]+")
_CUT = "the compressed file ends early or is damaged"


class _Decoded(io.RawIOBase):
    """A byte stream in some encoding, read as UTF-8."""

    def __init__(self, source: io.BufferedReader, encoding: str) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._left = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while not self._left:
            block = self._source.read1(CHUNK_BYTES)
            self._left = self._decoder.decode(block, final=not block).encode()
            if not block:
                break
        piece, self._left = (self._left, b"") if size < 0 else (self._left[:size], self._left[size:])
        return piece

    def read1(self, size: int = -1) -> bytes:
        return self.read(size)

    def close(self) -> None:
        self._source.close()
        super().close()


class _Counted:
    """What a decompressor reads from, with the bytes that it took."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        piece = self._source.read(size)
        self.count += len(piece)
        return piece


class _Decompressed(io.RawIOBase):
    """What a decompressor gives, piece by piece: an error at the damage does not take along what came before it.

    A file that grows out of all proportion is damaged too: a few bytes must not keep anybody busy for hours.
    Closes the file below as well: the decompressors leave it open.
    """

    def __init__(self, opener: Callable[[BinaryIO], BinaryIO], source: BinaryIO) -> None:
        self._counted = _Counted(source)
        self._decompressor = cast(io.BufferedReader, opener(cast(BinaryIO, self._counted)))
        self._source = source
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        piece = self._decompressor.read1(len(buffer))
        buffer[: len(piece)] = piece
        self._given += len(piece)
        if self._given > ALWAYS_EXPANDED and self._given > MOST_GROWTH * self._counted.count:
            raise EOFError(f"it holds more than {MOST_GROWTH} times its size")
        return len(piece)

    def close(self) -> None:
        super().close()
        self._decompressor.close()
        self._source.close()


def _zstd(source: BinaryIO) -> BinaryIO:
    import zstandard

    return cast(BinaryIO, zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True))


_OPENERS: tuple[tuple[bytes, Callable[[BinaryIO], BinaryIO]], ...] = (
    (b"\x1f\x8b", lambda source: cast(BinaryIO, gzip.GzipFile(fileobj=source))),
    (b"\x28\xb5\x2f\xfd", _zstd),
    (b"BZh", lambda source: cast(BinaryIO, bz2.open(source))),  # noqa: SIM115  closed with the log
    (b"\xfd7zXZ\x00", lambda source: cast(BinaryIO, lzma.open(source))),  # noqa: SIM115
)


def plain_name(path: Path) -> str:
    """The file's name without an ending that says only how it is compressed."""
    return path.stem if path.suffix.lower() in (".gz", ".zst", ".bz2", ".xz") else path.name


def is_compressed(head: bytes) -> bool:
    """Whether the first bytes are those of a compressed file that `open_log` can read."""
    return any(head.startswith(magic) for magic, _ in _OPENERS)


def _encoding_of(head: bytes) -> str | None:
    """The UTF-16 or UTF-32 that a text starts in, or None where its bytes can be read as UTF-8."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = head[:512]  # PowerShell's `>` writes UTF-16 with a mark, other Windows tools without
    if len(sample) >= 4 and sample[1::2].count(0) > 0.9 * len(sample[1::2]) and 0 not in sample[::2]:
        return "utf-16-le"
    return None


def mentions(head: bytes, *words: bytes) -> bool:
    """Whether the first bytes of a text contain one of the words, or cannot be searched as they stand."""
    return any(word in head for word in words) or is_compressed(head) or _encoding_of(head) is not None


def open_stream(source: BinaryIO) -> BinaryIO:
    """A log as UTF-8 bytes, whatever its compression and encoding. `source` need not be seekable (standard input)."""
    buffered = source if isinstance(source, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, source))
    for magic, opener in _OPENERS:
        if buffered.peek(8).startswith(magic):
            buffered = io.BufferedReader(_Decompressed(opener, buffered))
            break
    try:
        head = buffered.peek(512)
    except _damage() as error:
        raise InputError(_CUT, "Copy the log again, or decompress what can be saved of it.") from error
    encoding = _encoding_of(head)
    if encoding is not None:
        return cast(BinaryIO, _Decoded(buffered, encoding))
    if head.startswith(_UTF8_BOM):
        buffered.read(len(_UTF8_BOM))
    return buffered


def open_log(path: Path) -> BinaryIO:
    """The log at a path as UTF-8 bytes. Raises InputError where it cannot be read."""
    try:
        file = buffered(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    try:
        return open_stream(file)
    except OSError as error:
        file.close()
        raise InputError(f"{path}: {error.strerror or error}") from error
    except InputError as error:
        file.close()
        raise InputError(f"{path}: {error.message}", error.hint) from error


def head_of(source: BinaryIO, size: int) -> bytes:
    """The first `size` bytes of a log, by which its format is told; of a text whose first two lines are longer, as much
    as these have, and at most `LONGEST_HEAD` bytes.
    """
    head = source.read(size)
    while is_cut_too_early(head, size) and (piece := source.read(CHUNK_BYTES // 8)):
        head += piece
    return head


def is_cut_too_early(head: bytes, size: int) -> bool:
    """Whether the first `size` bytes or more are of a text whose format they do not tell, for want of two lines."""
    return (
        size <= len(head) < LONGEST_HEAD
        and head.count(b"\n", 0, len(head) - 1) < _LINES_TOLD_BY
        and b"\0" not in head[:size]
        and not is_compressed(head)
    )


def decoded_head(head: bytes) -> bytes:
    """The first bytes of a file as UTF-8 text, decompressed; b"" where nothing can be made of them."""
    if not is_compressed(head) and _encoding_of(head) is None:
        return head.removeprefix(_UTF8_BOM)
    text = b""
    try:
        stream = open_stream(io.BufferedReader(io.BytesIO(head)))
        while len(text) < CHUNK_BYTES and (piece := stream.read(8192)):
            text += piece
    except InputError:
        return text
    except _damage():
        return text  # a head ends in the middle of the compressed data
    return text


def first_lines(text: bytes, most: int) -> list[bytes]:
    """The first so many lines that are not blank."""
    lines = (line[0] for line in _A_LINE.finditer(text))
    return list(islice((line for line in lines if line.strip()), most))


def _damage() -> tuple[type[Exception], ...]:
    """What a decompressor raises on a file that is cut off or damaged."""
    import zstandard

    return (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


def whole_lines(stream: BinaryIO, skipped: list[Skipped]) -> Iterator[tuple[int, bytes]]:
    """Chunks that end at the end of a line, each with the number of its first line (from 1; `\\n` alone counts).

    A line longer than LONGEST_LINE is dropped and added to `skipped`, and so is the rest of a damaged compressed file.
    """
    line, rest, dropping = 1, b"", False
    for block in _blocks(stream, skipped):
        cut = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if not cut:
            if not dropping and len(rest) + len(block) > LONGEST_LINE:
                skipped.append(Skipped(f"a line of more than {LONGEST_LINE >> 20} MiB", line=line))
                dropping, rest = True, b""
            rest = b"" if dropping else rest + block
            continue
        whole = rest + block[:cut]
        if dropping:
            start = min(i for i in (block.find(b"\n"), block.find(b"\r")) if i >= 0)
            whole, dropping = block[start:cut], False
        yield line, whole
        line += whole.count(b"\n")
        rest = block[cut:]
    if rest:
        yield line, rest


def read_whole(stream: BinaryIO, most: int) -> bytes:
    """All bytes of a log, of a damaged compressed one those before the damage; at most `most` and one more."""
    pieces: list[bytes] = []
    size = 0
    for piece in _blocks(stream, []):  # what lies behind damage is missing as after a cut, and the reader says so
        pieces.append(piece)
        size += len(piece)
        if size > most:
            break
    return b"".join(pieces)[: most + 1]


def _blocks(stream: BinaryIO, skipped: list[Skipped]) -> Iterator[bytes]:
    """The stream in pieces of CHUNK_BYTES, up to its end or to damage, which is added to `skipped`."""
    damaged = False
    while not damaged:
        pieces: list[bytes] = []
        size = 0
        try:
            while size < CHUNK_BYTES and (piece := cast(io.BufferedReader, stream).read1(CHUNK_BYTES - size)):
                pieces.append(piece)
                size += len(piece)
        except _damage() as error:
            skipped.append(Skipped(f"{_CUT} ({error})"))
            damaged = True
        if not pieces:
            return
        yield b"".join(pieces)
