"""Stores that hold several runs: each that is wanted becomes a run of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gradtrend.errors import InputError
from gradtrend.ingest.captures import debug_evidence
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns, chosen, without_metrics
from gradtrend.ingest.runs.finding.run_files import RunFiles
from gradtrend.ingest.runs.finding.tree import LogFile, found_below
from gradtrend.model.runlog import Note


class _Store(NamedTuple):
    """A store among the logs of a folder, and its runs; or why they cannot be listed."""

    files: RunFiles
    log: LogFile
    runs: Sequence[StoredRun]
    error: InputError | None = None


def each_stored_run(
    found: Sequence[RunFiles], path: str, wanted: WantedRuns, source: str = "auto"
) -> tuple[RunFiles, ...]:
    """What was found at a path, with a run for each wanted run of its stores.

    A store beside other logs is left to those who read them, unless runs of it are asked for. Raises InputError where
    runs are asked for that no store at the path has.
    """
    asked = bool(wanted.ids or wanted.experiment)
    stores = [_listed(files, log, wanted) for files in found for log in _stores_of(files, asked)]
    picked = _picked(stores, wanted, path) if asked else None
    whole = {id(store.files) for store in stores}
    runs: list[RunFiles] = []
    for files in found:
        if id(files) not in whole:
            runs += [] if asked else [files]
            continue
        for store in stores:
            if store.files is files:
                runs += _runs_of(store, path, wanted, source, picked)
    return tuple(runs)


def _stores_of(files: RunFiles, asked: bool) -> list[LogFile]:
    """The stores in a folder whose runs are to be told apart here: all where some are asked for, else those without
    other logs and stores of other formats beside them, which would be told to agree with them or not.
    """
    stores = [log for log in files.logs if log.adapter.runs is not None]
    alone = len(stores) == len(files.logs) and len({log.adapter.name for log in stores}) == 1
    return stores if alone or asked else []


def _listed(files: RunFiles, log: LogFile, wanted: WantedRuns) -> _Store:
    assert log.adapter.runs is not None
    try:
        return _Store(files, log, log.adapter.runs(log.path, wanted))
    except InputError as error:
        return _Store(files, log, (), error)


def _picked(stores: Sequence[_Store], wanted: WantedRuns, path: str) -> Sequence[StoredRun]:
    """The runs that are asked for, in whichever store they are."""
    if not stores:
        option = "--run-id" if wanted.ids else "--experiment"
        raise InputError(f"{path}: no store of runs here", f"{option} picks runs of an MLflow, Trackio or W&B store.")
    readable = [store for store in stores if store.error is None]
    if not readable:
        return ()
    return chosen([run for store in readable for run in store.runs], wanted, path)


def _runs_of(
    store: _Store, path: str, wanted: WantedRuns, source: str, picked: Sequence[StoredRun] | None
) -> Iterator[RunFiles]:
    """A run for each run of a store that is wanted, or one with the error that there is none."""
    files, log = store.files, store.log
    held = {id(run) for run in store.runs}
    error, runs = store.error, [run for run in picked or () if id(run) in held]
    if error is None and picked is None:
        try:
            runs = list(chosen(store.runs, wanted, str(log.path)))
        except InputError as caught:
            error = caught
    if error is not None:
        yield replace(files, stored=True, error=error)
        return
    several = sum(run.has_metrics and not run.deleted for run in store.runs) > 1
    name = files.name if log.path == Path(path) else _joined(files.name, log.path.relative_to(files.folder))
    note = _left_out(store, log) if picked is None and not wanted else ()
    beside = tuple(other for other in files.logs if other.adapter.runs is None)
    for run in runs:
        own = tuple(other for folder in run.folders for other in _logs_in(Path(folder), log, source))
        yield replace(
            files,
            name=(files.name if len(files.logs) == 1 else name) if run.given else _joined(name, run.id),
            logs=(replace(log, run=run), *own, *beside),
            stored=True,
            alone=not several,
            notes=note if run is runs[0] else (),
        )
    if len(runs) > 1 and any(debug_evidence(files.folder)):  # of which run, nobody knows
        yield replace(files, logs=())


def _logs_in(folder: Path, store: LogFile, source: str) -> list[LogFile]:
    """The logs in the folder of a stored run that are not the store's own."""
    try:
        return [log for log in found_below(folder, source).logs if log.adapter.name != store.adapter.name]
    except OSError:  # told by who reads the run
        return []


def _left_out(store: _Store, log: LogFile) -> tuple[Note, ...]:
    empty = without_metrics(store.runs)
    return (Note("several-runs", f"{log.path.name} also holds runs that logged no metric: {empty}"),) if empty else ()


def _joined(path: str, *further: str | Path) -> str:
    return os.path.join(path, *further)  # noqa: PTH118  keeps the path as given
