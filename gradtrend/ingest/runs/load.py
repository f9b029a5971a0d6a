"""The logs of a run -> its RunLog: named, given roles, joined."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.ingest.captures import debug_evidence
from gradtrend.ingest.files.regular import size_and_time
from gradtrend.ingest.reading import NO_NORM_FOUND, Reading
from gradtrend.ingest.runs.parts import Choice, RunParts
from gradtrend.ingest.runs.series.join import join
from gradtrend.ingest.runs.series.magnitudes import with_magnitudes
from gradtrend.ingest.runs.series.roles import assign_roles
from gradtrend.ingest.settings.folder import Given, given_beside, given_in, settings_in
from gradtrend.ingest.settings.frameworks import framework_of_metrics, most_particular
from gradtrend.ingest.settings.hyperparameters import hyperparameters_of
from gradtrend.ingest.settings.lines import with_lines
from gradtrend.ingest.settings.names import merge_settings
from gradtrend.model.runlog import Hyperparameters, Note, RunLog, Settings, Skipped, Source
from gradtrend.model.words import Role

_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")


def load_run(run: RunParts, choice: Choice, hyperparameters: bool = False) -> RunLog:
    """The logs of one run, joined; where asked for with its `hyperparameters`, which a verdict does not need.

    Raises InputError where no log of the run can be read, or a chosen metric is not in it.
    """
    captures, reports = debug_evidence(run.folder) if run.has_debug else ((), ())
    if not run.readings and not captures and not reports:
        raise run.errors[0].error if run.errors else _nothing_in(run)
    readings = [with_lines(reading) for reading in run.readings if reading.series or reading.skipped_count]
    if not readings and not captures and not reports:  # beside anything else, a text without metrics is no log
        readings = [with_lines(reading) for reading in run.readings]
    names = {name for reading in readings for name in reading.series}
    choice = _as_logged(choice, names)
    namings = assign_roles(names, choice.metric, choice.loss, choice.lr)
    _check_choice(choice, names, run.name)
    namings = with_magnitudes(namings, readings)
    joined = join(run.joined, namings)
    beside = given_in(run.folder, run.has_sub_folders) if run.has_settings else []
    notes = joined.notes + _without_steps(readings)
    sources = tuple(_source(reading, run) for reading in readings)
    has_norm = any(naming.role is Role.GRAD_NORM for naming in namings.values())
    noticed = (n for reading in readings for n in reading.notes if not (has_norm and n.kind == NO_NORM_FOUND))
    return RunLog(
        run=run.name,
        table=joined.table,
        losses=joined.losses,
        reasons=joined.reasons,
        sources=sources,
        name=next((reading.run.name for reading in reversed(readings) if reading.run is not None), None),
        notes=(*noticed, *notes, *_damage_notes(sources), *_unread_notes([e.error for e in run.errors]), *run.notes),
        captures=captures,
        overflow_reports=reports,
        settings=_settings(run, readings, beside),
        signs=frozenset().union(*(reading.signs for reading in readings)),
        folder=run.folder,
        hyperparameters=_hyperparameters(run, beside) if hyperparameters else (),
    )


def _settings(run: RunParts, readings: Sequence[Reading], given: Sequence[Given]) -> Settings:
    """The settings that the folder's files, the logs themselves and the names of their metrics give: of the framework
    the logs know best.
    """
    logged = [reading.settings for reading in readings]
    beside = settings_in(run.folder, given) if run.has_settings else Settings()
    by_names = framework_of_metrics({name for reading in readings for name in reading.series})
    framework = most_particular([*(one.framework for one in logged), by_names, beside.framework])
    return replace(merge_settings(beside, *logged), framework=framework)


def _hyperparameters(run: RunParts, beside: Sequence[Given]) -> Hyperparameters:
    """All that the run was given: as settings are found, and last what files say that bear anybody's names."""
    sources = [*(one.values for one in beside), *(reading.given for reading in run.readings)]
    return hyperparameters_of(chain(sources, given_beside(run.folder, beside) if run.has_settings else ()))


def _as_logged(choice: Choice, names: set[str]) -> Choice:
    """The choice with names as they are logged, where they are spelt as reports print what is unsafe to show."""
    chosen = {
        option: name if name in names else plain
        for option in ("metric", "loss", "lr")
        if (name := getattr(choice, option)) is not None and (plain := _ESCAPED.sub(_unescaped, name)) in {*names, name}
    }
    return replace(choice, **chosen)


def _unescaped(code: re.Match[str]) -> str:
    return chr(min(int(code[code.lastindex or 0], 16), sys.maxunicode))


def _nothing_in(run: RunParts) -> InputError:
    return InputError(
        f"{run.name}: no log of a known format in this folder",
        "Give the folder that holds metrics.jsonl, event files, mlruns/ or a console log, or the log itself.",
    )


def _without_steps(readings: Sequence[Reading]) -> tuple[Note, ...]:
    """A note for a run of which no log gives steps; where one does, its steps count and the others are not compared."""
    if not readings or not all(reading.numbered for reading in readings):
        return ()
    names = ", ".join(reading.path.name for reading in readings)
    return (Note("no-steps", f"{names} logs no step: its rows are numbered from 0"),)


def _check_choice(choice: Choice, names: set[str], run: str) -> None:
    for option, name in (("--metric", choice.metric), ("--loss", choice.loss), ("--lr", choice.lr)):
        if name is not None and name not in names:
            import difflib

            near = difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.4)
            hint = f"Did you mean {', '.join(near)}?" if near else "`gradtrend series` lists what is logged."
            raise InputError(f"{run}: no metric named {name!r} ({option})", hint)


def _source(reading: Reading, run: RunParts) -> Source:
    size, modified = size_and_time(reading.path)
    return Source(
        format=reading.format,
        path=_told(reading.path, run.folder),
        series=len(reading.series),
        points=sum(points.height for points in reading.series.values()),
        skipped=reading.skipped,
        skipped_count=reading.skipped_count,
        size=size,
        modified=modified,
    )


def _told(path: Path, folder: Path) -> str:
    """A log's path from its run's folder: of a log beside that `../train.log`, of an address and a pipe as they are."""
    if path == folder or not path.exists():
        return path.name if path == folder else str(path)
    return os.path.relpath(path, folder)


def _damage_notes(sources: Sequence[Source]) -> list[Note]:
    """One note for each source of which a piece could not be read."""
    return [
        Note(
            "truncated",
            f"{source.path}: pieces that could not be read: {source.skipped_count}",
            measures=(("skipped", float(source.skipped_count)),),
            details=f"{_where(source.skipped[0])}: {source.skipped[0].reason}" if source.skipped else "",
        )
        for source in sources
        if source.skipped_count
    ]


def _unread_notes(errors: Sequence[InputError]) -> list[Note]:
    """One note for each log that could not be read, but for those that hold nothing."""
    return [
        Note("truncated", error.message, details=error.hint or "not used")
        for error in errors
        if not isinstance(error, EmptyLogError)
    ]


def _where(skipped: Skipped) -> str:
    if skipped.line is not None:
        return f"line {skipped.line}"
    return f"byte {skipped.offset}" if skipped.offset is not None else "somewhere"
