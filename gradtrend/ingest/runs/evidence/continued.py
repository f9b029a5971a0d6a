"""Which logs go on where another stops, in the order of time, and in which order the parts of a run were written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from gradtrend.ingest.reading import Reading, last_words
from gradtrend.ingest.runs.evidence.grouping import Group, Grouping, pairs
from gradtrend.ingest.runs.evidence.likeness import Like, compare
from gradtrend.ingest.runs.evidence.traces import Trace
from gradtrend.ingest.runs.finding.places import likeness, natural

_GAP = 2  # intervals that may be missing where another folder goes on
_NEVER = float("inf")


class _Span(NamedTuple):
    """From where to where a group goes, and since when."""

    group: Group
    first: int
    last: int
    interval: int
    began: float
    formats: frozenset[str]
    fresh: bool


def _span(group: Group) -> _Span:
    times = [trace.began for trace in group if trace.began is not None]
    return _Span(
        group,
        min(trace.first for trace in group),
        max(trace.last for trace in group),
        max(trace.interval for trace in group),
        min(times, default=_NEVER),
        frozenset(trace.format for trace in group),
        any(trace.is_fresh for trace in group),
    )


def unite_continued(grouping: Grouping, there: list[Trace]) -> None:
    """Unite what goes on from the steps of another log in the same place, in the order of time."""
    in_one_folder = len({trace.path.parent for trace in there}) == 1
    spans = sorted((_span(group) for group in grouping.among(there)), key=lambda span: (span.began, span.first))
    later = [span for span in spans if not span.fresh]
    ends = [_nearest(span, _before(span, spans, in_one_folder)) for span in later]
    claimed: dict[int, list[_Span]] = {}
    for span, found in zip(later, ends, strict=True):
        if len(found) == 1:
            claimed.setdefault(id(found[0].group), []).append(span)
    for span, found in zip(later, ends, strict=True):
        if not found:
            continue
        rivals = claimed.get(id(found[0].group), []) if not in_one_folder else []
        if len(found) > 1 or any(_are_rivals(span.group, other.group) for other in rivals if other is not span):
            where = ", ".join(str(one.group[0].path) for one in found[:3])
            grouping.doubts.append((span.group[0], f"goes on from the steps of {where}, or is a run of its own"))
        else:
            grouping.unite(found[0].group[0], span.group[0])


def _before(span: _Span, spans: list[_Span], in_one_folder: bool) -> list[_Span]:
    """The groups from whose steps this one may go on: begun earlier, of the same format, without a gap."""
    return [
        other
        for other in spans
        if other.first < span.first
        and (in_one_folder or span.first <= other.last + _GAP * max(span.interval, other.interval))
        and (_NEVER in (span.began, other.began) or other.began <= span.began)
        and span.formats & other.formats
    ]


def _nearest(span: _Span, earlier: list[_Span]) -> list[_Span]:
    """Those that stop nearest to where the group begins; of several the one most alike in name, then the last begun."""
    if not earlier:
        return []
    least = min(abs(other.last - span.first) for other in earlier)
    close = [other for other in earlier if abs(other.last - span.first) <= least + span.interval]
    if len(close) > 1:
        alike = [likeness(str(other.group[0].path), str(span.group[0].path)) for other in close]
        close = [other for other, shared in zip(close, alike, strict=True) if shared == max(alike)]
    if len(close) > 1 and len({other.began for other in close} - {_NEVER}) == len(close):
        close = [max(close, key=lambda other: other.began)]
    return close


def _are_rivals(a: Group, b: Group) -> bool:
    """Whether two groups that both may go on from a third are of different fits."""
    return any(compare(x, y) is Like.OTHER for x, y in pairs(a, b))


def in_order(group: Iterable[Trace], age: Callable[[Trace], int]) -> list[Trace]:
    """The parts of a run in the order in which they were written: by time, rotated pieces oldest first, by steps."""
    traces = list(group)
    timed = all(trace.began is not None for trace in traces)

    def place(trace: Trace) -> tuple[float, int, int, object, int]:
        began = trace.began if timed and trace.began is not None else 0.0
        first = trace.first if trace.main is not None else 0
        return began, -age(trace), first, natural(str(trace.path)), trace.part

    return sorted(traces, key=place)


def with_last_words(ordered: Sequence[Trace]) -> list[Trace]:
    """The parts of a run in the order in which they were written: those after which training went on, in a part of the
    same format behind them, without what their last lines say of an end.
    """
    return [
        replace(trace, reading=_going_on(trace.reading))
        if any(_goes_on(trace, later) for later in ordered[at:])
        else trace
        for at, trace in enumerate(ordered, start=1)
    ]


def _goes_on(trace: Trace, later: Trace) -> bool:
    if trace.main is None or later.main is None or trace.format != later.format:
        return False
    return later.first > trace.first and later.last > trace.last


def _going_on(reading: Reading) -> Reading:
    notes = tuple(note for note in reading.notes if note.kind not in last_words.KINDS)
    return replace(reading, notes=notes, goes_on=True)
