"""Epochs that only a line above the rows names: `Training at epoch 2 (total 4)`, `Epoch: 2/4 ---`.

It matters where the iterations begin again below each such line. Steps that go on throughout, and those of a run that
is resumed, stay as they are.
"""

from __future__ import annotations

import re

from gradtrend.ingest.formats.console.lines.labels import without_level
from gradtrend.ingest.formats.console.lines.line import ConsoleLine, clean
from gradtrend.ingest.formats.console.scan import LineScanner
from gradtrend.ingest.reading.counters import UNKNOWN

_HEAD = re.compile(
    r"^[\W\d_]*(?:(?:info|debug|warning)\W+)?(?:(?:start(?:ing|ed)?|begin(?:ning)?|train(?:ing)?|at|of|in|for|the|now)\W+){0,4}"
    r"epoch(?:\W{1,3}|_)(\d{1,9})(?![\w.])(?!\s*[:,|-]?\s*(?:loss|step|iter|batch))",
    re.IGNORECASE,
)


class EpochHeads:
    """Gives rows with a counter alone the epoch of the line above the first of them."""

    def __init__(self) -> None:
        self._epoch = UNKNOWN
        self._start = UNKNOWN  # the first counter
        self._last = UNKNOWN

    def place(self, logged: ConsoleLine, scanner: LineScanner) -> ConsoleLine:
        """The line with its epoch, where it names none and a line above it does."""
        if logged.epoch != UNKNOWN or logged.counter == UNKNOWN or logged.plan.place.bar:
            return logged
        if self._start == UNKNOWN:
            self._start, self._epoch = logged.counter, _head(scanner, UNKNOWN)
        elif self._epoch != UNKNOWN and self._start >= logged.counter <= self._last:
            self._epoch = _head(scanner, self._epoch)
        self._last = logged.counter
        return logged if self._epoch == UNKNOWN else logged._replace(epoch=self._epoch)


def _head(scanner: LineScanner, otherwise: int) -> int:
    """The epoch of the nearest line above that names one."""
    for raw in scanner.lines_before():
        match = _HEAD.match(without_level(clean(raw)))
        if match is not None:
            return int(match[1])
    return otherwise
