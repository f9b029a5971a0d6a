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
from gradtrend.ingest.runs.join import join
from gradtrend.ingest.runs.magnitudes import with_magnitudes
from gradtrend.ingest.runs.roles import assign_roles
from gradtrend.ingest.runs.run_files import RunFiles
from gradtrend.ingest.runs.steps import with_steps
from gradtrend.ingest.settings.folder import settings_of
from gradtrend.ingest.settings.names import merge_settings
from gradtrend.model.runlog import Note, RunLog, Skipped, Source
from gradtrend.model.words import Role

_PLAIN = ReadOptions()
_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's choice of series by name; None leaves it to the names' own meaning."""

    metric: str | None = None
    loss: str | None = None
    lr: str | None = None


def load_runs(run: RunFiles, choice: Choice, options: ReadOptions = _PLAIN) -> tuple[RunLog, ...]:
    """The logs of one run folder, joined; several runs where its files turn out to be of different ones.

    Raises InputError where no log of the run can be read, or a chosen metric is not in it.
    """
    if run.error is not None:
        raise run.error
    errors: list[InputError] = []
    readings = [reading for log in run.logs if not log.is_open_store for reading in log.read(options, errors)]
    if len(readings) > 1 and not run.alone:
        from gradtrend.ingest.runs.beside import of_stored_run

        readings = of_stored_run(readings)
    fits = _fits(readings)
    apart = [(f"{run.name}#{number}", [fit]) for number, fit in enumerate(fits, start=1)]
    if any(log.is_open_store for log in run.logs):
        from gradtrend.ingest.runs.beside import parted, read_stores

        parts = parted(readings, read_stores(run.logs, options, errors))
        if len(parts) == 1:
            run, readings = replace(run, notes=(*run.notes, *parts[0].notes)), _as_found(parts[0].readings, run)
        else:
            apart = [(_name_of(part.stored, run), _as_found(part.readings, run)) for part in parts]
    if len(apart) < 2:
        several = _apart(readings, run)
        if len(several) < 2:
            return (_joined(run, readings, errors, choice),)
        apart = [(os.path.join(run.name, parts[0].path.name), parts) for parts in several]  # noqa: PTH118
    # What the folder holds beside them cannot be told to belong to one of them: it stands with the first.
    first = _joined(replace(run, name=apart[0][0]), apart[0][1], errors, choice)
    rest = [_joined(replace(run, name=name), parts, [], choice, debug=False) for name, parts in apart[1:]]
    return (first, *rest)


def _fits(readings: list[Reading]) -> list[Reading]:
    """The fits in the one table of a run; how they are told apart is loaded where there is a table."""
    if len(readings) != 1 or readings[0].format != "csv":
        return []
    from gradtrend.ingest.runs.interleaved import fits_apart

    return fits_apart(readings[0])


def _as_found(readings: list[Reading], run: RunFiles) -> list[Reading]:
    """The readings in the order of the logs that they were read from."""
    places = [log.path for log in run.logs]
    return sorted(readings, key=lambda one: next(i for i, path in enumerate(places) if one.path.is_relative_to(path)))


def _name_of(stored: Reading | None, run: RunFiles) -> str:
    """The name of a run among several of a folder: by its store and its id there, else the folder's own."""
    if stored is None or stored.run is None:
        return run.name
    store = next((log.path for log in run.logs if stored.path.is_relative_to(log.path)), stored.path)
    return os.path.join(run.name, store.relative_to(run.folder), stored.run.id)  # noqa: PTH118


def _apart(readings: list[Reading], run: RunFiles) -> list[list[Reading]]:
    """The readings by run; the comparison is loaded where there is something to compare."""
    if len(readings) < 2:
        return [readings]
    from gradtrend.ingest.runs.split import split

    return split(readings, {log.adapter.name for log in run.logs if log.adapter.one_run_a_folder})


def _joined(
    run: RunFiles, readings: list[Reading], errors: list[InputError], choice: Choice, debug: bool = True
) -> RunLog:
    captures, reports = debug_evidence(run.folder) if debug and run.alone else ((), ())
    if not readings and not captures and not reports:
        raise errors[0] if errors else _nothing_in(run)
    held = [reading for reading in readings if reading.series or reading.skipped_count]
    if held or captures or reports:  # beside these, a text without metrics is no log
        readings = held
    numbered = [with_steps(_named_by_folder(reading, run)) for reading in readings]
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
        name=next((reading.run.name for reading in reversed(readings) if reading.run is not None), None),
        notes=(*run.notes, *noticed, *notes, *_damage_notes(sources), *_unread_notes(errors)),
        captures=captures,
        overflow_reports=reports,
        settings=merge_settings(
            *([settings_of(run.folder)] if run.alone else []), *(reading.settings for reading in numbered)
        ),
    )


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
