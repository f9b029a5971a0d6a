"""The groups of logs so far, and whether two of them may be of one fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradtrend.ingest.runs.evidence.likeness import Like, clashes, compare
from gradtrend.ingest.runs.evidence.traces import Trace

COMPARED = 6  # logs of a group that are compared with those of another

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
        """Make one group of those of two traces, unless their tool says that they are of two runs."""
        into, from_ = self.of(a), self.of(b)
        if into is not from_ and not any(_other_identity(x, y) for x in _known(into) for y in _known(from_)):
            into.extend(from_)
            for trace in from_:
                self._owner[id(trace)] = into


def _known(group: Group) -> list[Trace]:
    """The traces with an identity, which are few."""
    return [trace for trace in group if trace.identity is not None]


def pairs(a: Group, b: Group) -> Iterable[tuple[Trace, Trace]]:
    """Some logs of one group with some of another."""
    return ((x, y) for x in a[:COMPARED] for y in b[:COMPARED])


def are_apart(a: Group, b: Group) -> bool:
    """Whether two groups hold fits of their own: parts of one file, or logs whose values cannot be of one."""
    return any(same_file(x, y) or _other_identity(x, y) or _other_fit(x, y) for x, y in pairs(a, b))


def same_file(a: Trace, b: Trace) -> bool:
    """Whether two fits stand one after another in one log."""
    return a.part != b.part and a.path == b.path


def _other_identity(a: Trace, b: Trace) -> bool:
    """Whether their tool says that two logs are of two runs, whatever they hold."""
    return a.format == b.format and None not in (a.identity, b.identity) and a.identity != b.identity


def _other_fit(a: Trace, b: Trace) -> bool:
    if a.format == b.format:
        return a.is_fresh and b.is_fresh and compare(a, b) is Like.OTHER
    return clashes(a, b)
