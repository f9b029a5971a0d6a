"""MLflow's file store (`mlruns/`), read directly: the whole store, one experiment, or one run folder."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from gradtrend.errors import InputError
from gradtrend.ingest.files.regular import read_regular
from gradtrend.ingest.formats.mlflow.runs import SQL_INFINITY, add_point, reading_of
from gradtrend.ingest.limits import LARGEST_SETTINGS, MOST_METRICS
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.columns import Columns, as_text, points_of
from gradtrend.ingest.reading.numbers import INT64_LIMIT
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns, newest
from gradtrend.model.runlog import Skipped

_META, _TRASH = "meta.yaml", ".trash"
_MAX_ENTRIES_LOOKED_AT = 50  # a store's folders are experiments; a data set's thousands are not worth a look


def claims(path: Path, head: bytes) -> bool:
    """Whether a folder is a run, an experiment or a store of MLflow."""
    if not path.is_dir():
        return False
    if _is_run(path):
        return True
    if (path / _META).is_file():
        return "experiment_id" in read_meta(path)
    try:
        with os.scandir(path) as entries:
            folders = [
                entry for entry, _ in zip(entries, range(_MAX_ENTRIES_LOOKED_AT), strict=False) if entry.is_dir()
            ]
    except OSError:
        return False
    return any("artifact_location" in read_meta(Path(entry.path)) for entry in folders)


def runs(path: Path, wanted: WantedRuns) -> list[StoredRun]:
    """All runs of the store, the experiment or the run folder; of deleted experiments where an id is asked for.

    Raises InputError where the folder cannot be read.
    """
    if _is_run(path):
        return [replace(_stored_run(path, path.parent, read_meta(path.parent)), given=True)]
    trash = path / _TRASH
    if wanted.ids and trash.is_dir():
        return [*_stored_runs(path), *(replace(run, deleted=True) for run in _stored_runs(trash))]
    return _stored_runs(path)


def _stored_runs(path: Path) -> list[StoredRun]:
    """The runs of an experiment or of several."""
    found = list(_run_folders(path))
    about = {experiment: read_meta(experiment) for experiment, _ in found}
    return [_stored_run(run, experiment, about[experiment]) for experiment, run in found]


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """One run. Raises InputError where there is none."""
    run = options.run or newest(runs(path, WantedRuns()), str(path))
    skipped: list[Skipped] = []
    series = _read_points(Path(run.place), skipped)
    if not series:
        raise InputError(f"run {run} in {path} holds no readable metric", "Check its metrics/ folder.")
    return (reading_of(path, run, series, _read_params(Path(run.place)), skipped),)


def _is_run(folder: Path) -> bool:
    """Whether a folder is one run: its meta.yaml names one, or MLflow's own tags lie beside its metrics."""
    if not (folder / "metrics").is_dir():
        return False
    meta = read_meta(folder)
    return "run_id" in meta or "run_uuid" in meta or any((folder / "tags").glob("mlflow.*"))


def _run_folders(path: Path) -> Iterator[tuple[Path, Path]]:
    """Experiment and run folders at a path that is an experiment, or a store of several."""
    for child in _folders_in(path):
        if _is_run(child):
            yield path, child
        else:
            yield from ((child, grandchild) for grandchild in _folders_in(child) if _is_run(grandchild))


def _folders_in(path: Path) -> list[Path]:
    """The folders in a folder, by name, but for that of deleted experiments."""
    try:
        return sorted(child for child in path.iterdir() if child.is_dir() and child.name != _TRASH)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def read_meta(folder: Path) -> dict[str, Any]:
    """The meta.yaml of a folder, empty where it is missing or broken."""
    path = folder / _META
    if not path.is_file():  # as in most folders that are asked
        return {}
    from gradtrend.ingest.files.yaml import read_yaml

    return dict(read_yaml(path))


_LATEST = 1e15  # milliseconds: a later start is none


def _text(value: Any) -> str | None:
    """A name as YAML gives it: text or a number; None for anything else, and for a number of thousands of digits."""
    if isinstance(value, int) and abs(value) >= 10**64:
        return None
    return str(value) if isinstance(value, str | int | float) and value else None


def _stored_run(folder: Path, experiment: Path, about: dict[str, Any]) -> StoredRun:
    """What the folder of a run says about it, and that of its experiment."""
    meta = read_meta(folder)
    name = meta.get("run_name") or meta.get("name") or _read_text(folder / "tags" / "mlflow.runName")
    started = meta.get("start_time")
    return StoredRun(
        id=_text(meta.get("run_id") or meta.get("run_uuid")) or folder.name,
        name=_text(name),
        started=started / 1000 if isinstance(started, int | float) and abs(started) < _LATEST else None,
        has_metrics=any(_holds_something(file) for file in _metric_files(folder)),
        deleted="deleted" in (meta.get("lifecycle_stage"), about.get("lifecycle_stage")),
        place=str(folder),
        experiment=tuple(name for name in (experiment.name, _text(about.get("name"))) if name),
        parent=_read_text(folder / "tags" / "mlflow.parentRunId") or "",
    )


