"""The lines of a log that may have logged something, found fast: most of a long log is not about the training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from gradtrend.ingest.files.streams import whole_lines
from gradtrend.model.runlog import Skipped

# Every line of interest names a loss or a norm. Finding these in a lower-case copy of a whole chunk runs at memory
# speed, where looking at each line would cost fifty times as much.
_WORDS = (b"loss", b"norm", b"grad")
# What some programs print instead. Looking for more words takes longer, so only those count that the log's first lines
# have: Marian and Paddle call the loss a cost, OpenNMT prints |GParam|, WeSep, YOLACT and fastai name nothing at all.
_RARE_WORDS = (b"cost", b"gparam", b"xent", b"nll", b"entropy", b"train|", b" || ", b"% [", b"verlust", "损失".encode())
_HEAD = 256 * 1024  # bytes of the log's beginning that are looked at for what it is like
_NEVER = 1 << 62
_LOOK_BACK = 4096  # bytes; a block of `name | value` rows with its step at the head is shorter
_BETWEEN = 2048  # bytes; of what lies between two lines of interest
_END = 16 * 1024  # bytes of the log's end: a traceback with its message is a few kilobytes


class LineScanner:
    """Lines of a log as (line number, bytes). A carriage return ends a line, too, but does not count as one. `names`
    are further words of interest.

    While `every_line` is set, as it is within a table, all lines come; otherwise those with one of the words.
    """

    def __init__(self, stream: BinaryIO, skipped: list[Skipped], names: Sequence[str] = ()) -> None:
        self.every_line = False
        self.ends_within_a_line = False  # whether the line just yielded is the last one and no line end follows
        self._stream = stream
        self._skipped = skipped
        self.head = b""
        self.head_is_all = True
        self.end = b""
        self.last_line = 1
        self._always = (*_WORDS, *(name.lower().encode() for name in names if name))
        self._words: tuple[bytes, ...] = self._always
        self._flat = b""
        self._before = self._begin = self._end = 0

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for number, chunk in whole_lines(self._stream, self._skipped):
            if not self.head:
                first = chunk[:_HEAD].lower()
                self._words = (*self._always, *(word for word in _RARE_WORDS if word in first))
            self.last_line = number + chunk.count(b"\n")
            self.head_is_all = len(self.head) + len(chunk) <= _HEAD
            self.head += chunk[: _HEAD - len(self.head)]
            self.end = chunk[-_END:] if len(chunk) >= _END else (self.end + chunk)[-_END:]
            yield from self._chunk(number, chunk)

    def lines_before(self) -> list[bytes]:
        """A few lines ahead of the one just yielded, the nearest first."""
        return self._flat[max(0, self._begin - _LOOK_BACK) : self._begin].split(b"\n")[::-1]

    def between(self) -> tuple[bytes, bytes]:
        """What lies between the line just yielded and the one before it: the first bytes and the last."""
        before, begin = self._before, self._begin
        return self._flat[before : min(begin, before + _BETWEEN)], self._flat[max(before, begin - _BETWEEN) : begin]

    def behind(self) -> bytes:
        """The first bytes behind the line just yielded."""
        return self._flat[self._end : self._end + _BETWEEN]

    def _chunk(self, number: int, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        lower = chunk.lower()
        hits = [_find(lower, word, 0) for word in self._words]
        if min(hits) == _NEVER and not self.every_line:
            return
        flat = chunk.replace(b"\r", b"\n").replace(b"\x08", b"\n")
        counted = start = 0
        while start < len(flat):
            position = start if self.every_line else min(hits)
            if position == _NEVER:
                return
            begin = start if self.every_line else flat.rfind(b"\n", start, position) + 1 or start
            end = flat.find(b"\n", position)
            end = len(flat) if end < 0 else end
            number += chunk.count(b"\n", counted, begin)
            counted = begin
            if end > begin:
                self._before = self._end if self._flat is flat else 0
                self._flat, self._begin, self._end = flat, begin, end
                self.ends_within_a_line = end == len(flat)
                yield number, flat[begin:end]
            start = end + 1
            hits = [
                hit if hit >= start else _find(lower, word, start) for hit, word in zip(hits, self._words, strict=True)
            ]


def _find(text: bytes, word: bytes, start: int) -> int:
    position = text.find(word, start)
    return _NEVER if position < 0 else position
