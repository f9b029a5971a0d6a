"""The readings of one run -> its table: parts joined, each series from its best source, the others cross-checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.names import PART_OF_LOSS, Naming
from gradtrend.ingest.runs.tracks import Track, tracks_of
from gradtrend.model.runlog import Note
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
_FLOAT64_DIGITS = 17  # text that prints more keeps no more
_CHECKED_ROLES = (Role.GRAD_NORM, Role.LOSS, Role.LR)


def merge(readings: Sequence[Reading], namings: Mapping[str, Naming]) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """The run's table (columns of `TABLE_SCHEMA`) and what was noticed while joining.

    Each quantity comes from the source with the most points, then the most digits; `namings` gives a role to every
    metric name.
    """
    candidates: dict[tuple[str, str | None], list[Track]] = {}
    for track in tracks_of(readings):
        naming = namings[track.metric]
        candidates.setdefault((naming.quantity, naming.layer), []).append(track)
    best: list[Track] = []
    notes: list[Note] = []
    for tracks in candidates.values():
        ranked = _best_first(tracks)
        best.append(ranked[0])
        if namings[ranked[0].metric].role in _CHECKED_ROLES:
            notes += _cross_checks(ranked[0], ranked[1:])
    namings = _with_one_loss(best, namings)
    norms = (track for track in best if namings[track.metric].role is Role.GRAD_NORM)
    notes += [note for track in norms if (note := _segment_note(track)) is not None]
    return _table(best, namings), tuple(notes)


def _cross_checks(best: Track, tracks: Sequence[Track]) -> list[Note]:
    """What comparing a track with those of other formats shows; loaded where there are such."""
    others = [other for other in tracks if other.format != best.format and other.numbered == best.numbered]
    if not others:
        return []
    from gradtrend.ingest.runs.agreement import cross_check

    return [note for other in others if (note := cross_check(best, other)) is not None]


def _best_first(tracks: list[Track]) -> list[Track]:
    if len(tracks) == 1:
        return tracks
    return sorted(tracks, key=lambda t: (not t.numbered, t.points, min(t.digits, _FLOAT64_DIGITS)), reverse=True)


def _with_one_loss(tracks: Sequence[Track], namings: Mapping[str, Naming]) -> Mapping[str, Naming]:
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


def _table(tracks: Sequence[Track], namings: Mapping[str, Naming]) -> pl.DataFrame:
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


def _segment_note(track: Track) -> Note | None:
    """A note for a series whose steps go back."""
    if not track.rows["segment"].max():
        return None
    segments = track.rows.group_by("segment", maintain_order=True).agg(
        pl.col("step").min().alias("first"), pl.col("step").max().alias("last")
    )
    *earlier, (first, _) = segments.sort("segment").select("first", "last").rows()
    overwritten = first <= min(begin for begin, _ in earlier)
    return Note(
        "overwritten" if overwritten else "steps-go-back",
        f"{track.metric}: the steps go back to {first} after {earlier[-1][1]}",
        track.metric,
        first_step=first,
        last_step=max(end for _, end in earlier),
        measures=(("segments", float(len(earlier) + 1)),),
        details=", ".join(f"{begin}-{end}" for begin, end in earlier[-3:]),
    )
