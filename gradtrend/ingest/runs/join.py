"""The readings of one run -> its table: parts joined, each series from its best source, the others cross-checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.names import PART_OF_LOSS, Naming
from gradtrend.model.runlog import Note, rows_that_count
from gradtrend.model.words import Role

TABLE_SCHEMA = pl.Schema(
    {
        "series": pl.Categorical(),
        "role": pl.Categorical(),
        "layer": pl.Categorical(),
        "step": pl.Int64(),
        "value": pl.Float64(),
        "time": pl.Float64(),
        "line": pl.Int64(),
        "segment": pl.Int32(),
    }
)
# Two sources of one series agree when the values differ by less than this (relative), or than the coarser one prints.
_TOLERANCE = 0.01
# Share of common steps that must differ before it is called a disagreement: loggers differ in averaging on a few rows.
_DISAGREE = 0.05
_FLOAT64_DIGITS = 17  # text that prints more keeps no more
_CHECKED_ROLES = (Role.GRAD_NORM, Role.LOSS, Role.LR)


@dataclass(frozen=True, slots=True)
class _Track:
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


def merge(readings: Sequence[Reading], namings: Mapping[str, Naming]) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """The run's table (columns of `TABLE_SCHEMA`) and what was noticed while joining.

    Each quantity comes from the source with the most points, then the most digits; `namings` gives a role to every
    metric name.
    """
    candidates: dict[tuple[str, str | None], list[_Track]] = {}
    for track in _tracks(readings):
        naming = namings[track.metric]
        candidates.setdefault((naming.quantity, naming.layer), []).append(track)
    best: list[_Track] = []
    notes: list[Note] = []
    for tracks in candidates.values():
        ranked = _best_first(tracks)
        best.append(ranked[0])
        if namings[ranked[0].metric].role in _CHECKED_ROLES:
            others = [o for o in ranked[1:] if o.format != ranked[0].format and o.numbered == ranked[0].numbered]
            notes += [note for other in others if (note := _cross_check(ranked[0], other)) is not None]
    namings = _with_one_loss(best, namings)
    notes += _segment_notes([t for t in best if namings[t.metric].role is Role.GRAD_NORM])
    return _table(best, namings), tuple(notes)


def _best_first(tracks: list[_Track]) -> list[_Track]:
    if len(tracks) == 1:
        return tracks
    return sorted(tracks, key=lambda t: (not t.numbered, t.points, min(t.digits, _FLOAT64_DIGITS)), reverse=True)


def _with_one_loss(tracks: Sequence[_Track], namings: Mapping[str, Naming]) -> Mapping[str, Naming]:
    """Of several names for the whole loss (`loss`, `total_loss`) the one with the most points keeps the role.

    Parts of a loss without a total stay as they are: none of them stands for the others.
    """
    wholes = [t for t in tracks if namings[t.metric].role is Role.LOSS and namings[t.metric].priority < PART_OF_LOSS]
    if len(wholes) < 2:
        return namings
    chosen = max(wholes, key=lambda t: t.points).metric
    why = f"another name for the loss; {chosen} has more points"
    others = {t.metric: replace(namings[t.metric], role=Role.OTHER, why=why) for t in wholes if t.metric != chosen}
    return {**namings, **others}


def _table(tracks: Sequence[_Track], namings: Mapping[str, Naming]) -> pl.DataFrame:
    """The tracks one after another, with the name, the role and the layer of each in every row."""
    if not tracks:
        return pl.DataFrame(schema=TABLE_SCHEMA)
    named = [namings[track.metric] for track in tracks]
    rows = pl.concat([_as_norm(track.rows, naming) for track, naming in zip(tracks, named, strict=True)])
    lengths = [track.rows.height for track in tracks]
    columns: dict[str, list[str | None]] = {
        "series": [track.metric for track in tracks],
        "role": [naming.role.value for naming in named],
        "layer": [naming.layer for naming in named],
    }
    names = [_repeated(name, values, lengths) for name, values in columns.items()]
    return pl.DataFrame([*names, *rows.get_columns()])


def _as_norm(rows: pl.DataFrame, naming: Naming) -> pl.DataFrame:
    return rows.with_columns(pl.col("value").sqrt()) if naming.squared else rows


def _repeated(name: str, values: Sequence[str | None], lengths: Sequence[int]) -> pl.Series:
    """A column with each value as often as its length says."""
    of_one = pl.Series(name, values, dtype=pl.Categorical)
    return pl.concat([of_one.new_from_index(i, length) for i, length in enumerate(lengths)])


def _tracks(readings: Sequence[Reading]) -> list[_Track]:
    """Readings of one format joined in the order in which they were written; copies of a part left out."""
    by_format: dict[str, list[Reading]] = {}
    for reading in readings:
        by_format.setdefault(reading.format, []).append(reading)
    tracks: list[_Track] = []
    for format_name, parts in by_format.items():
        ordered = sorted(parts, key=lambda r: (r.started is not None, r.started or 0.0))
        digits, numbered = min(part.digits for part in ordered), any(part.numbered for part in ordered)
        by_metric: dict[str, list[pl.DataFrame]] = {}
        for part in ordered:
            for metric, points in part.series.items():
                by_metric.setdefault(metric, []).append(points)
        longest = max((sum(frame.height for frame in frames) for frames in by_metric.values()), default=0)
        zeros = pl.Series("segment", [0], dtype=pl.Int32).new_from_index(0, longest)
        for metric, frames in by_metric.items():
            rows = _with_segments(_without_copies(frames), zeros)
            tracks.append(_Track(metric, format_name, digits, numbered, rows))
    return tracks


def _without_copies(frames: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """The parts, but those whose rows all stand, in order, at the head of another (a checkpoint's copy of the log)."""
    kept: list[pl.DataFrame] = []
    for i, frame in enumerate(frames):
        others = [
            f
            for j, f in enumerate(frames)
            if j != i and (f.height > frame.height or (f.height == frame.height and j < i))
        ]
        if not any(_is_head_of(frame, other) for other in others):
            kept.append(frame)
    return kept


def _is_head_of(short: pl.DataFrame, long: pl.DataFrame) -> bool:
    return bool(short.select("step", "value").equals(long.select("step", "value").head(short.height), null_equal=True))


def _with_segments(frames: list[pl.DataFrame], zeros: pl.Series) -> pl.DataFrame:
    """All parts one after another, `segment` counting how often the steps went back.

    `zeros` is the column of a series whose steps never do, at least as long as the parts: all such series share it.
    """
    rows = pl.concat(frames) if len(frames) > 1 else frames[0]
    if rows["step"].is_sorted():
        return rows.hstack([zeros.head(rows.height)])
    goes_back = pl.col("step") < pl.col("step").shift()
    return rows.with_columns(goes_back.cum_sum().fill_null(0).cast(pl.Int32).alias("segment"))


def _last_values(track: _Track) -> pl.DataFrame:
    """Step and value of the rows that count (see `rows_that_count`)."""
    return track.rows.select("step", "value").filter(pl.Series(rows_that_count(track.rows["step"].to_numpy())))


def _segment_notes(tracks: Iterable[_Track]) -> list[Note]:
    """One note for each total gradient norm whose steps go back."""
    notes = []
    for track in tracks:
        if not track.rows["segment"].max():
            continue
        segments = track.rows.group_by("segment", maintain_order=True).agg(
            pl.col("step").min().alias("first"), pl.col("step").max().alias("last")
        )
        spans = segments.sort("segment").rows()
        _, first, _ = spans[-1]
        earlier = ", ".join(f"{a}-{b}" for _, a, b in spans[:-1][-3:])
        kind = "overwritten" if first <= min(a for _, a, _ in spans[:-1]) else "steps-go-back"
        notes.append(
            Note(
                kind,
                f"{track.metric}: the steps go back to {first} after {spans[-2][2]}",
                track.metric,
                first_step=first,
                last_step=max(b for _, _, b in spans[:-1]),
                measures=(("segments", float(len(spans))),),
                details=earlier,
            )
        )
    return notes


def _cross_check(best: _Track, other: _Track) -> Note | None:
    """What two sources of one series disagree on at their common steps, as logged or with the steps one apart."""
    tolerance = max(_TOLERANCE, 10.0 ** (1 - min(best.digits, other.digits)))
    a, b = _last_values(best), _last_values(other)
    common, same, first_difference = _agreement(a, b, 0, tolerance)
    if common and same >= (1 - _DISAGREE) * common:
        return None
    for shift in (1, -1):
        shifted_common, shifted_same, _ = _agreement(a, b, shift, tolerance)
        if shifted_common >= 3 and shifted_same >= (1 - _DISAGREE) * shifted_common:
            direction = "later" if shift < 0 else "earlier"
            message = (
                f"{other.metric} in {other.format} counts steps one {direction} than {best.metric} in {best.format}"
            )
            return Note("step-base", message, best.metric, measures=(("shift", float(-shift)),))
    if common < 3:
        return None
    message = (
        f"{best.format} and {other.format} disagree on {best.metric} at {common - same} of {common} common steps;"
        f" {best.format} is used"
    )
    return Note(
        "sources-disagree", message, best.metric, first_step=first_difference,
        measures=(("disagreeing_share", (common - same) / common),),
    )  # fmt: skip


def _agreement(a: pl.DataFrame, b: pl.DataFrame, shift: int, tolerance: float) -> tuple[int, int, int | None]:
    """Common steps, those on which the values agree, and the first on which they do not."""
    joined = a.select("step", "value").join(
        b.select(pl.col("step") + shift, pl.col("value").alias("other")), on="step", maintain_order="left"
    )
    x, y = joined["value"].to_numpy(), joined["other"].to_numpy()
    with np.errstate(invalid="ignore"):
        close = np.abs(x - y) <= tolerance * np.maximum(np.abs(x), np.abs(y))
    agree = close | (x == y) | (~np.isfinite(x) & ~np.isfinite(y))
    different = np.flatnonzero(~agree)
    return joined.height, int(agree.sum()), int(joined["step"][int(different[0])]) if different.size else None
