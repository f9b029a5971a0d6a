"""The readings of one run -> its table: parts joined, each series from its best source, the others cross-checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.names import Naming, normalise
from gradtrend.ingest.runs.series.losses import (
    ends_finite,
    gone_for_good,
    gone_note,
    is_any_loss,
    whole_losses,
    without_parts,
)
from gradtrend.ingest.runs.series.tracks import Track, tracks_of
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


@dataclass(frozen=True, slots=True)
class Joined:
    """The readings of a run joined: its table (columns of `TABLE_SCHEMA`), what was noticed meanwhile, the metrics that
    log the whole training loss (see `whole_losses`), and why each metric of the table has its role.
    """

    table: pl.DataFrame
    notes: tuple[Note, ...]
    losses: tuple[str, ...]
    reasons: Mapping[str, str]


def join(readings: Sequence[Reading], namings: Mapping[str, Naming]) -> Joined:
    """The joined readings. Each quantity comes from the source with the most points, then the most digits; `namings`
    gives a role to every metric name.
    """
    best: list[Track] = []
    notes: list[Note] = []
    for tracks in _of_one_quantity(tracks_of(readings), namings):
        ranked = _best_first(tracks)
        best.append(ranked[0])
        if namings[ranked[0].metric].role in _CHECKED_ROLES:
            notes += _cross_checks(ranked[0], ranked[1:])
    losses = [track.reach for track in best if namings[track.metric].role is Role.LOSS]
    wholes = whole_losses(losses, namings, [track.metric for track in best])
    if not wholes:  # then a term speaks for the loss: that of the task before those beside it
        best.sort(key=lambda track: namings[track.metric].is_beside_the_task)
    notes += _lost_parts(best, namings, wholes)
    namings = without_parts(namings, losses, wholes)
    norms = (track for track in best if namings[track.metric].role is Role.GRAD_NORM)
    notes += [note for track in norms if (note := _segment_note(track)) is not None]
    reasons = {track.metric: namings[track.metric].why for track in best}
    return Joined(_table(best, namings), tuple(notes), wholes, reasons)


def _lost_parts(tracks: Sequence[Track], namings: Mapping[str, Naming], wholes: Sequence[str]) -> list[Note]:
    """A note on parts of the loss, and losses on held-out data, that end in NaN while the whole loss, or without one a
    gradient norm, does not.
    """
    goes_on = [t for t in tracks if t.metric in wholes or (not wholes and namings[t.metric].role is Role.GRAD_NORM)]
    if not goes_on or not all(ends_finite(track.rows) for track in goes_on):
        return []
    ended = [track for track in tracks if not ends_finite(track.rows)]
    losses = [track for track in ended if is_any_loss(track.metric, namings[track.metric])]
    gone = [one for track in losses if (one := gone_for_good(track.metric, track.rows)) is not None]
    note = gone_note(gone)
    return [] if note is None else [note]


def _of_one_quantity(tracks: Sequence[Track], namings: Mapping[str, Naming]) -> Iterable[list[Track]]:
    """The tracks by what they log: its quantity and layer, and its name where one format logs that quantity under
    several (`loss` and `train/loss`): those are series of their own.
    """
    names: dict[tuple[str, str, str | None], set[str]] = {}
    for track in tracks:
        naming = namings[track.metric]
        names.setdefault((track.format, naming.quantity, naming.layer), set()).add(normalise(track.metric))
    several = {(quantity, layer) for (_, quantity, layer), found in names.items() if len(found) > 1}
    groups: dict[tuple[str, str | None, str], list[Track]] = {}
    for track in tracks:
        naming = namings[track.metric]
        what = (naming.quantity, naming.layer)
        groups.setdefault((*what, normalise(track.metric) if what in several else ""), []).append(track)
    return groups.values()


def _cross_checks(best: Track, tracks: Sequence[Track]) -> list[Note]:
    """What comparing a track with those of other formats shows; loaded where there are such."""
    others = [other for other in tracks if other.format != best.format and other.numbered == best.numbered]
    if not others:
        return []
    from gradtrend.ingest.runs.series.agreement import cross_check

    return [note for other in others if (note := cross_check(best, other)) is not None]


def _best_first(tracks: list[Track]) -> list[Track]:
    if len(tracks) == 1:
        return tracks
    return sorted(tracks, key=lambda t: (not t.numbered, t.points, min(t.digits, _FLOAT64_DIGITS)), reverse=True)


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
