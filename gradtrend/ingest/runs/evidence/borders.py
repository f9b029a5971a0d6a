"""What the text of a console log says between two of its rows: a trainer that ends, starts again, or goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gradtrend.errors import InputError
from gradtrend.ingest.files.streams import open_log, whole_lines

_MOST_BYTES = 64 * 1024 * 1024  # of logs without steps, whose every line is looked at: a second
_LONGEST_LINE = 4000
_FEW_ROWS = 3
_RESUMED = re.compile(
    rb"resum(?:ed|ing)|(?:restor|recover)(?:ed|ing)|continuing (?:from|train)|picking up"
    rb"|(?:load(?:ed|ing)|found|using) (?:\w+ ){0,3}(?:checkpoint|ckpt|snapshot|state)|auto-?resum|warm[- ]restart",
    re.IGNORECASE,
)
_NOT_RESUMED = re.compile(
    rb"\b(?:no|not|without|couldn't|cannot|could not)\b|from scratch|resume\w*['\"]?\s*[=:]",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    rb"train_runtime|train(?:ing)?(?: (?:is|has))? (?:complet|finish|done|end|took|time)"
    rb"|(?:finish|complet)ed? (?:train|run|job|exp)"
    rb"|saved? (?:\w+ ){0,3}(?:model|weights)|total (?:training |train |elapsed )?time|\bdone\b|run summary",
    re.IGNORECASE,
)
_BANNER = re.compile(
    rb"\bargs?\b\W{0,3}(?:\{|namespace|[=:])|namespace\(|running training|num examples|config(?:uration)?\s*[:=]"
    rb"|(?:start|launch|begin)(?:ing|ed)? (?:\w+ ){0,2}(?:run|train|job|exp|trial|fold|seed)"
    rb"|loading (?:the )?(?:data|model|train)|world_?size|\bseed\W{1,3}\d|\bpython3? "
    rb"|(?:number of|trainable|model has) .{0,20}param|\bjob\b.{0,20}\d|\btrial\b|\bfold\b",
    re.IGNORECASE,
)
_EPOCH = re.compile(rb"""\bepochs?['"]?\s{0,3}[:=\[(]?\s{0,3}(\d{1,9}(?:\.\d{1,9})?)(?![\w.])""", re.IGNORECASE)


_COUNT = re.compile(rb"(?<![\w./-])(\d{1,9})\s?/\s?(\d{1,9})(?![\w./-])")  # 12/500


class Border(NamedTuple):
    """What stands between a row and the one before it, `row` being its line.

    `closes` says that a trainer's last word stands there, `opens` its first one; `epoch_back` that the epoch counter
    has gone back to where it began, `count_back` that this holds of a counter with its total while no epoch went on.
    """

    row: int
    closes: bool
    opens: bool
    epoch_back: bool
    count_back: bool


def says_resumed(path: Path, first: int, last: int) -> bool:
    """Whether the lines from `first` on and ahead of `last` say that training went on from a checkpoint."""
    lines = (text for number, text in _lines(path, last) if first <= number < last)
    return any(_says_resumed(text) for text in lines)


def prints_total(path: Path, row: int) -> bool:
    """Whether a line has a counter with its total (`12/500`)."""
    return any(n == row and _COUNT.search(text) is not None for n, text in _lines(path, row + 1))


def borders(path: Path, rows: Sequence[int], between: Sequence[tuple[int, int]] | None = None) -> list[Border]:
    """The rows ahead of which a trainer may have started again; `rows` are the lines that logged something, in order.

    With `between`, pairs of neighbouring rows, what stands between these alone is looked at, and the first row.
    Nothing is said of what is very long.
    """
    try:
        too_long = path.is_file() and path.stat().st_size > _MOST_BYTES
    except OSError:
        too_long = True
    return [] if too_long else list(_borders(path, rows, between))


class _Counter:
    """A counter printed in the rows: its first and its last number."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self._first = 0.0
        self._last: float | None = None

    def read(self, text: bytes) -> int:
        """Take the number of a row: -1 where it has gone back to the first, 1 where it went on, else 0."""
        found = self._pattern.search(text)
        if found is None:
            return 0
        now, last = float(found[1]), self._last
        self._last = now
        if last is None:
            self._first = now
            return 0
        return -1 if now < last and self._is_first(now, last) else int(now > last)

    def _is_first(self, now: float, last: float) -> bool:
        """Whether a number is as good as the first: an epoch is parted by what it holds, 0.07 here are 0.1 there."""
        return now <= self._first or (self._first < 1 and now <= min(_FEW_ROWS * self._first, last / _FEW_ROWS))


def _borders(path: Path, rows: Sequence[int], between: Sequence[tuple[int, int]] | None) -> Iterator[Border]:
    wanted = set(rows) if between is None else {rows[0], *(row for pair in between for row in pair)}
    read = None if between is None else wanted | {line for a, b in between for line in range(a, b)}
    closes = opens = resumed = begun = False
    epoch, count = _Counter(_EPOCH), _Counter(_COUNT)
    for number, text in _lines(path, max(wanted) + 1):
        if not text or (read is not None and number not in read):
            continue
        if number not in wanted:
            closes = closes or _CLOSING.search(text) is not None
            opens = opens or _BANNER.search(text) is not None
            resumed = resumed or _says_resumed(text)
            continue
        by_epoch, by_count = epoch.read(text), count.read(text)
        if begun and not resumed and (closes or opens or by_epoch < 0):
            yield Border(number, closes, opens, by_epoch < 0, by_count < 0 and by_epoch <= 0)
        begun, closes, opens, resumed = True, False, False, False


def _says_resumed(text: bytes) -> bool:
    return _RESUMED.search(text) is not None and _NOT_RESUMED.search(text) is None


def _lines(path: Path, until: int) -> Iterator[tuple[int, bytes]]:
    """The lines ahead of the line `until`, each with its number; none of what cannot be read again, as a pipe."""
    try:
        if not path.is_file():
            return
        with open_log(path) as stream:
            for first, chunk in whole_lines(stream, []):
                for number, line in enumerate(chunk.split(b"\n"), start=first):
                    if number >= until:
                        return
                    yield number, line[:_LONGEST_LINE]
    except (OSError, InputError):
        return
