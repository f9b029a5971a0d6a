"""One console line -> what was logged on it: metrics, the counters that place it, and the rank that printed it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from gradtrend.ingest.formats.console.lines.grammar import value_of
from gradtrend.ingest.formats.console.lines.places import Span
from gradtrend.ingest.formats.console.lines.plan import Plan, plan_line
from gradtrend.ingest.formats.console.lines.programs import program_line
from gradtrend.ingest.reading.counters import UNKNOWN

_ANSI = re.compile(
    r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|\^\[\[[0-9;]*m|\[(?:\d{1,3};)*\d{0,3}m"
)
# What Keras prints right behind its bar: `loss: 1.37Batch 8: Invalid loss, terminating training`, `loss: 1.3Epoch 1/9`.
_BEHIND_A_BAR = re.compile(r"(?<=[\w.])(?:Batch \d+: Invalid loss.*|Epoch \d+/\d+)$")
_RANK_AHEAD = re.compile(
    r"^\[[A-Za-z][\w.-]*:(\d+)/\d+\]"
    r"|^\W{0,2}(?:\[?(?:default|(?:local_|global_)?rank|gpu|worker)[\s:=_-]?(\d+)\]?[:\s]*"
    r"|\[\d+,(\d+)\]<std(?:out|err)>:?|\(\w[\w.]* pid=(\d+)[^)]*\))",
    re.IGNORECASE,
)
_RANK_WITHIN = re.compile(r"[\[( ]rank[\s:=_-]{0,2}(\d+)[\])]", re.IGNORECASE)
_RANK_DIGITS = 9  # no job has more ranks
_RANK_UNTIL = 200  # characters; a rank stands at the head of a line
_SHAPE = str.maketrans("123456789", "000000000")
_COMMA_OF_NUMBER = re.compile(r"(?<=\d),(?=\d)")
_METRIC_IS = r"(?:loss|norm|lr|rate|verlust|perte)['\"]?\s*[:=]\s*[-+]?"
_DECIMAL_COMMA = re.compile(rf"{_METRIC_IS}(?:0,\d+|\d+,(?:\d{{1,2}}|\d{{4,}}))(?=[\s;|/)\]}}]|$)", re.IGNORECASE)
_DECIMAL_POINT = re.compile(rf"{_METRIC_IS}\d+\.\d", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_LAST_DECIMALS = re.compile(r"\.(\d*)$")
_MOST_PLANS = 20_000  # shapes of line remembered; logs have a few, but for numbers printed in full
_MOST_KEPT = 64 << 20  # characters of these


class ConsoleLine(NamedTuple):
    """What one line logged, by its plan. Counters are UNKNOWN where not given.

    `rounding` is what the counter is printed to: 1000 for `step:12K`.
    """

    text: str
    plan: Plan
    epoch: int
    counter: int
    total: int
    rank: int
    rounding: int = 1


class LineReader:
    """Reads lines, remembering the shapes it has seen.

    `decimal_comma` says that the log writes 0,001 for a thousandth; `wanted` are metrics for which a line is read, too.
    """

    def __init__(self, wanted: frozenset[str] = frozenset()) -> None:
        self.decimal_comma = False
        self._wanted = wanted
        self._plans: dict[str, Plan | None] = {}
        self._kept = 0  # characters of the shapes
        self._looked_at = -1

    def look_at(self, head: bytes) -> None:
        """Tell from the first bytes of a log how it writes its numbers; the same bytes are looked through once."""
        if len(head) != self._looked_at:
            self._looked_at = len(head)
            self.decimal_comma = has_decimal_commas(head)

    def placed(self) -> frozenset[str]:
        """What the lines that have a step look like, but for their digits."""
        plans = self._plans.items()
        return frozenset(_form(shape) for shape, plan in plans if plan is not None and plan.place.counter is not None)

    def is_cut(self, text: str) -> bool:
        """Whether a line that ends in a number is the beginning of what other lines look like, or has fewer decimals
        than all others of its form.
        """
        form, decimals = _form(text), _last_decimals(text)
        alike: set[int] = set()
        for shape, plan in self._plans.items():
            if plan is None or shape == text.translate(_SHAPE):
                continue
            other = _form(shape)
            if len(other) > len(form) and other.startswith(form):
                return True
            if other == form:
                alike.add(_last_decimals(shape))
        return len(alike) == 1 and decimals < alike.pop()

    def read(self, raw: bytes) -> ConsoleLine | None:
        """The line as logged, or None where it logs neither a loss nor a gradient norm."""
        rank, text = take_rank(clean(raw))
        if self.decimal_comma:
            text = _COMMA_OF_NUMBER.sub(".", text)
        shape = text.translate(_SHAPE)
        if shape in self._plans:
            plan = self._plans[shape]
            if plan is not None and any(text[start:end] != name for start, end, name in plan.checks):
                plan = _plan(text, self._wanted)
        else:
            self._kept += len(shape)
            if len(self._plans) >= _MOST_PLANS or self._kept > _MOST_KEPT:
                self._plans.clear()
                self._kept = len(shape)
            plan = self._plans[shape] = _plan(text, self._wanted)
        if plan is None:
            return None
        place = plan.place
        if place.rank is not None:
            rank = _rank(_count(text, place.rank))
        epoch, total = _count(text, place.epoch), _count(text, place.total)
        if place.short and place.counter is not None:
            counter, rounding = _short_count(text[slice(*place.counter)], place.short)
            return ConsoleLine(text, plan, epoch, counter, total, rank, rounding)
        return ConsoleLine(text, plan, epoch, _count(text, place.counter), total, rank)


def _rank(count: int) -> int:
    """The rank of that number; UNKNOWN where no job has so many: it is a time, or an id."""
    return count if count < 10**_RANK_DIGITS else UNKNOWN


def _short_count(printed: str, unit: str) -> tuple[int, int]:
    """A count in thousands or millions, and what it is rounded to: 12, K -> 12000, 1000; 1.5, K -> 1500, 100."""
    value = value_of(printed, unit)
    rounding = value_of("1", unit)
    if value is None or rounding is None or not abs(value) < 10**_INT64_DIGITS:
        return UNKNOWN, 1
    decimals = len(printed.partition(".")[2])
    return round(value), max(1, round(rounding / 10**decimals))


def is_fragment(text: str, whole: Collection[str]) -> bool:
    """Whether a line is the end of what others look like, as `LineReader.placed` says: its head is lost."""
    form = _form(text)
    return any(len(other) > len(form) and other.endswith(form) for other in whole)


def _plan(text: str, wanted: frozenset[str]) -> Plan | None:
    return program_line(text) or plan_line(text, wanted)


def _form(text: str) -> str:
    """A line without its digits, whatever their number."""
    return _DIGITS.sub("0", text)


def _last_decimals(text: str) -> int:
    """How many decimals the number has that ends the line."""
    match = _LAST_DECIMALS.search(text)
    return len(match[1]) if match is not None else 0


def middle_left_out(raw: bytes, most: int) -> bytes:
    """Of a line of more than so many bytes the head and the tail, none of their words and numbers cut."""
    if len(raw) <= most:
        return raw
    half = most // 2
    head, tail = raw[:half], raw[-half:]
    head = head[: head.rfind(b" ") + 1] or head + b"_ "  # what ends in _ is no number
    return head + (tail[tail.find(b" ") :] if b" " in tail else b" _" + tail)


def has_decimal_commas(head: bytes) -> bool:
    """Whether the metrics in the first bytes of a log are written with a decimal comma: some cannot be read otherwise
    (0,001 is no group of thousands), and none has a point.
    """
    text = head.decode("utf-8", errors="replace")
    return _DECIMAL_COMMA.search(text) is not None and _DECIMAL_POINT.search(text) is None


def clean(raw: bytes) -> str:
    """The text of a line without colours, quotes around the whole of it and what a terminal would not show."""
    text = raw.decode("utf-8", errors="replace")
    if "\x1b" in text or "^[" in text or "[0m" in text:
        text = _ANSI.sub("", text)
    if "] - " in text:
        text = _BEHIND_A_BAR.sub("", text)
    return text.strip(' \t\x00"')


def take_rank(text: str) -> tuple[int, str]:
    """The rank that printed a line (UNKNOWN where it does not say) and the line without it."""
    match = _RANK_AHEAD.match(text)
    if match is None and ("rank" in text or "RANK" in text or "Rank" in text):
        match = _RANK_WITHIN.search(text, 0, _RANK_UNTIL)
    if match is None:
        return UNKNOWN, text
    rank = int(next(group for group in match.groups() if group is not None)[:_RANK_DIGITS])
    return rank, text[: match.start()] + " " + text[match.end() :] if match.start() else text[match.end() :]


_INT64_DIGITS = 18  # as many decimal digits as always fit 64 bits; a longer number is no counter


def _count(text: str, span: Span | None) -> int:
    if span is None:
        return UNKNOWN
    digits = text[span[0] : span[1]].replace(",", "").partition(".")[0].lstrip("+")
    return int(digits) if digits.isdigit() and len(digits) < _INT64_DIGITS else UNKNOWN
