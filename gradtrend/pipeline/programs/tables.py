"""Tables that a program holds: into a run, and out of one."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from gradtrend.errors import InputError
from gradtrend.ingest import RunFiles, nulls_told_apart, run_of_table
from gradtrend.model.runlog import RunLog

if TYPE_CHECKING:
    import polars as pl

    class PandasFrame(Protocol):
        """A DataFrame of pandas, which need not be installed."""

        def to_csv(self, path: Any = ..., /) -> Any:
            """What tells it from other things."""

    Table: TypeAlias = Mapping[str, Sequence[Any]] | pl.DataFrame | PandasFrame

TABLE_SUFFIXES = (".parquet", ".csv")


def is_table(thing: object) -> bool:
    """Whether this is a DataFrame of polars or pandas, or columns by their names."""
    return isinstance(thing, Mapping) or hasattr(thing, "write_csv") or hasattr(thing, "to_csv")


def run_in(table: Any) -> RunFiles:
    """The run whose log is a table: a row a step, or a row a value. Raises `InputError` for one that cannot be read."""
    kind = type(table).__name__
    try:
        text = _csv_of_columns(table) if isinstance(table, Mapping) else _csv_of_frame(table)
    except Exception as error:  # of polars or pandas, and of what the columns hold
        raise InputError(f"the {kind} is no table of numbers: {type(error).__name__}: {error}") from error
    return run_of_table(text.encode("utf-8", "backslashreplace"))


def series_frame(log: RunLog) -> pl.DataFrame:
    """All that a run logged, a row a value: metric, role, layer, step, value; in the order logged within a metric."""
    import polars as pl

    return log.table.select(
        pl.col("series").cast(pl.String).alias("metric"),
        pl.col("role").cast(pl.String),
        pl.col("layer").cast(pl.String),
        pl.col("step"),
        pl.col("value"),
    )


def frame_of(logs: Sequence[RunLog]) -> pl.DataFrame:
    """All that several runs logged, as `series_frame` has it behind a column with the name of the `run`."""
    import polars as pl

    frames = [series_frame(log).select(pl.lit(_printable(log.run)).alias("run"), pl.all()) for log in logs]
    return pl.concat(frames) if frames else pl.DataFrame({"run": []})


def table_bytes(frame: pl.DataFrame, suffix: str) -> bytes:
    """A table as a file with one of the `TABLE_SUFFIXES` holds it."""
    data = io.BytesIO()
    if suffix.lower() == ".parquet":
        frame.write_parquet(data)
    else:
        frame.write_csv(data)
    return data.getvalue()


def _printable(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()  # a file's name that is no UTF-8 is no text


def _csv_of_columns(columns: Mapping[Any, Any]) -> str:
    import polars as pl

    if not columns:
        raise ValueError("it has no columns")
    series = [pl.Series(_one_line(name), list(values), strict=False) for name, values in columns.items()]
    return pl.DataFrame(series).write_csv()


def _csv_of_frame(frame: Any) -> str:
    if hasattr(frame, "write_csv"):
        return str(frame.rename(_one_line).write_csv())
    named = frame.reset_index() if frame.index.name is not None else frame  # steps, where they were made the index
    return _csv_of_columns({name: _of_pandas(column) for name, column in named.items()})


def _of_pandas(column: Any) -> Any:
    """A column whose NaN may be a value or stand for none: pandas has no other word for it."""
    import polars as pl

    if column.dtype.kind != "f":
        return column.tolist()
    return nulls_told_apart(pl.Series(column.tolist(), dtype=pl.Float64).fill_nan(None))


def _one_line(name: object) -> str:
    return " ".join(str(name).splitlines())
