"""Logs -> runs, by evidence: identity, equal values, continued steps in the order of time, place; names last.

Each step unites groups of logs, and none unites two fits that begin at the first step with other values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from gradtrend.ingest.runs.evidence.likeness import Like, branches, candidates, clashes, compare, near
from gradtrend.ingest.runs.evidence.traces import Trace
from gradtrend.ingest.runs.places import likeness, names, natural, without_rank

_COMPARED = 6  # logs of a group that are compared with those of another
_GAP = 2  # intervals that may be missing where another folder goes on
_SECONDS_APART = 120  # ranks of one job open their logs within this time
_NEVER = float("inf")
_STATE = "trainer-state"

Group = list[Trace]


class Grouping:
    """The groups so far, at first one a log. `doubts` says of a trace what might as well be read otherwise.

    `single_folder` are the formats whose files in one folder are of one run by their tools' own rules.
    """

    def __init__(self, traces: Sequence[Trace], single_folder: frozenset[str]) -> None:
        self.traces = tuple(traces)
        self.single_folder = single_folder
        self.doubts: list[tuple[Trace, str]] = []
        self._tried: set[tuple[int, int]] = set()
        self._owner: dict[int, Group] = {id(trace): [trace] for trace in traces}

    def of(self, trace: Trace) -> Group:
        """The group of a trace."""
        return self._owner[id(trace)]

    def among(self, traces: Iterable[Trace]) -> list[Group]:
        """The groups of some traces, each once, in the order of the traces."""
        return list({id(group): group for group in (self.of(trace) for trace in traces)}.values())

    def not_tried(self, a: Trace, b: Trace) -> bool:
        """Whether two traces are compared for the first time: near ones are first, and come again among those far."""
        pair = (id(a), id(b))
        new = pair not in self._tried
        self._tried.add(pair)
        return new

    @property
    def groups(self) -> list[Group]:
        """All groups."""
        return self.among(self.traces)

    def unite(self, a: Trace, b: Trace) -> None:
        """Make one group of those of two traces."""
        into, from_ = self.of(a), self.of(b)
        if into is not from_:
            into.extend(from_)
            for trace in from_:
                self._owner[id(trace)] = into


def grouped(traces: Sequence[Trace], single_folder: frozenset[str]) -> Grouping:
    """The traces, all with a norm or a loss, by run."""
    grouping = Grouping(sorted(traces, key=lambda t: (natural(str(t.path)), t.part)), single_folder)
    if len(traces) < 2:
        return grouping
    _unite_identical(grouping)
    for scope, steps in (
        (_folder, (_unite_equal, _continue, _unite_ranks, _unite_formats)),
        (_home, (_unite_equal, _unite_histories, _continue, _unite_ranks, _unite_formats)),
        (_parent, (_unite_equal, _continue, _unite_ranks)),
        (_anywhere, (_unite_equal,)),
    ):
        for step in steps:
            _each_place(grouping, scope, step)
    _unite_named(grouping)
    return grouping


def _folder(trace: Trace) -> Path:
    return trace.path.parent


def _home(trace: Trace) -> Path:
    return trace.home


def _parent(trace: Trace) -> Path:
    return trace.home.parent


def _anywhere(trace: Trace) -> None:
    """One place for all."""


def _unite_identical(grouping: Grouping) -> None:
    """Unite what has one identity: its tool's own word."""
    known: dict[str, Trace] = {}
    for trace in grouping.traces:
        if trace.identity is not None:
            grouping.unite(known.setdefault(trace.identity, trace), trace)


def _unite_equal(grouping: Grouping, there: list[Trace]) -> None:
    """Unite what has the same values."""
    for i, j in candidates(there):
        a, b = there[j], there[i]
        if (
            grouping.of(a) is not grouping.of(b)
            and grouping.not_tried(a, b)
            and compare(a, b) is Like.SAME
            and not _are_apart(grouping.of(a), grouping.of(b))
        ):
            grouping.unite(a, b)


def _unite_histories(grouping: Grouping, there: list[Trace]) -> None:
    """Unite trainer states that have a beginning in common: a run takes its history along when it is resumed."""
    states = [trace for trace in there if trace.format == _STATE]
    for trace in states[1:]:
        for other in states[:_COMPARED]:
            if grouping.of(other) is not grouping.of(trace) and branches(other, trace):
                grouping.unite(other, trace)


def _pairs(a: Group, b: Group) -> Iterable[tuple[Trace, Trace]]:
    return ((x, y) for x in a[:_COMPARED] for y in b[:_COMPARED])


def _are_apart(a: Group, b: Group) -> bool:
    """Whether two groups hold fits of their own: parts of one file, or logs whose values cannot be of one."""
    return any(_same_file(x, y) or _other_fit(x, y) for x, y in _pairs(a, b))


def _same_file(a: Trace, b: Trace) -> bool:
    return a.part != b.part and a.path == b.path


def _other_fit(a: Trace, b: Trace) -> bool:
    if a.format == b.format:
        return a.is_fresh and b.is_fresh and compare(a, b) is Like.OTHER
    return clashes(a, b)


