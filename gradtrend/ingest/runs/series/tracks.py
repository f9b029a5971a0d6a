"""The readings of one run -> a series for each format and metric, its parts joined in the order of writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.runs.series.losses import Reach
from gradtrend.model.runlog import rows_that_count


@dataclass(frozen=True, slots=True)
class Track:
    """One series as one format logged it, all its parts joined. Columns of `rows`: step, value, time, line, segment.

    `numbered` says that the steps are row numbers: such a series stands behind one with steps and is not compared.
    """

    metric: str
    format: str
    digits: int
    numbered: bool
    rows: pl.DataFrame

    @property
    def points(self) -> int:
        """Distinct steps."""
        return int(self.rows["step"].n_unique())

    @property
    def reach(self) -> Reach:
        """From which step to which it is logged."""
        first, last = self.rows["step"].min(), self.rows["step"].max()
        assert isinstance(first, int)
        assert isinstance(last, int)
        return Reach(self.metric, first, last, self.points)

    @property
    def last_values(self) -> pl.DataFrame:
        """Step and value of the rows that count (see `rows_that_count`)."""
        return self.rows.select("step", "value").filter(pl.Series(rows_that_count(self.rows["step"].to_numpy())))


def tracks_of(readings: Sequence[Reading]) -> list[Track]:
    """The series of all readings; parts of one format are joined, in the order in which they were begun, else in that
    given; copies of a part are left out.
    """
    by_format: dict[str, list[Reading]] = {}
    for reading in readings:
        by_format.setdefault(reading.format, []).append(reading)
    return [track for name, parts in by_format.items() for track in _of_format(name, parts)]


def _of_format(name: str, parts: Sequence[Reading]) -> list[Track]:
    ordered = sorted(parts, key=lambda r: (r.started is not None, r.started or 0.0))
    digits, numbered = min(part.digits for part in ordered), any(part.numbered for part in ordered)
    by_metric: dict[str, list[pl.DataFrame]] = {}
    for part in ordered:
        for metric, points in part.series.items():
            by_metric.setdefault(metric, []).append(points)
    longest = max((sum(frame.height for frame in frames) for frames in by_metric.values()), default=0)
    zeros = pl.Series("segment", [0], dtype=pl.Int32).new_from_index(0, longest)
    return [
        Track(metric, name, digits, numbered, _with_segments(_without_copies(frames), zeros))
        for metric, frames in by_metric.items()
    ]


def _without_copies(frames: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """The parts, but those whose rows all stand, in order, at the head of another (a checkpoint's copy of the log)."""
    by_start: dict[int, list[int]] = {}
    for i, frame in enumerate(frames):
        by_start.setdefault(frame["step"][0], []).append(i)
    copies = {i for alike in by_start.values() if len(alike) > 1 for i in _heads({i: frames[i] for i in alike})}
    return [frame for i, frame in enumerate(frames) if i not in copies]


def _heads(frames: Mapping[int, pl.DataFrame]) -> list[int]:
    """The keys of those whose rows are the first ones of another, and of equal ones all but the lowest."""
    ordered = sorted((_as_bytes(frame), -i) for i, frame in frames.items())
    # In order, what begins as one does stands right behind it: a folder of a thousand parts takes no million looks.
    return [-i for (short, i), (following, _) in pairwise(ordered) if following.startswith(short)]


def _as_bytes(frame: pl.DataFrame) -> bytes:
    """Steps and values so that equal rows are equal bytes."""
    values = frame["value"]
    numbers = values.to_numpy()
    rows = np.empty(frame.height, [("step", np.int64), ("value", np.float64), ("null", np.bool_)])
    rows["step"] = frame["step"].to_numpy()
    rows["value"] = np.where(np.isnan(numbers), np.nan, numbers + 0.0)  # NaN of one kind, no -0
    rows["null"] = values.is_null().to_numpy()
    return rows.tobytes()


def _with_segments(frames: list[pl.DataFrame], zeros: pl.Series) -> pl.DataFrame:
    """All parts one after another, `segment` counting how often the steps went back.

    `zeros` is the column of a series whose steps never do, at least as long as the parts: all such series share it.
    """
    rows = pl.concat(frames) if len(frames) > 1 else frames[0]
    if rows["step"].is_sorted():
        return rows.hstack([zeros.head(rows.height)])
    goes_back = pl.col("step") < pl.col("step").shift()
    return rows.with_columns(goes_back.cum_sum().fill_null(0).cast(pl.Int32).alias("segment"))
