"""Files of records: what a scan writes, what `--merge` joins."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradtrend.errors import ConfigError
from gradtrend.model.many.record import Record
from gradtrend.model.report import Failure
from gradtrend.pipeline.scan.scan import Scanned, in_order
from gradtrend.pipeline.scan.state import State
from gradtrend.pipeline.scan.tells import tells_of
from gradtrend.pipeline.scan.wanted import Wanted, unmatched
from gradtrend.report.json.records import record_from_dict, record_from_line, record_line, row_of

if TYPE_CHECKING:
    import polars as pl

RECORD_SUFFIXES = (".jsonl", ".parquet", ".csv")
_LONGEST_LINE = 1 << 24  # bytes; a record of thousands of hyperparameters is shorter
_LISTS = ("rules", "next", "formats")
_INTEGERS = ("onset_step", "points", "last_step", "nonfinite_step", "size")
_NUMBERS = ("confidence", "baseline", "peak", "last", "last_loss")


def check_suffix(path: Path, said: str) -> None:
    """Raise `ConfigError` for a suffix that no file of records has; `said` is the path as it was given."""
    if path.suffix.lower() not in RECORD_SUFFIXES:
        known = ", ".join(RECORD_SUFFIXES)
        raise ConfigError(f"{said}: no file of records has the suffix {path.suffix!r}", f"Known: {known}.")


def records_bytes(records: Sequence[Record], suffix: str) -> bytes:
    """Records as a file with one of the `RECORD_SUFFIXES` holds them."""
    if suffix.lower() == ".jsonl":
        return "".join(map(record_line, records)).encode()
    frame, data = records_frame(records), io.BytesIO()
    if suffix.lower() == ".parquet":
        frame.write_parquet(data)
    else:
        import polars as pl

        frame.with_columns(pl.col(*_LISTS).list.join(" ")).write_csv(data)
    return data.getvalue()


def records_frame(records: Sequence[Record]) -> pl.DataFrame:
    """Records as a DataFrame of polars, a row a run, a column a field; hyperparameters as JSON text."""
    import polars as pl

    rows = [_printable(row_of(record)) for record in records]
    types: dict[str, Any] = dict.fromkeys(row_of(Record("")), pl.String) | {"sick": pl.Boolean}
    types |= {name: pl.List(pl.String) for name in _LISTS} | dict.fromkeys(_INTEGERS, pl.Int64)
    return pl.DataFrame(rows, schema=types | dict.fromkeys(_NUMBERS, pl.Float64), orient="row")


def _printable(row: dict[str, Any]) -> dict[str, Any]:
    """Text that no encoding has (a file's name may hold such bytes) written out."""
    return {name: _text(value) for name, value in row.items()}


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_text(one) for one in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def holds_records(path: Path) -> bool:
    """Whether a file is one that `records_bytes` makes, as its beginning says; or is not there, or empty."""
    if not path.is_file() or path.suffix.lower() == ".parquet":  # which is no log's
        return True
    with path.open("rb") as file:
        line = file.readline(_LONGEST_LINE)
    if path.suffix.lower() == ".csv":
        return not line or line.rstrip(b"\r\n").split(b",") == [name.encode() for name in row_of(Record(""))]
    return not line or record_from_line(line) is not None


def merged(paths: Sequence[Path], wanted: Wanted, tell: bool = False) -> Scanned:
    """The records in several files as one scan, each run once: of two the one whose logs are newer, else the later."""
    found: dict[tuple[str, str | None], Record] = {}
    failures: list[Failure] = []
    for path in paths:
        records, failure = _records_in(path)
        failures += [] if failure is None else [failure]
        for record in records:
            known = found.get((record.run, record.name))
            if known is None or (known.modified or 0.0) <= (record.modified or 0.0):
                found[record.run, record.name] = record
    compared = in_order(record for record in found.values() if wanted.compares(record))
    return Scanned(
        records=tuple(record for record in compared if wanted.has(record)),
        failures=tuple(failures),
        tells=tells_of(compared, State()) if tell else (),
        unmatched=tuple(sorted(unmatched((*wanted.include, *wanted.exclude), found.values()))),
    )


def _records_in(path: Path) -> tuple[list[Record], Failure | None]:
    """What a file holds, and what is wrong with it: not there, no records, or some lines that are none."""
    try:
        return _parquet(path) if path.suffix.lower() == ".parquet" else _lines(path)
    except OSError as error:
        return [], Failure(str(path), f"{path}: {error.strerror or error}")


def _lines(path: Path) -> tuple[list[Record], Failure | None]:
    lines = [(number, line) for number, line in enumerate(path.read_bytes().splitlines(), 1) if line.strip()]
    read = [(number, record_from_line(line)) for number, line in lines]
    records = [record for _, record in read if record is not None]
    lost = [number for number, record in read if record is None]
    if not lost:
        return records, None
    if not records:
        return [], Failure(str(path), f"{path}: holds no records", _HINT)
    what = f"line {lost[0]} is" if len(lost) == 1 else f"{len(lost)} lines, the first of them {lost[0]}, are"
    return records, Failure(str(path), f"{path}: {what} no record", "Was the scan that wrote it ended?")


_HINT = "Give what `gradtrend scan -o runs.jsonl`, or .parquet, has written."


def _parquet(path: Path) -> tuple[list[Record], Failure | None]:
    import polars as pl

    try:
        rows = pl.read_parquet(path.read_bytes()).to_dicts()
        for row in rows:
            row["hyperparameters"] = json.loads(row["hyperparameters"])
    except (pl.exceptions.PolarsError, KeyError, TypeError, ValueError, RecursionError):
        return [], Failure(str(path), f"{path}: holds no records", _HINT)
    records = [record for record in map(record_from_dict, rows) if record is not None]
    return records, None if len(records) == len(rows) else Failure(
        str(path), f"{path}: not all rows are records", _HINT
    )