def _each_place(
    grouping: Grouping, scope: Callable[[Trace], Hashable], step: Callable[[Grouping, list[Trace]], None]
) -> None:
    """A step on the logs in one place, for each place in which several groups have some."""
    places: dict[Hashable, list[Trace]] = {}
    for trace in grouping.traces:
        places.setdefault(scope(trace), []).append(trace)
    for there in places.values():
        if len(there) > 1 and len(grouping.among(there)) > 1:
            step(grouping, there)


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


def _continue(grouping: Grouping, there: list[Trace]) -> None:
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
    return any(compare(x, y) is Like.OTHER for x, y in _pairs(a, b))


def _unite_ranks(grouping: Grouping, there: list[Trace]) -> None:
    """Unite logs of one format that are named as ranks, or were opened together, and log nearly the same."""
    sets: dict[tuple[str, str, bool], list[Trace]] = {}
    for trace in there:
        name = without_rank(trace.path)
        if name is not None:
            sets.setdefault((trace.format, name, True), []).append(trace)
        elif trace.format in grouping.single_folder:
            sets.setdefault((trace.format, str(trace.path.parent), False), []).append(trace)
    for (_, _, named), (first, *others) in sets.items():
        for other in others:
            if grouping.of(first) is not grouping.of(other) and _is_rank(first, other, named):
                grouping.unite(first, other)


def _is_rank(a: Trace, b: Trace, named: bool) -> bool:
    if _same_file(a, b):
        return False
    if named:
        return near(a, b) or compare(a, b) is not Like.OTHER
    if a.began is None or b.began is None or abs(a.began - b.began) > _SECONDS_APART:
        return False
    return near(a, b)


def _in_common(a: Trace, b: Trace) -> bool:
    """Whether two logs have a quantity in common."""
    return any(x is not None and y is not None for x, y in ((a.norm, b.norm), (a.loss, b.loss)))


def _unite_formats(grouping: Grouping, there: list[Trace]) -> None:
    """Unite logs in one place where each format has one fit, and those of which one has the norm, the other the loss."""
    by_format: dict[str, list[Trace]] = {}
    for trace in there:
        by_format.setdefault(trace.format, []).append(trace)
    for name, traces in by_format.items():
        _unite_complementary(grouping, traces, name in grouping.single_folder)
    loose = {
        name: [t for t in traces if len({o.format for o in grouping.of(t)}) == 1] for name, traces in by_format.items()
    }
    if any(len(grouping.among(traces)) > 1 for traces in loose.values()):
        return
    whole = [group for group in grouping.among(there) if len({trace.format for trace in group}) > 1]
    alone = [traces[0] for traces in loose.values() if traces]
    if len(whole) == 1 and not any(len(grouping.among(traces)) > 1 for traces in by_format.values()):
        alone = [whole[0][0], *alone]
    for other in alone[1:]:
        if not _are_apart(grouping.of(alone[0]), grouping.of(other)):
            grouping.unite(alone[0], other)


def _unite_complementary(grouping: Grouping, traces: list[Trace], single_folder: bool) -> None:
    """Unite logs of one format that have no quantity in common, and those that their tool says are of one run."""
    left: list[Trace] = []
    for group in grouping.among(traces):
        mate = next((one for one in left[-_COMPARED:] if _completes(grouping.of(one), group, single_folder)), None)
        if mate is None:
            left.append(group[0])
        else:
            grouping.unite(mate, group[0])


def _completes(a: Group, b: Group, single_folder: bool) -> bool:
    pairs = list(_pairs(a, b))
    if any(_same_file(x, y) for x, y in pairs):
        return False
    if not any(_in_common(x, y) for x, y in pairs):
        return True
    return single_folder and all(x.path.parent == y.path.parent and compare(x, y) is Like.UNKNOWN for x, y in pairs)


def _unite_named(grouping: Grouping) -> None:
    """Unite a loose log with the one run below its folder that it names, or with the only one there."""
    above: dict[Path, list[Trace]] = {}
    for trace in grouping.traces:
        for folder in trace.path.parent.parents:
            above.setdefault(folder, []).append(trace)
    for trace in grouping.traces:
        below = [group for group in grouping.among(above.get(trace.path.parent, ())) if group is not grouping.of(trace)]
        named = [group for group in below if any(names(trace.path, one.home) for one in group)]
        found = named or (below if len(grouping.of(trace)) == 1 else [])
        if len(found) == 1 and _may_be_one(grouping.of(trace), found[0]):
            grouping.unite(found[0][0], trace)


def _may_be_one(a: Group, b: Group) -> bool:
    return not {trace.format for trace in a} & {trace.format for trace in b} and not _are_apart(a, b)


def in_order(group: Iterable[Trace], age: Callable[[Trace], int]) -> list[Trace]:
    """The parts of a run in the order in which they were written: by time, rotated pieces oldest first, by steps."""
    traces = list(group)
    timed = all(trace.began is not None for trace in traces)

    def place(trace: Trace) -> tuple[float, int, int, object, int]:
        began = trace.began if timed and trace.began is not None else 0.0
        first = trace.first if trace.main is not None else 0
        return began, -age(trace), first, natural(str(trace.path)), trace.part

    return sorted(traces, key=place)
