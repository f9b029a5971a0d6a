"""The parts of logs -> runs: grouped by evidence, with what belongs to them by its place, named by where they lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from gradtrend.errors import InputError
from gradtrend.ingest.captures import debug_evidence
from gradtrend.ingest.reading import Reading
from gradtrend.ingest.runs.evidence.continued import in_order, with_last_words
from gradtrend.ingest.runs.evidence.group import grouped
from gradtrend.ingest.runs.evidence.grouping import Group, Grouping
from gradtrend.ingest.runs.evidence.likeness import Like, compare, near
from gradtrend.ingest.runs.evidence.traces import Trace, trace_of
from gradtrend.ingest.runs.finding.places import age, names
from gradtrend.ingest.runs.finding.run_files import RunFiles
from gradtrend.ingest.runs.naming import Owned, Place, owned, places_of
from gradtrend.ingest.runs.parts import Choice, Part, RunParts, Unread
from gradtrend.ingest.runs.stored_groups import of_one_run_of_each_store
from gradtrend.model.runlog import Note

_NAMED = 5  # files that a note names


def runs_of(files: RunFiles, parts: Sequence[Part], errors: Sequence[Unread], choice: Choice) -> tuple[RunParts, ...]:
    """The runs that the parts are, in the order of their places."""
    chosen = choice.judged
    traces = [trace_of(part.reading, part.number, files.folder, part.by_writer, chosen) for part in parts]
    judged = _judged(traces)
    others = [trace for trace in traces if not any(trace is one for one in judged)]
    single = frozenset(log.adapter.name for log in files.logs if log.adapter.one_run_a_folder)
    grouping = grouped(judged, single)
    told, notes = of_one_run_of_each_store(grouping.groups, files)
    groups = told or _by_home(others)
    if not grouping.groups:
        others = []
    places = places_of(files, groups, single)
    runs = [_Run(group, place) for group, place in zip(groups, places, strict=True)]
    for run in runs:
        run.notes += notes.get(id(run.group), ())
    unused = _attach(runs, others)
    _attach_debug(runs, files)
    left = _attach_errors(runs, [*errors, *_unread(files)])
    _tell(runs, files, unused, grouping)
    for run, owns in zip(runs, owned(files, [run.place.folder for run in runs]), strict=True):
        run.owns = owns
    found = [run.parts() for run in runs]
    found += _alone(files, left)
    return tuple(found) or (RunParts(files.name, files.folder, errors=tuple(errors)),)


class _Run:
    """A run while things are added to it."""

    def __init__(self, group: Group, place: Place) -> None:
        self.group = group
        self.place = place
        self.beside: list[Trace] = []
        self.errors: list[Unread] = []
        self.notes: list[Note] = []
        self.has_debug = False
        self.owns = Owned()

    @property
    def folders(self) -> set[Path]:
        return {trace.path.parent for trace in self.group}

    def parts(self) -> RunParts:
        beside = {trace.path.name for trace in self.group}
        ordered = with_last_words(in_order(self.group, lambda trace: age(trace.path, beside)))
        readings = tuple(trace.reading for trace in (*ordered, *self.beside))
        joined = (*_numbered_on(_without_shadows(ordered)), *(trace.reading for trace in self.beside))
        return RunParts(
            self.place.name,
            self.place.folder,
            readings,
            joined,
            tuple(self.errors),
            tuple(self.notes),
            self.has_debug,
            self.owns.folder,
            self.owns.below,
        )


def _judged(traces: list[Trace]) -> list[Trace]:
    """The traces by which runs are told: those with a norm or a loss. Tables that merely name one are none beside logs
    that count steps.
    """
    told = [trace for trace in traces if trace.main is not None]
    sure = [trace for trace in told if not _may_be_data(trace)]
    return sure or told


def _may_be_data(trace: Trace) -> bool:
    """Whether it may be a table of anything: a column called loss without a step, or one called norm without a loss."""
    if trace.loss is None:
        return trace.weak
    return trace.norm is None and trace.reading.numbered and trace.format != "console"


def _by_home(traces: Iterable[Trace]) -> list[Group]:
    """Without a norm or a loss anywhere, logs by their folders."""
    homes: dict[Path, Group] = {}
    for trace in traces:
        homes.setdefault(trace.home, []).append(trace)
    held = {home: [t for t in group if t.reading.series or t.reading.skipped_count] for home, group in homes.items()}
    some = {home: group for home, group in held.items() if group}
    return list((some or homes).values())


def _without_shadows(ordered: Sequence[Trace]) -> list[Reading]:
    """What is joined of a run's parts: of copies and ranks within the steps of another, what that one has not."""
    kept: list[Trace] = []
    shadows: dict[int, Trace] = {}
    for trace in sorted(ordered, key=lambda t: -len(t.main.steps) if t.main is not None else 0):
        over = next((other for other in kept if _shadows(other, trace)), None)
        if over is None:
            kept.append(trace)
        else:
            shadows[id(trace)] = over
    readings = []
    for trace in ordered:
        shadow = shadows.get(id(trace))
        if shadow is None:
            readings.append(trace.reading)
            continue
        series = {m: points for m, points in trace.reading.series.items() if m not in shadow.reading.series}
        if series:
            readings.append(replace(trace.reading, series=series))
    return readings


def _numbered_on(readings: Sequence[Reading]) -> list[Reading]:
    """The parts with the rows of those without steps numbered from one to the next, as pieces of a rotated log."""
    ends: dict[str, int] = {}
    found = []
    for reading in readings:
        if not reading.numbered:
            found.append(reading)
            continue
        start = ends.get(reading.format, 0)
        series = {m: points.with_columns(pl.col("step") + start) for m, points in reading.series.items()}
        ends[reading.format] = 1 + max((_last_step(points) for points in series.values()), default=start - 1)
        found.append(replace(reading, series=series))
    return found


