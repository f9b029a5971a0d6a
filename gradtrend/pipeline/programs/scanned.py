"""A scan as a program has it: with its texts, its files and its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from gradtrend.errors import ConfigError, InputError
from gradtrend.model.many.contrast import Contrasts
from gradtrend.model.many.record import Record
from gradtrend.model.report import Failure
from gradtrend.pipeline.runs import AnalyzeOptions
from gradtrend.pipeline.scan.engines import elsewhere, here
from gradtrend.pipeline.scan.files import check_suffix, records_bytes, records_frame
from gradtrend.pipeline.scan.scan import Scanned, scan_all
from gradtrend.pipeline.scan.tells import contrasts_of
from gradtrend.pipeline.scan.wanted import Wanted
from gradtrend.pipeline.whole_file import replace_whole
from gradtrend.report import Style
from gradtrend.report.text.scan import scan_summary, scan_text, what_tells

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Scan(Sequence[Record]):
    """The runs of a scan, in the order of their names; `failures` are paths that could not be read, and bugs."""

    records: tuple[Record, ...]
    failures: tuple[Failure, ...] = ()

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        return self.records[place]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __repr__(self) -> str:
        return f"<Scan of {scan_summary(self.records)}>"

    def __str__(self) -> str:
        return self.to_text().rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_text())}</pre>"

    def to_text(self, *, rows: int | None = 20) -> str:
        """What `gradtrend scan` prints: the worst runs, at most so many, and how many have which verdict."""
        return scan_text(self.records, rows, what_tells(self.contrasts()), Style())

    def contrasts(self) -> Contrasts:
        """What tells the sick runs from the healthy ones, by their hyperparameters."""
        return contrasts_of(self.records)

    def frame(self) -> pl.DataFrame:
        """A DataFrame of polars (`.to_pandas()`), a row a run; hyperparameters as JSON text."""
        return records_frame(self.records)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the records to a file, whole, in the format of its suffix: `.jsonl`, `.parquet` or `.csv`.

        Raises `ConfigError` for another suffix, OSError where it cannot be written.
        """
        check_suffix(Path(path), fspath(path))
        replace_whole(Path(path), records_bytes(self.records, Path(path).suffix))


def scan_paths(
    paths: Sequence[str],
    options: AnalyzeOptions,
    wanted: Wanted,
    executor: Executor | None,
    processes: int | None,
    state: str | PathLike[str] | None,
) -> Scan:
    """The runs below some paths. Raises `ConfigError` as `scan_all`, `InputError` where not one path can be read."""
    if processes is not None and processes < 0:
        raise ConfigError(f"processes={processes}: fewer than none", "0: this process alone.")
    engine = here(processes) if executor is None else elsewhere(executor)
    scanned: Scanned = scan_all(paths, options, wanted, engine, None if state is None else Path(state))
    if scanned.failures and not scanned.records and scanned.read + scanned.known <= len(scanned.failures):
        first = scanned.failures[0]
        if first.bug is None:
            raise InputError(first.message, first.hint)
    return Scan(scanned.records, scanned.failures)