def _metric_files(run: Path) -> Iterator[Path]:
    """The metric files of a run; a metric named `a/b` lies in a sub-folder `a`."""
    for folder, names, files in os.walk(run / "metrics"):
        names.sort()
        yield from (Path(folder) / file for file in sorted(files))


def _holds_something(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:  # told when it is read
        return True


def _read_points(run: Path, skipped: list[Skipped]) -> dict[str, pl.DataFrame]:
    """All points of each metric of a run; lines that are none are added to `skipped`."""
    series: dict[str, pl.DataFrame] = {}
    left_out = 0
    for path in _metric_files(run):
        if len(series) >= MOST_METRICS:
            left_out += 1
            continue
        metric = as_text(path.relative_to(run / "metrics").as_posix())
        try:
            content = read_regular(path)
        except OSError as error:
            skipped.append(Skipped(f"metric {metric}: {error.strerror or error}"))
            continue
        content, cut = without_cut_end(content)
        if cut:
            skipped.append(Skipped(f"metric {metric}: truncated", line=content.count(b"\n") + 1))
        plain = plain_points(content)
        series |= points_of(read_lines(metric, content, skipped)) if plain is None else {metric: plain}
    if left_out:
        skipped.append(Skipped(f"metrics beyond the first {MOST_METRICS:,}: {left_out:,}"))
    return series


def without_cut_end(content: bytes) -> tuple[bytes, bool]:
    """The lines of a file without the last where that may be cut, and whether it is: MLflow ends each with a newline.
    One without is believed where it has as many numbers as the one before it, and a step as long at least.
    """
    whole, newline, last = content.rpartition(b"\n")
    before, numbers = whole.rpartition(b"\n")[2].split(), last.split()
    if not numbers or not before:
        return content, False
    goes_on = len(numbers) == len(before) and len(numbers[-1]) >= len(before[-1])
    return (content, False) if goes_on else (whole + newline, True)


def plain_points(content: bytes) -> pl.DataFrame | None:
    """The points of a file all lines of which are `timestamp value step`, None for any other.

    polars reads numbers as Python does and refuses what is none, in a tenth of the time.
    """
    schema = {"time": pl.Int64(), "value": pl.Float64(), "step": pl.Int64()}
    try:
        lines = pl.read_csv(io.BytesIO(content), separator=" ", has_header=False, schema=schema, quote_char=None)
    except pl.exceptions.PolarsError:
        return None
    if lines.is_empty() or any(lines.null_count().row(0)):
        return None
    value = pl.col("value")
    infinite = value.is_finite() & (value.abs() >= SQL_INFINITY)
    restored = pl.when(infinite).then(value * math.inf).otherwise(value)
    return lines.select("step", restored, pl.col("time") / 1000, line=pl.lit(None, pl.Int64))


def read_lines(metric: str, content: bytes, skipped: list[Skipped]) -> Columns:
    """The points of one file, read line by line."""
    columns = Columns()
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip():
            continue
        point = _point(line)
        if point is None:
            skipped.append(Skipped(f"metric {metric}: not 'timestamp value step'", line=number))
        else:
            add_point(columns, metric, *point)
    return columns


def _point(line: str) -> tuple[int | None, float, int] | None:
    """Step, value and time of a line `timestamp value [step [dataset ...]]`; None where it is none."""
    parts = line.split()
    try:
        time, value = int(parts[0]), float(parts[1])
        step = int(parts[2]) if len(parts) > 2 else None
    except (ValueError, IndexError):
        return None
    return (step, value, time) if max(abs(step or 0), abs(time)) < INT64_LIMIT else None


def _read_params(run: Path) -> dict[str, str]:
    """The parameters of a run; those that cannot be read are left out."""
    params: dict[str, str] = {}
    for folder, _, files in os.walk(run / "params"):
        for file in files:
            path = Path(folder) / file
            text = _read_text(path)
            if text is not None:
                params[path.relative_to(run / "params").as_posix()] = text
    return params


def _read_text(path: Path) -> str | None:
    """The text of a small file, None where it cannot be read."""
    try:
        return read_regular(path, LARGEST_SETTINGS).decode("utf-8", "replace").strip()
    except OSError:
        return None
