"""Steps of rows that have none, from the progress bar around them.

transformers prints a dict without its step, and tqdm draws its bar before it and, at the step that it then stands at,
again behind it. A bar that was not drawn anew, or rows that come late through a pipe, give steps that do not go on as
steps do: then they are not used.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gradtrend.ingest.formats.console.rows import ConsoleRows
from gradtrend.ingest.formats.console.scan import LineScanner

_BAR = re.compile(rb"(\d{1,12})/(\d{1,12}) \[[\d:?]")
_FEW_MISSING = 0.1  # share of rows without a bar: those at the end of a block that was read, or beside another bar
_FEWEST_OF_JOB = 3  # rows of each job where a log holds several
_MOST_ROWS = 200_000  # a log with more rows than that under bars names its steps elsewhere

_Bar = tuple[int, int]


class _Seen(NamedTuple):
    """The bars before and behind one row, as (count, total); None for none."""

    line: int
    before: _Bar | None
    behind: _Bar | None = None


class BarSteps:
    """Watches rows without a step for the bars around them."""

    def __init__(self) -> None:
        self._seen: list[_Seen] = []
        self.waits = False  # for the bar behind the last row

    def watch(self, number: int, raw: bytes, scanner: LineScanner) -> None:
        """Look at the line of that number, which `scanner` has just given and which has no step."""
        if len(self._seen) < _MOST_ROWS:
            self._seen.append(_Seen(number, _bar(raw, -1) or _bar(scanner.between()[1], -1)))
            self.waits = True

    def fill(self, rows: ConsoleRows, scanner: LineScanner) -> None:
        """Give the rows their steps, where what the bars say goes on as steps do."""
        if self.waits:
            self.close(scanner.behind())
        if not any(seen.before or seen.behind for seen in self._seen):
            return
        found = [[one.before for one in self._seen], [one.behind for one in self._seen]]
        steps = max((_steps(bars) for bars in sorted(found, key=lambda bars: bars.count(None))), key=_regularity)
        if steps:
            rows.place({one.line: step for one, step in zip(self._seen, steps, strict=True)})

    def close(self, text: bytes) -> None:
        """Note the bar that comes first in the text behind the last row."""
        self._seen[-1] = self._seen[-1]._replace(behind=_bar(text, 0))
        self.waits = False


def _bar(text: bytes, which: int) -> _Bar | None:
    """Count and total of the first bar (0) or the last (-1) of a text."""
    bars = _BAR.findall(text)
    return (int(bars[which][0]), int(bars[which][1])) if bars else None


def _steps(bars: Sequence[_Bar | None]) -> list[int]:
    """A step for each row, or nothing where they do not rise under one total (a second job begins again)."""
    totals = Counter(bar[1] for bar in bars if bar is not None)
    if not totals:
        return []
    total = totals.most_common(1)[0][0]
    known = [index for index, bar in enumerate(bars) if bar is not None and bar[1] == total]
    steps = [bars[index][0] for index in known]  # type: ignore[index]
    if len(bars) - len(known) > _FEW_MISSING * len(bars):
        return []
    begins = _begins(steps)
    if not begins:
        return []
    bounds = [0, *(known[at] for at in begins[1:]), len(bars)]
    return [step for start, end in itertools.pairwise(bounds) for step in _filled(bars[start:end], total)]


def _begins(steps: Sequence[int]) -> list[int]:
    """Where in the steps the bar of each job begins, the second where it stands at its start again; nothing where the
    steps do not rise within a job.
    """
    begins = [0]
    for index, (earlier, later) in enumerate(itertools.pairwise(steps), 1):
        if later <= earlier:
            if later > steps[0]:
                return []
            begins.append(index)
    lengths = np.diff([*begins, len(steps)])
    return begins if len(begins) == 1 or int(lengths.min()) >= _FEWEST_OF_JOB else []


def _filled(bars: Sequence[_Bar | None], total: int) -> list[int]:
    """A step for each row of one job."""
    known = [index for index, bar in enumerate(bars) if bar is not None and bar[1] == total]
    steps = [bars[index][0] for index in known]  # type: ignore[index]
    if len(known) == len(bars):
        return steps
    # A line through the first and the last, so that a row at an end has a step as well.
    apart = (steps[-1] - steps[0]) / (known[-1] - known[0])
    filled = np.interp(np.arange(len(bars)), known, steps)
    filled[: known[0]] = steps[0] - apart * np.arange(known[0], 0, -1)
    filled[known[-1] + 1 :] = steps[-1] + apart * np.arange(1, len(bars) - known[-1])
    return [max(0, int(step)) for step in filled]


def _regularity(steps: Sequence[int]) -> float:
    """The share of rows at the usual distance; -1 where there is no step."""
    if len(steps) < 2:
        return float(len(steps)) - 1
    apart = Counter(np.diff(steps).tolist())
    return apart.most_common(1)[0][1] / (len(steps) - 1)
