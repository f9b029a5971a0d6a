"""Stores that hold several runs: of one that lies alone each that is wanted becomes a share of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.ingest.captures import debug_evidence
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns, chosen, without_metrics
from gradtrend.ingest.runs.finding.run_files import Picked, RunFiles
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
    """What was found at a path, with a share for each wanted run of the stores that lie alone.

    A store beside other logs, which are of its runs or are not, is left to those who read them together, with the runs
    of it that are asked for. Raises InputError where runs are asked for that no store at the path has.
    """
    asked = bool(wanted.ids or wanted.experiment)
    stores = {
        id(files): [_listed(files, log, wanted) for log in files.logs if log.adapter.runs is not None]
        for files in found
        if wanted or _has_nothing_else(files)
    }
    picked = _picked([store for each in stores.values() for store in each], wanted, path) if asked else None
    runs: list[RunFiles] = []
    for files in found:
        own = stores.get(id(files), ())
        if not own:
            runs += [] if asked else [files]
        elif _has_nothing_else(files):
            runs += [run for store in own for run in _runs_of(store, path, wanted, source, picked)]
        else:
            runs += _beside_others(files, own, wanted, source, picked)
    return tuple(runs)


def _has_nothing_else(files: RunFiles) -> bool:
    """Whether there are but stores of one format; those of two may hold the same runs."""
    return (
        all(log.adapter.runs is not None for log in files.logs) and len({log.adapter.name for log in files.logs}) == 1
    )


def _beside_others(
    files: RunFiles, stores: Sequence[_Store], wanted: WantedRuns, source: str, picked: Sequence[StoredRun] | None
) -> Iterator[RunFiles]:
    """The share with the runs of its stores that are wanted: with all others, which say what logs are not theirs."""
    mine: list[StoredRun] = []
    logs = {log.path: log for log in files.logs}
    for store in stores:
        error, runs = _wanted_of(store, wanted, picked)
        if error is not None and (picked is not None or not isinstance(error, EmptyLogError)):
            yield replace(files, stored=True, error=error)
        if runs:
            with_metrics = (run for run in store.runs if run.has_metrics and not run.deleted)
            logs[store.log.path] = replace(store.log, runs=tuple(dict.fromkeys((*with_metrics, *runs))))
            mine += runs
    if not mine and picked is not None:
        return
    own = [log for store in stores for run in mine if run in store.runs for log in _own_logs(run, store.log, source)]
    yield replace(files, logs=(*logs.values(), *own), picked=Picked(tuple(mine), only=picked is not None))


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


def _wanted_of(
    store: _Store, wanted: WantedRuns, picked: Sequence[StoredRun] | None
) -> tuple[InputError | None, Sequence[StoredRun]]:
    """The runs of a store that are wanted, or the error that there is none or that they cannot be listed."""
    if store.error is not None or picked is not None:
        held = {id(run) for run in store.runs}
        return store.error, [run for run in picked or () if id(run) in held]
    try:
        return None, chosen(store.runs, wanted, str(store.log.path))
    except InputError as error:
        return error, ()


def _runs_of(
    store: _Store, path: str, wanted: WantedRuns, source: str, picked: Sequence[StoredRun] | None
) -> Iterator[RunFiles]:
    """A share for each run of a store that is wanted, or one with the error that there is none."""
    files, log = store.files, store.log
    error, runs = _wanted_of(store, wanted, picked)
    if error is not None:
        yield replace(files, stored=True, error=error)
        return
    several = sum(run.has_metrics and not run.deleted for run in store.runs) > 1
    name = files.name if log.path == Path(path) else _joined(files.name, log.path.relative_to(files.folder))
    note = _left_out(store, log) if picked is None and not wanted else ()
    for run in runs:
        yield replace(
            files,
            name=(files.name if len(files.logs) == 1 else name) if run.given else _joined(name, run.id),
            logs=(replace(log, runs=(run,)), *_own_logs(run, log, source)),
            stored=True,
            alone=not several,
            notes=note if run is runs[0] else (),
        )
    if len(runs) > 1 and any(debug_evidence(files.folder)):  # of which run, nobody knows
        yield replace(files, logs=())


def _own_logs(run: StoredRun, store: LogFile, source: str) -> list[LogFile]:
    """The logs in the folders of a stored run that are not the store's own."""
    found: list[LogFile] = []
    for folder in run.folders:
        with suppress(OSError):  # told by who reads the run
            found += (log for log in found_below(Path(folder), source).logs if log.adapter.name != store.adapter.name)
    return found


def _left_out(store: _Store, log: LogFile) -> tuple[Note, ...]:
    empty = without_metrics(store.runs)
    return (Note("several-runs", f"{log.path.name} also holds runs that logged no metric: {empty}"),) if empty else ()


def _joined(path: str, *further: str | Path) -> str:
    return os.path.join(path, *further)  # noqa: PTH118  keeps the path as given
