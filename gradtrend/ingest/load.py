"""A path -> the RunLogs it holds. The front of this room."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from gradtrend.errors import GradtrendError, InputError
from gradtrend.ingest.discover import RunFiles
from gradtrend.ingest.merge import merge
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.roles import assign_roles
from gradtrend.model.runlog import Note, RunLog, Settings, Skipped, Source
from gradtrend.model.words import Role


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's choice of series by name; None leaves it to the names' own meaning."""

    metric: str | None = None
    loss: str | None = None
    lr: str | None = None


def load_run(run: RunFiles, options: ReadOptions, choice: Choice) -> RunLog:
    """Read all logs of one run and join them.

    Raises InputError where no log of the run can be read, or a chosen metric is not in it.
    """
    readings: list[Reading] = []
    errors: list[GradtrendError] = []
    for log in run.logs:
        try:
            readings += log.adapter.read(log.path, options)
        except InputError as error:
            errors.append(error)
    if errors and not readings:
        raise errors[0]
    numbered = [_with_row_numbers(reading) for reading in readings]
    names = {str(name) for reading in numbered for name in reading.table["metric"].unique()}
    namings = assign_roles(names, choice.metric, choice.loss, choice.lr)
    _check_choice(choice, names, run.name)
    table, notes = merge(numbered, namings)
    sources = tuple(_source(reading, run) for reading in numbered)
    return RunLog(
        run=run.name,
        table=table,
        sources=sources,
        notes=(*(note for reading in numbered for note in reading.notes), *notes, *_damage_notes(sources)),
        settings=Settings(),
    )


def _with_row_numbers(reading: Reading) -> Reading:
    """Give steps to a log that has none: its rows are numbered from 0, and a note says so.

    Where some rows have a step, those without one are left out; a row of loss or gradient norm lost so is counted.
    """
    table = reading.table
    missing = table["step"].null_count()
    if not missing:
        return reading
    if missing < table.height:
        lost = table.filter(pl.col("step").is_null()).select("metric", "line").unique(maintain_order=True)
        judged = lost.filter(pl.col("metric").is_in([m for m in lost["metric"].unique() if _is_judged(m)]))
        skipped = tuple(Skipped("a row without a step", line=line) for line in judged["line"].unique().sort().head(100))
        return replace(
            reading,
            table=table.filter(pl.col("step").is_not_null()),
            skipped=(*reading.skipped, *skipped)[:100],
            skipped_count=reading.skipped_count + judged["line"].n_unique(),
        )
    position = pl.col("line") if table["line"].null_count() == 0 else pl.int_range(pl.len()).over("metric")
    numbered = table.with_columns((position.rank("dense").cast(pl.Int64) - 1).alias("step"))
    note = Note("no-steps", f"{reading.path.name} logs no step: its rows are numbered from 0")
    return replace(reading, table=numbered, notes=(*reading.notes, note))


def _is_judged(metric: str) -> bool:
    return assign_roles([metric])[metric].role in (Role.GRAD_NORM, Role.LOSS)


def _check_choice(choice: Choice, names: set[str], run: str) -> None:
    for option, name in (("--metric", choice.metric), ("--loss", choice.loss), ("--lr", choice.lr)):
        if name is not None and name not in names:
            near = difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.4)
            hint = f"Did you mean {', '.join(near)}?" if near else "`gradtrend series` lists what is logged."
            raise InputError(f"{run}: no metric named {name!r} ({option})", hint)


def _source(reading: Reading, run: RunFiles) -> Source:
    relative = reading.path.relative_to(run.folder) if reading.path.is_relative_to(run.folder) else reading.path
    return Source(
        format=reading.format,
        path=str(relative) if str(relative) != "." else reading.path.name,
        series=reading.table["metric"].n_unique(),
        points=reading.table.height,
        skipped=reading.skipped,
        skipped_count=reading.skipped_count,
    )


def _damage_notes(sources: Sequence[Source]) -> list[Note]:
    """One note for each source of which a piece could not be read."""
    return [
        Note(
            "truncated",
            f"{source.path}: {source.skipped_count} {'piece' if source.skipped_count == 1 else 'pieces'} could not be read",
            measures=(("skipped", float(source.skipped_count)),),
            details=f"{_where(source.skipped[0])}: {source.skipped[0].reason}" if source.skipped else "",
        )
        for source in sources
        if source.skipped_count
    ]


def _where(skipped: Skipped) -> str:
    if skipped.line is not None:
        return f"line {skipped.line}"
    return f"byte {skipped.offset}" if skipped.offset is not None else "somewhere"