def _last_step(points: pl.DataFrame) -> int:
    last = points["step"].max()
    return last if isinstance(last, int) else -1


def _shadows(over: Trace, under: Trace) -> bool:
    if over.format != under.format or over.main is None or under.main is None:
        return False
    if under.first < over.first or under.last > over.last:
        return False
    return compare(over, under) is Like.SAME or (over.is_fresh and under.is_fresh and near(over, under))


def _attach(runs: Sequence[_Run], others: Iterable[Trace]) -> list[Trace]:
    """Give what has no norm and no loss to the run in whose place it lies; returns what lies beside or above runs."""
    unused = []
    for trace in others:
        run = _run_at(runs, trace.path, trace.path.parent)
        if run is not None and (trace.main is None or trace.path.parent in run.folders) and not _of_other(run, trace):
            run.beside.append(trace)
        elif trace.reading.series:
            unused.append(trace)
    return unused


def _of_other(run: _Run, trace: Trace) -> bool:
    """Whether a run is told by another run of the store that a trace is of."""
    of_store = [one.reading.run for one in run.group if one.path == trace.path and one.reading.run is not None]
    return bool(of_store) and trace.reading.run not in of_store


def _run_at(runs: Sequence[_Run], path: Path, folder: Path) -> _Run | None:
    """The run to which a path belongs by its place, or None."""
    there = [run for run in runs if folder in run.folders]
    if len(there) > 1:
        stem = path.name.split(".")[0]
        there = [
            run
            for run in there
            if any(t.path.parent == folder and t.path.name.split(".")[0] == stem for t in run.group)
        ]
        return there[0] if len(there) == 1 else None
    if there:
        return there[0]
    for above in (folder, *folder.parents):
        within = [run for run in runs if run.place.folder == above]
        if within:
            return within[0] if len(within) == 1 else None
    named = [run for run in runs if names(path, run.place.folder)]
    if len(named) == 1:
        return named[0]
    return runs[0] if len(runs) == 1 and folder in (*runs[0].place.folder.parents,) else None


def _attach_debug(runs: list[_Run], files: RunFiles) -> None:
    """Give folders with captures to the run that lies there; one of which nothing else is known is a run of its own."""
    for folder in files.with_debug:
        run = next((run for run in runs if run.place.folder == folder), None)
        below = [run for run in runs if folder in run.place.folder.parents]
        if run is None and len(below) == 1 and any(debug_evidence(folder)):
            run = below[0]
            run.place = replace(run.place, folder=folder)
        if run is not None:
            run.has_debug = True
        elif any(debug_evidence(folder)):
            runs.append(_Run([], Place.at(files, folder)))
            runs[-1].has_debug = True


def _attach_errors(runs: Sequence[_Run], errors: Iterable[Unread]) -> list[Unread]:
    """Give what could not be read to the run in whose place it lies; returns what may be a run that nobody has seen."""
    left = []
    for unread in errors:
        run = None if unread.path.is_dir() else _run_at(runs, unread.path, unread.path.parent)
        if run is None:
            left.append(unread)
        else:
            run.errors.append(unread)
    return left


def _unread(files: RunFiles) -> list[Unread]:
    """What may hold a run, or a part of one, and was passed over."""
    hint = "Check its permissions, or give the path itself."
    return [Unread(one.path, InputError(f"{one.path}: {one.reason}", hint)) for one in files.passed_over if one.unread]


def _alone(files: RunFiles, left: Iterable[Unread]) -> list[RunParts]:
    """What could not be read and belongs to no run: each may be one."""
    found = []
    for unread in left:
        inner = unread.path.parent != files.folder and not unread.path.is_dir()
        place = Place.at(files, unread.path.parent if inner else unread.path)
        found.append(RunParts(place.name, place.folder, errors=(unread,), has_debug=False))
    return found


def _tell(runs: Sequence[_Run], files: RunFiles, unused: Iterable[Trace], grouping: Grouping) -> None:
    """Notes on what was passed over, and on what may be read otherwise, with the run that lies nearest."""
    said: dict[int, list[str]] = {}
    for trace in unused:
        said.setdefault(_nearest(runs, trace.path), []).append(
            f"{_below(files, trace.path)} (no gradient norm, no loss of a training)"
        )
    for one in files.passed_over:
        if not one.unread:
            said.setdefault(_nearest(runs, one.path), []).append(f"{_below(files, one.path)} ({one.reason})")
    for index, texts in said.items():
        if runs:
            more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
            note = Note(
                "not-used", f"not used: {', '.join(texts[:_NAMED])}{more}", measures=(("files", float(len(texts))),)
            )
            runs[index].notes.append(note)
    for trace, doubt in grouping.doubts:
        run = next((run for run in runs if any(trace is one for one in run.group)), None)
        if run is not None:  # of a store that gave several runs to one, the others are left out
            run.notes.append(Note("two-readings", f"{_below(files, trace.path)} {doubt}"))


def _nearest(runs: Sequence[_Run], path: Path) -> int:
    """The place of the run whose folder has most in common with a path."""
    shared = [len([p for p in (run.place.folder, *run.place.folder.parents) if p in path.parents]) for run in runs]
    return shared.index(max(shared)) if shared else 0


def _below(files: RunFiles, path: Path) -> str:
    return str(path.relative_to(files.folder)) if path.is_relative_to(files.folder) else str(path)
