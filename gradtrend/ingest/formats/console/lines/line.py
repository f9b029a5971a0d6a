"""One console line -> what was logged on it: metrics, the counters that place it, and the rank that printed it."""

from __future__ import annotations

import re
from typing import NamedTuple

from gradtrend.ingest.formats.console.lines.plan import Plan, Span, plan_line
from gradtrend.ingest.reading.counters import UNKNOWN

_ANSI = re.compile(
    r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|\^\[\[[0-9;]*m|\[(?:\d{1,3};)*\d{0,3}m"
)
_RANK = re.compile(
    r"^\W{0,2}(?:\[?(?:default|(?:local_|global_)?rank|gpu|worker)[\s:=_-]?(\d+)\]?[:\s]*|\[\d+,(\d+)\]<std(?:out|err)>:?"
    r"|\(\w[\w.]* pid=(\d+)[^)]*\))|[\[( ]rank[\s:=_-]{0,2}(\d+)[\])]",
    re.IGNORECASE,
)
_RANK_DIGITS = 9  # no job has more ranks
_RANK_WITHIN = 200  # characters; a rank stands at the head of a line
_SHAPE = str.maketrans("123456789", "000000000")
_MOST_PLANS = 20_000  # shapes of line remembered; logs have a few, but for numbers printed in full


class ConsoleLine(NamedTuple):
    """What one line logged, by its plan. Counters are UNKNOWN where not given."""

    text: str
    plan: Plan
    epoch: int
    counter: int
    total: int
    rank: int


class LineReader:
    """Reads lines, remembering the shapes it has seen."""

    def __init__(self) -> None:
        self._plans: dict[str, Plan | None] = {}

    def read(self, raw: bytes) -> ConsoleLine | None:
        """The line as logged, or None where it logs neither a loss nor a gradient norm."""
        rank, text = _take_rank(clean(raw))
        shape = text.translate(_SHAPE)
        if shape in self._plans:
            plan = self._plans[shape]
            if plan is not None and any(text[start:end] != name for start, end, name in plan.checks):
                plan = plan_line(text)
        else:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            plan = self._plans[shape] = plan_line(text)
        if plan is None:
            return None
        if plan.rank is not None:
            rank = _count(text, plan.rank)
        return ConsoleLine(
            text, plan, _count(text, plan.epoch), _count(text, plan.counter), _count(text, plan.total), rank
        )


def clean(raw: bytes) -> str:
    """The text of a line without colours, quotes around the whole of it and what a terminal would not show."""
    text = raw.decode("utf-8", errors="replace")
    if "\x1b" in text or "^[" in text or "[0m" in text:
        text = _ANSI.sub("", text)
    return text.strip(' \t\x00"')


def _take_rank(text: str) -> tuple[int, str]:
    match = _RANK.search(text, 0, _RANK_WITHIN)
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
