"""Any text log comes out as whole lines of UTF-8: compressed, in UTF-16, cut off, or one endless line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.files import streams
from gradtrend.ingest.files.streams import decoded_head, open_log, open_stream, read_whole, whole_lines
from gradtrend.model.runlog import Skipped

TEXT = "".join(f"step {i} loss 0.{i} grad_norm 1.{i}\n" for i in range(5000))
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": zstandard.ZstdCompressor().compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def read_all(path: Path) -> tuple[bytes, list[Skipped]]:
    skipped: list[Skipped] = []
    with open_log(path) as stream:
        return b"".join(chunk for _, chunk in whole_lines(stream, skipped)), skipped


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_logs_read_like_plain_ones(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"train.log.{suffix}"
    data = COMPRESS[suffix](TEXT.encode())
    path.write_bytes(data)
    assert read_all(path) == (TEXT.encode(), [])
    assert decoded_head(data) == TEXT.encode()


@pytest.mark.parametrize("suffix", ["gz", "zst", "xz"])
def test_a_cut_compressed_log_is_read_up_to_the_cut_and_says_so(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"train.log.{suffix}"
    noise = "".join(f"step {i} loss {i * 15485863 % 32452843} norm 1.5\n" for i in range(40_000)).encode()
    data = COMPRESS[suffix](noise)
    path.write_bytes(data[: len(data) * 3 // 4])
    text, skipped = read_all(path)
    assert noise.startswith(text)
    assert len(text) > len(noise) / 2
    assert b"\n" in decoded_head(data[: 64 * 1024])
    if suffix != "zst":  # a cut frame of zstandard's looks like one that is still being written
        assert len(skipped) == 1


def test_several_zstandard_frames_are_one_log(tmp_path: Path) -> None:
    path = tmp_path / "train.log.zst"
    path.write_bytes(COMPRESS["zst"](b"step 1\n") + COMPRESS["zst"](b"step 2\n"))
    assert read_all(path)[0] == b"step 1\nstep 2\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig"])
def test_windows_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "train.log"
    text = "step 1 löss 0.1\r\nstep 2 loss 0.2\r\n"
    path.write_bytes(text.encode(encoding))
    assert read_all(path)[0] == text.encode()
    assert decoded_head(path.read_bytes()) == text.encode()


def test_a_missing_or_damaged_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        open_log(tmp_path / "none.log")
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b\x08\x00" + b"\xff" * 40)
    with pytest.raises(InputError, match=r"bad\.gz: the compressed file"):
        open_log(tmp_path / "bad.gz")


def test_a_line_beyond_the_limit_is_dropped_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "CHUNK_BYTES", 64)
    monkeypatch.setattr(streams, "LONGEST_LINE", 256)
    skipped: list[Skipped] = []
    source = io.BufferedReader(io.BytesIO(b"step 1\n" + b"x" * 1000 + b"\nstep 3\n"))
    pieces = list(whole_lines(source, skipped))
    lines = b"".join(chunk for _, chunk in pieces).split(b"\n")
    assert b"step 1" in lines
    assert b"step 3" in lines
    assert not any(b"x" in line for line in lines)
    assert [(s.line, "MiB" in s.reason) for s in skipped] == [(2, True)]
    assert pieces[-1][0] + pieces[-1][1].count(b"\n", 0, pieces[-1][1].index(b"step 3")) == 3


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 50), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_chunks_hold_whole_lines_and_lose_nothing(lines: list[bytes], size: int, end: bytes) -> None:
    data = end.join(line.replace(b"\r", b"").replace(b"\n", b"") for line in lines)
    before, streams.CHUNK_BYTES = streams.CHUNK_BYTES, size
    try:
        pieces = list(whole_lines(io.BufferedReader(io.BytesIO(data)), []))
    finally:
        streams.CHUNK_BYTES = before
    assert b"".join(chunk for _, chunk in pieces) == data
    assert all(chunk.endswith((b"\n", b"\r")) for _, chunk in pieces[:-1])
    position = 0
    for number, chunk in pieces:
        assert number == 1 + data.count(b"\n", 0, position)
        position += len(chunk)


def test_standard_input_need_not_be_seekable() -> None:
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.left = [b"\x1f\x8b", gzip.compress(b"step 1\n")[2:]]

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            piece = self.left.pop(0) if self.left else b""
            buffer[: len(piece)] = piece
            return len(piece)

    assert open_stream(Pipe()).read() in (b"step 1\n", gzip.compress(b"step 1\n"))  # type: ignore[arg-type]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_a_file_that_grows_out_of_all_proportion_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(streams, "ALWAYS_EXPANDED", 1 << 20)
    path = tmp_path / "train.log"
    path.write_bytes(pack(b"a\n" * (8 << 20)))
    skipped: list[Skipped] = []
    with open_log(path) as stream:
        given = sum(len(chunk) for _, chunk in whole_lines(stream, skipped))
    assert given < 12 << 20
    assert "times its size" in skipped[-1].reason


def test_what_stands_before_the_damage_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "history.json.gz"
    path.write_bytes(gzip.compress(b"0123456789" * 1000)[:-6])
    with open_log(path) as stream:
        assert read_whole(stream, 1 << 20) == b"0123456789" * 1000
    with open_log(path) as stream:
        assert len(read_whole(stream, 99)) == 100


@pytest.mark.parametrize(
    ("data", "length"),
    [
        (b"a" * 10, 10),
        (b"a\n" * 100, 64),
        (b"a" * 100 + b"\nb\n" + b"c" * 10, 113),
        (b"\0" * 300, 64),
        (b"\x1f\x8b" + b"a" * 300, 64),
    ],
)
def test_the_head_of_a_log_has_its_first_rows(data: bytes, length: int) -> None:
    assert streams.head_of(io.BytesIO(data), 64) == data[:length]


def test_the_head_of_one_endless_line_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LONGEST_HEAD", 1 << 20)
    assert 1 << 20 <= len(streams.head_of(io.BytesIO(b"x" * (3 << 20)), 64)) < 2 << 20


@pytest.mark.parametrize("magic", [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ\x00"])
def test_a_file_that_cannot_be_decompressed_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, magic: bytes
) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(magic + b"\xff" * 20)
    opened: list[io.BufferedReader] = []
    buffered = streams.buffered
    monkeypatch.setattr(streams, "buffered", lambda path: opened.append(buffered(path)) or opened[-1])
    with pytest.raises(InputError) as raised:
        open_log(path)
    assert raised.tb  # what holds the file where it is left open
    assert [file.closed for file in opened] == [True]
