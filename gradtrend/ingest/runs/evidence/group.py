"""Logs -> runs, by evidence: identity, equal values, continued steps in the order of time, place; names last.

Each step unites groups of logs, and none unites two fits that begin at the first step with other values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

import numpy as np

from gradtrend.ingest.runs.evidence.continued import unite_continued
from gradtrend.ingest.runs.evidence.grouping import COMPARED, Group, Grouping, are_apart, pairs, same_file
from gradtrend.ingest.runs.evidence.likeness import Like, branches, candidates, compare, near
from gradtrend.ingest.runs.evidence.traces import Trace
from gradtrend.ingest.runs.finding.places import names, natural, rotated_base, without_rank

_SECONDS_APART = 120  # ranks of one job open their logs within this time
_STATE = "trainer-state"
_SAME_STEPS = 0.9


def grouped(traces: Sequence[Trace], single_folder: frozenset[str]) -> Grouping:
    """The traces, all with a norm or a loss, by run."""
    grouping = Grouping(sorted(traces, key=lambda t: (natural(str(t.path)), t.part)), single_folder)
    if len(traces) < 2:
        return grouping
    _unite_identical(grouping)
    _unite_stored(grouping)
    for scope, steps in (
        (_folder, (_unite_equal, _unite_rotated, unite_continued, _unite_ranks, _unite_formats)),
        (_home, (_unite_equal, _unite_histories, unite_continued, _unite_ranks, _unite_formats)),
        (_parent, (_unite_equal, unite_continued, _unite_ranks)),
        (_above, (_unite_halves,)),
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


def _above(trace: Trace) -> Path:
    return trace.path.parent.parent


def _anywhere(trace: Trace) -> None:
    """One place for all."""


def _unite_identical(grouping: Grouping) -> None:
    """Unite what has one identity: its tool's own word."""
    known: dict[str, Trace] = {}
    for trace in grouping.traces:
        if trace.identity is not None:
            grouping.unite(known.setdefault(trace.identity, trace), trace)


def _unite_stored(grouping: Grouping) -> None:
    """Unite each log with the run of a store that has its values over the longest way: of two fits from one seed the
    one that ended early has them, too.
    """
    stored = [trace for trace in grouping.traces if trace.reading.run is not None and trace.main is not None]
    stored.sort(key=lambda trace: trace.first - trace.last)
    for trace in grouping.traces if stored else ():
        if trace.reading.run is None and trace.main is not None:
            same = next((run for run in stored if compare(run, trace) is Like.SAME), None)
            if same is not None and not are_apart(grouping.of(same), grouping.of(trace)):
                grouping.unite(same, trace)


def _unite_equal(grouping: Grouping, there: list[Trace]) -> None:
    """Unite what has the same values."""
    for i, j in candidates(there):
        a, b = there[j], there[i]
        if (
            grouping.of(a) is not grouping.of(b)
            and grouping.not_tried(a, b)
            and compare(a, b) is Like.SAME
            and not are_apart(grouping.of(a), grouping.of(b))
        ):
            grouping.unite(a, b)


def _unite_histories(grouping: Grouping, there: list[Trace]) -> None:
    """Unite trainer states that have a beginning in common: a run takes its history along when it is resumed."""
    states = [trace for trace in there if trace.format == _STATE]
    for trace in states[1:]:
        for other in states[:COMPARED]:
            if grouping.of(other) is not grouping.of(trace) and branches(other, trace):
                grouping.unite(other, trace)


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
    if same_file(a, b):
        return False
    if named:
        return near(a, b) or compare(a, b) is not Like.OTHER
    if a.began is None or b.began is None or abs(a.began - b.began) > _SECONDS_APART:
        return False
    return near(a, b)


def _unite_rotated(grouping: Grouping, there: list[Trace]) -> None:
    """Unite the pieces of a rotated log whose rows have no step."""
    beside = {trace.path.name for trace in there}
    first: dict[str, Trace] = {}
    for trace in there:
        base = rotated_base(trace.path, beside) if trace.reading.numbered else None
        if base is not None:
            grouping.unite(first.setdefault(base, trace), trace)


def _unite_halves(grouping: Grouping, there: list[Trace]) -> None:
    """Unite two writers' folders of which one alone has losses, and one alone norms, at the same steps."""
    losses = [trace for trace in there if trace.norm is None]
    norms = [trace for trace in there if trace.loss is None]
    if len(losses) == len(norms) == 1 and losses[0].format == norms[0].format:
        a, b = norms[0].main, losses[0].main
        if a is not None and b is not None and np.isin(a.steps, b.steps).mean() > _SAME_STEPS:
            grouping.unite(norms[0], losses[0])


def _in_common(a: Trace, b: Trace) -> bool:
    """Whether two logs have a quantity in common."""
    return any(x is not None and y is not None for x, y in ((a.norm, b.norm), (a.loss, b.loss)))


def _unite_formats(grouping: Grouping, there: list[Trace]) -> None:
    """Unite logs in one place where each format has one fit, and those that have norm and loss between them."""
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
        if not are_apart(grouping.of(alone[0]), grouping.of(other)):
            grouping.unite(alone[0], other)


def _unite_complementary(grouping: Grouping, traces: list[Trace], single_folder: bool) -> None:
    """Unite logs of one format that have no quantity in common, and those that their tool says are of one run."""
    left: list[Trace] = []
    for group in grouping.among(traces):
        mate = next((one for one in left[-COMPARED:] if _completes(grouping.of(one), group, single_folder)), None)
        if mate is None:
            left.append(group[0])
        else:
            grouping.unite(mate, group[0])


def _completes(a: Group, b: Group, single_folder: bool) -> bool:
    both = list(pairs(a, b))
    if any(same_file(x, y) for x, y in both):
        return False
    if not any(_in_common(x, y) for x, y in both):
        return True
    return single_folder and all(x.path.parent == y.path.parent and compare(x, y) is Like.UNKNOWN for x, y in both)


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
    return not {trace.format for trace in a} & {trace.format for trace in b} and not are_apart(a, b)
