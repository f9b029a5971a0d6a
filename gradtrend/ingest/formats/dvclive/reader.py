"""The folder that DVCLive writes: `plots/metrics/train/loss.tsv`, one table of steps and values a metric.

Before version 1 the tables lay in `scalars/`, before 0.9 in the folder itself. `metrics.json` beside them sums up: it
holds the last values alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.ingest.files.regular import buffered
from gradtrend.ingest.files.streams import open_log, whole_lines
from gradtrend.ingest.limits import MOST_METRICS
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.columns import Column, series_of
from gradtrend.ingest.reading.numbers import could_be_cut, parse_number, whole
from gradtrend.ingest.reading.rows import EARLIEST_TIME, FIRST_MILLISECONDS
from gradtrend.model.runlog import Settings, Skipped

_TABLES = (Path("plots/metrics"), Path("scalars"))
_NAMED = "dvclive"  # what the folder is called unless the user says otherwise
_SUFFIX = ".tsv"
_LONGEST_HEADER = 1024  # bytes: a time, the step and one name
_MAX_DEPTH = 8  # a name has few slashes


def claims(path: Path, head: bytes) -> bool:
    """Whether a folder has tables of metrics where DVCLive puts them."""
    place = _tables_in(path)
    first = None if place is None else next(iter(_named_tables(path, place).values()), None)
    if first is None:
        return False
    with buffered(first) as file:
        return b"step" in file.readline(_LONGEST_HEADER).split(b"\t")


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """The points of each metric, which is called as its table's path says. Raises InputError where there is none."""
    skipped: list[Skipped] = []
    tables = _named_tables(path, _tables_in(path))
    if len(tables) > MOST_METRICS:
        skipped.append(Skipped(f"metrics beyond the first {MOST_METRICS:,}"))
    columns = {name: _column(table, name, skipped) for name, table in islice(tables.items(), MOST_METRICS)}
    series = series_of({name: column for name, column in _without_summary(columns).items() if column.values})
    if not series:
        raise EmptyLogError(f"{path}: no table of DVCLive holds a point")
    given = _params(path)
    return (Reading("dvclive", path, series, settings=_settings(given), given=given).with_skipped(skipped),)


def _without_summary(columns: Mapping[str, Column]) -> Mapping[str, Column]:
    """The columns without the loss by which transformers sums a run up: it is the mean of all steps."""
    whole, runtime = columns.get("train/loss"), columns.get("train/runtime")
    if "loss" not in columns or whole is None or runtime is None or whole.steps != runtime.steps:
        return columns
    return {name: column for name, column in columns.items() if name != "train/loss"}


def _tables_in(path: Path) -> Path | None:
    """The folder of the tables, as the newest version has it that wrote any."""
    for place in (path / below for below in _TABLES):
        if place.is_dir() and next(_files(place), None) is not None:
            return place
    if path.name == _NAMED and next(path.glob(f"*{_SUFFIX}"), None) is not None:
        return path
    return None


def _files(place: Path, depth: int = _MAX_DEPTH) -> Iterator[Path]:
    """The tables in a folder and those below it."""
    for entry in sorted(place.iterdir()):
        if entry.is_dir():
            if depth and not entry.is_symlink():
                yield from _files(entry, depth - 1)
        elif entry.suffix == _SUFFIX and entry.is_file():
            yield entry


def _named_tables(path: Path, place: Path | None) -> Mapping[str, Path]:
    if place is None:
        return {}
    files = _files(place, 0 if place == path else _MAX_DEPTH)
    return {file.relative_to(place).with_suffix("").as_posix(): file for file in islice(files, MOST_METRICS + 1)}


def _column(table: Path, name: str, skipped: list[Skipped]) -> Column:
    """The points of one table: its columns are a time, where it was wanted, the step, and the value."""
    column = Column()
    written: list[str] = []
    try:
        with open_log(table) as stream:
            for first, chunk in whole_lines(stream, skipped):
                rows = _rows(chunk, first, name, skipped)
                if rows and not chunk.endswith(b"\n") and could_be_cut(rows[-1][1][-1], written or _values(rows[:-1])):
                    skipped.append(Skipped(f"{name}: truncated in its last number", line=rows.pop()[0]))
                written += _values(rows)
                for number, cells in rows:
                    time = _seconds(cells[-3]) if len(cells) > 2 else None
                    column.add(whole(cells[-2]), parse_number(cells[-1]), time, number)
    except InputError as error:
        skipped.append(Skipped(error.message))
    return column


def _values(rows: Sequence[tuple[int, list[str]]]) -> list[str]:
    return [cells[-1] for _, cells in rows]


def _rows(chunk: bytes, first: int, name: str, skipped: list[Skipped]) -> list[tuple[int, list[str]]]:
    """The rows of a step and a value, or none, with their lines."""
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate(chunk.decode("utf-8", errors="replace").split("\n"), start=first):
        cells = [cell.strip() for cell in line.split("\t")]
        if not line.strip() or "step" in cells:
            continue
        if len(cells) > 1 and whole(cells[-2]) is not None and (parse_number(cells[-1]) is not None or not cells[-1]):
            rows.append((number, cells))
        else:
            skipped.append(Skipped(f"{name}: no step and value", line=number))
    return rows


def _seconds(cell: str) -> float | None:
    time = parse_number(cell)
    if time is None or time < EARLIEST_TIME:
        return None
    return time / 1000 if time > FIRST_MILLISECONDS else time


def _params(path: Path) -> Mapping[str, Any]:
    """What `log_params` wrote beside the tables."""
    if not (path / "params.yaml").is_file():
        return {}
    from gradtrend.ingest.files.yaml import read_yaml

    return read_yaml(path / "params.yaml")


def _settings(given: Mapping[str, Any]) -> Settings:
    if not given:
        return Settings()
    from gradtrend.ingest.settings.names import settings_from

    return settings_from(given)
