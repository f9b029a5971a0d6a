"""Runs of Weights & Biases: the folder `wandb/` with a folder for each part of a run, or the log of one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.ingest.formats.wandb import MAGIC, RUN_FOLDER
from gradtrend.ingest.formats.wandb.history import about, history_of
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns, newest


def claims(path: Path, head: bytes) -> bool:
    """Whether a file is a log of a run, or a folder holds folders of runs. The link `latest-run` is none of these."""
    if head or not path.is_dir():
        return head.startswith(MAGIC)
    try:
        return any(any(_logs_of(run)) for run in _run_folders(path))
    except OSError:
        return False


def runs(path: Path, wanted: WantedRuns) -> list[StoredRun]:
    """The runs of a folder, each with all folders of its id, or the one of a file. Raises InputError where it cannot be
    read.
    """
    if path.is_dir():
        return _runs_in(path)
    said = about(path)
    return [replace(said, id=said.id or path.stem.removeprefix("run-"), place=str(path), given=True)]


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """The parts of a run, the oldest first. Raises InputError where one cannot be read, or none holds anything."""
    run = options.run or newest(runs(path, WantedRuns()), str(path))
    readings: list[Reading] = []
    errors: list[InputError] = []
    for log in [log for folder in run.folders for log in _logs_of(Path(folder))] or [Path(run.place)]:
        try:
            readings.append(replace(history_of(log), run=run))
        except InputError as error:
            errors.append(error)
    damage = [error for error in errors if not isinstance(error, EmptyLogError)]
    if not readings or damage:  # a part that cannot be read is not to be passed over
        raise (damage or errors)[0]
    return readings


def _runs_in(folder: Path) -> list[StoredRun]:
    by_id: dict[str, list[Path]] = {}
    try:
        for run in _run_folders(folder):
            if any(_logs_of(run)):
                by_id.setdefault(_id_of(run), []).append(run)
    except OSError as error:
        raise InputError(f"cannot read {folder}: {error.strerror or error}") from error
    return [_stored_run(run_id, folders) for run_id, folders in by_id.items()]


def _run_folders(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if RUN_FOLDER.fullmatch(entry.name) and entry.is_dir())
    # By time: the names begin with it, behind a word that says whether the run was offline.
    yield from (folder / name for name in sorted(names, key=lambda name: name.removeprefix("offline-")))


def _logs_of(run: Path) -> list[Path]:
    return sorted(run.glob("run-*.wandb"))


def _id_of(run: Path) -> str:
    found = RUN_FOLDER.fullmatch(run.name)
    assert found is not None
    return found[1]


def _stored_run(run_id: str, folders: Sequence[Path]) -> StoredRun:
    """What the first log of a run says about it; what cannot be read is told when the run is."""
    said = about(_logs_of(folders[0])[0])
    return replace(said, id=run_id, folders=tuple(str(folder) for folder in folders), place=str(folders[0]))
