"""The logs of a run folder -> its RunLog: read, named, given steps and roles, joined."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.ingest.captures import debug_evidence
from gradtrend.ingest.reading import NO_NORM_FOUND, Reading, ReadOptions
from gradtrend.ingest.reading.patterns import HELD_OUT_WORDS
from gradtrend.ingest.runs.find import RunFiles
from gradtrend.ingest.runs.join import join
from gradtrend.ingest.runs.magnitudes import with_magnitudes
from gradtrend.ingest.runs.roles import assign_roles
from gradtrend.ingest.runs.steps import with_steps
from gradtrend.ingest.settings.folder import settings_of
from gradtrend.ingest.settings.frameworks import framework_of_metrics, most_particular
from gradtrend.ingest.settings.lines import with_lines
from gradtrend.ingest.settings.names import merge_settings
from gradtrend.model.runlog import Note, RunLog, Settings, Skipped, Source
from gradtrend.model.words import Role

_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's choice of series by name; None leaves it to the names' own meaning."""

    metric: str | None = None
    loss: str | None = None
    lr: str | None = None


def load_runs(run: RunFiles, options: ReadOptions, choice: Choice) -> tuple[RunLog, ...]:
    """The logs of one run folder, joined; several runs where its files turn out to be of different ones.

    Raises InputError where no log of the run can be read, or a chosen metric is not in it.
    """
    readings, errors = _read_all(run, options)
    fits = _fits(readings)
    if len(fits) > 1:
        return tuple(
            _joined(replace(run, name=f"{run.name}#{i}"), [fit], errors, choice, debug=i == 1)
            for i, fit in enumerate(fits, start=1)
        )
    apart = _apart(readings, run)
    if len(apart) < 2:
        return (_joined(run, readings, errors, choice),)
    # What the folder holds beside them cannot be told to belong to one of them: it stands with the first.
    named = [replace(run, name=os.path.join(run.name, parts[0].path.name)) for parts in apart]  # noqa: PTH118
    first = _joined(named[0], apart[0], errors, choice)
    rest = [_joined(name, parts, [], choice, debug=False) for name, parts in zip(named[1:], apart[1:], strict=True)]
    return (first, *rest)


def _fits(readings: list[Reading]) -> list[Reading]:
    """The fits in the one table of a run; how they are told apart is loaded where there is a table."""
    if len(readings) != 1 or readings[0].format != "csv":
        return []
    from gradtrend.ingest.runs.interleaved import fits_apart

    return fits_apart(readings[0])


def _apart(readings: list[Reading], run: RunFiles) -> list[list[Reading]]:
    """The readings by run; the comparison is loaded where there is something to compare."""
    if len(readings) < 2:
        return [readings]
    from gradtrend.ingest.runs.split import split

    return split(readings, {log.adapter.name for log in run.logs if log.adapter.one_run_a_folder})


def _joined(
    run: RunFiles, readings: list[Reading], errors: list[InputError], choice: Choice, debug: bool = True
) -> RunLog:
    captures, reports = debug_evidence(run.folder) if debug else ((), ())
    if not readings and not captures and not reports:
        raise errors[0] if errors else _nothing_in(run)
    held = [reading for reading in readings if reading.series or reading.skipped_count]
    if held or captures or reports:  # beside these, a text without metrics is no log
        readings = held
    numbered = [with_steps(_named_by_folder(with_lines(reading), run)) for reading in readings]
    names = {name for reading in numbered for name in reading.series}
    choice = _as_logged(choice, names)
    namings = assign_roles(names, choice.metric, choice.loss, choice.lr)
    _check_choice(choice, names, run.name)
    namings = with_magnitudes(namings, numbered)
    joined = join(numbered, namings)
    notes = joined.notes + _without_steps(numbered)
    sources = tuple(_source(reading, run) for reading in numbered)
    has_norm = any(naming.role is Role.GRAD_NORM for naming in namings.values())
    noticed = (n for reading in numbered for n in reading.notes if not (has_norm and n.kind == NO_NORM_FOUND))
    return RunLog(
        run=run.name,
        table=joined.table,
        losses=joined.losses,
        reasons=joined.reasons,
        sources=sources,
        notes=(*noticed, *notes, *_damage_notes(sources), *_unread_notes(errors)),
        captures=captures,
        overflow_reports=reports,
        settings=_settings(run, numbered),
        signs=frozenset().union(*(reading.signs for reading in numbered)),
    )


