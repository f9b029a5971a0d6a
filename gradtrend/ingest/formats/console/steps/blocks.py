"""Records of several lines, one value a line, with the step at their head, as reinforcement learning prints them."""

from __future__ import annotations

import re
from collections import Counter

from gradtrend.ingest.formats.console.lines.labels import without_level
from gradtrend.ingest.formats.console.lines.line import ConsoleLine, clean
from gradtrend.ingest.formats.console.scan import LineScanner
from gradtrend.ingest.reading.counters import UNKNOWN

_HEAD = re.compile(
    r"^[\s|│┃#*=\-\[>(]*(?:(?:train|training|learning|global|total|optimizer|time)[ _/]+)*"
    r"(?:steps?|iterations?|iters?|timesteps|total_timesteps|num_timesteps|global_step|updates?|epochs?)\b[\s:=#|│┃\[]*(\d[\d,]*)",
    re.IGNORECASE,
)
# Coqui: `--> STEP: 24/377 -- GLOBAL_STEP: 370024`
_GLOBAL = re.compile(r"\bglobal[_ ]step\W{1,3}(\d[\d,]*)", re.IGNORECASE)
# OLMo: `... INFO [step=100/1000,epoch=0]`, Composer: `[batch=100/1000]:`
_TAIL = re.compile(r"\[(?:global_)?(?:step|batch)[=: ]\s*(\d+)(?:/\d+)?(?:,[^\[\]]*)?\]:?\s*$", re.IGNORECASE)
_RECORDS_A_DAMAGED_ONE = 10  # a record that has lost its head to damage stands among many whole ones
_MOST_MISSES = 500  # rows without a head above them, and none with one: the log has no records


class BlockSteps:
    """Gives the lines of a record the step that its first line names."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, str]] = {}
        self._refused: set[str] = set()
        self._placed: Counter[str] = Counter()
        self._again: Counter[str] = Counter()
        self._misses = 0
        self._owner: ConsoleLine | None = None  # the last line with a counter of its own
        self._owned: set[str] = set()  # what such lines log

    def place(self, logged: ConsoleLine, raw: bytes, scanner: LineScanner) -> ConsoleLine:
        """The line with its record's step, where it has no counter of its own and the record has one."""
        plan = logged.plan
        if plan.place.counter is not None:
            self._owner = logged
            self._owned.update(field.name for field in plan.fields)
            return logged
        if plan.place.epoch is not None or not plan.fields or "}" in logged.text.partition("{")[2]:
            return logged
        if self._owner is not None:
            return self._below(self._owner, logged, raw)
        return self._under_head(logged, scanner)

    def _below(self, owner: ConsoleLine, logged: ConsoleLine, raw: bytes) -> ConsoleLine:
        """An indented line of other metrics under a line with a step: the norms of the layers, mostly."""
        new = all(field.name not in self._owned for field in logged.plan.fields)
        if not new or raw[:1] not in (b" ", b"\t", b"-", b"*", b"|"):
            return logged
        return logged._replace(epoch=owner.epoch, counter=owner.counter, total=owner.total)

    def _under_head(self, logged: ConsoleLine, scanner: LineScanner) -> ConsoleLine:
        """A line under one that only names a step.

        A head that stands over more than one line of the same metric is no record's (`Epoch 3` over a hundred lines).
        """
        first = logged.plan.fields[0]
        name, printed = first.name, logged.text[first.start : first.end]
        given_up = name in self._refused or (self._misses >= _MOST_MISSES and not self._last)
        step = UNKNOWN if given_up else _head(scanner)
        if step == UNKNOWN:
            self._misses += 1
            return logged
        last, value = self._last.get(name, (UNKNOWN, ""))
        if last == step and value != printed:  # equal values are a line that two loggers print
            self._again[name] += 1
            if self._again[name] * _RECORDS_A_DAMAGED_ONE > self._placed[name]:
                self._refused.add(name)
            return logged
        self._placed[name] += 1
        self._last[name] = (step, printed)
        return logged._replace(counter=step)


def _head(scanner: LineScanner) -> int:
    for raw in scanner.lines_before():
        text = without_level(clean(raw))
        match = _GLOBAL.search(text) or _HEAD.match(text) or _TAIL.search(text)
        if match is not None:
            return int(match[1].replace(",", ""))
    return UNKNOWN
