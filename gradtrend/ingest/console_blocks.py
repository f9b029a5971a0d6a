"""Records of several lines, one value a line, with the step at their head, as reinforcement learning prints them."""

from __future__ import annotations

import re

from gradtrend.ingest.console_line import ConsoleLine, clean
from gradtrend.ingest.console_scan import LineScanner
from gradtrend.ingest.counters import UNKNOWN

_HEAD = re.compile(
    r"^[\s|│┃#*=\-\[>(]*(?:(?:train|training|learning|global|total|optimizer|time)[ _/]+)*"
    r"(?:steps?|iterations?|iters?|timesteps|total_timesteps|num_timesteps|global_step|updates?|epochs?)\b[\s:=#|│┃\[]*(\d[\d,]*)",
    re.IGNORECASE,
)
_TAIL = re.compile(r"\[(?:global_)?step[=: ]\s*(\d+)(?:/\d+)?\]\s*$", re.IGNORECASE)  # OLMo: ... INFO [step=100/1000]


class BlockSteps:
    """Gives the lines of a record the step that its first line names."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._refused: set[str] = set()
        self._placed = False  # a log whose lines have counters of their own has no such records

    def place(self, logged: ConsoleLine, scanner: LineScanner) -> ConsoleLine:
        """The line with its record's step, where it has no counter of its own and the record has one.

        A head that stands over more than one line of the same metric is no record's (`Epoch 3` over a hundred lines).
        """
        plan = logged.plan
        self._placed |= plan.counter is not None
        if self._placed or plan.epoch is not None or not plan.fields or "{" in logged.text:
            return logged
        name = plan.fields[0].name
        if name in self._refused:
            return logged
        step = _head(scanner)
        if step == UNKNOWN:
            return logged
        if self._last.get(name) == step:
            self._refused.add(name)
            return logged
        self._last[name] = step
        return logged._replace(counter=step)


def _head(scanner: LineScanner) -> int:
    for raw in scanner.lines_before():
        text = clean(raw)
        match = _HEAD.match(text) or _TAIL.search(text)
        if match is not None:
            return int(match[1].replace(",", ""))
    return UNKNOWN