def _settings(run: RunFiles, readings: Sequence[Reading]) -> Settings:
    """The settings that the folder's files, the logs themselves and the names of their metrics give."""
    found = [settings_of(run.folder), *(reading.settings for reading in readings)]
    by_names = framework_of_metrics({name for reading in readings for name in reading.series})
    return replace(
        merge_settings(found[0], *found[1:]), framework=most_particular([*(one.framework for one in found), by_names])
    )


def _read_all(run: RunFiles, options: ReadOptions) -> tuple[list[Reading], list[InputError]]:
    """What every log of the run held, and the errors of those that could not be read."""
    readings: list[Reading] = []
    errors: list[InputError] = []
    for log in run.logs:
        try:
            readings += log.adapter.read(log.path, options)
        except InputError as error:
            if options.run_id is not None and log.adapter.holds_runs:  # the run that was asked for is not there
                raise
            errors.append(error)
    return readings, errors


def _nothing_in(run: RunFiles) -> InputError:
    return InputError(
        f"{run.name}: no log of a known format in this folder",
        "Give the folder that holds metrics.jsonl, event files, mlruns/ or a console log, or the log itself.",
    )


def _named_by_folder(reading: Reading, run: RunFiles) -> Reading:
    """The reading with what only the sub-folder says put into the metric names.

    `SummaryWriter.add_scalars("grads", {"fc": ...})` writes the tag `grads` in a folder `grads_fc`; Keras writes the
    same tags in `train/` and `validation/`.
    """
    folder = reading.path.parent.name
    if not reading.path.is_relative_to(run.folder) or reading.path.parent == run.folder:
        return reading
    tags = list(reading.series)
    stem = tags[0].replace("/", "_").replace(" ", "_") + "_" if len(tags) == 1 else ""
    if len(tags) == 1 and folder.startswith(stem) and len(folder) > len(stem):
        names = [f"{tags[0]}/{folder.removeprefix(stem)}"]
    elif folder.lower() in HELD_OUT_WORDS:
        names = [f"val/{tag}" for tag in tags]
    else:
        return reading
    return replace(reading, series=dict(zip(names, reading.series.values(), strict=True)))


def _without_steps(readings: Sequence[Reading]) -> tuple[Note, ...]:
    """A note for a run of which no log gives steps; where one does, its steps count and the others are not compared."""
    if not readings or not all(reading.numbered for reading in readings):
        return ()
    names = ", ".join(reading.path.name for reading in readings)
    return (Note("no-steps", f"{names} logs no step: its rows are numbered from 0"),)


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


def _check_choice(choice: Choice, names: set[str], run: str) -> None:
    for option, name in (("--metric", choice.metric), ("--loss", choice.loss), ("--lr", choice.lr)):
        if name is not None and name not in names:
            import difflib

            near = difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.4)
            hint = f"Did you mean {', '.join(near)}?" if near else "`gradtrend series` lists what is logged."
            raise InputError(f"{run}: no metric named {name!r} ({option})", hint)


def _source(reading: Reading, run: RunFiles) -> Source:
    relative = reading.path.relative_to(run.folder) if reading.path.is_relative_to(run.folder) else reading.path
    return Source(
        format=reading.format,
        path=str(relative) if str(relative) != "." else reading.path.name,
        series=len(reading.series),
        points=sum(points.height for points in reading.series.values()),
        skipped=reading.skipped,
        skipped_count=reading.skipped_count,
    )


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
