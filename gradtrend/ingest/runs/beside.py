"""A store beside other logs: which of its runs is theirs, told by equal values at equal steps."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from gradtrend.errors import InputError
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.names import name_metric
from gradtrend.ingest.reading.stored_runs import WantedRuns, chosen, listed
from gradtrend.ingest.runs.agreement import TOLERANCE, agreement
from gradtrend.ingest.runs.steps import with_steps
from gradtrend.ingest.runs.tree import LogFile
from gradtrend.model.runlog import Note, rows_that_count
from gradtrend.model.words import Role

Readings = Sequence[Reading]  # of one run: its parts
_LEAST_COMMON = 3  # steps, from which two series can be said to agree
_STEP_BASES = (0, 1, -1)  # one logger counts steps from 0, another from 1


class Part(NamedTuple):
    """Readings of one fit; `stored` are those of a store among them, `notes` what of that store is left out."""

    readings: list[Reading]
    notes: tuple[Note, ...] = ()

    @property
    def stored(self) -> Reading | None:
        """Its run of a store, the last part of it."""
        return next((reading for reading in reversed(self.readings) if reading.run is not None), None)


class _Curves(NamedTuple):
    """What of a reading is compared: role, quantity and layer, and the rows that count, of each norm and loss."""

    digits: int
    series: Sequence[tuple[Role, tuple[str, str | None], pl.DataFrame]]


def read_stores(logs: Sequence[LogFile], options: ReadOptions, errors: list[InputError]) -> list[list[Readings]]:
    """The readings of each store of which no run is meant yet: the parts of each of its runs. `errors` gets those of
    what cannot be read.
    """
    stores = [_each_run(log, options, errors) for log in logs if log.is_open_store]
    return [runs for runs in stores if runs]


def _each_run(store: LogFile, options: ReadOptions, errors: list[InputError]) -> list[Readings]:
    assert store.adapter.runs is not None
    try:
        runs = chosen(store.adapter.runs(store.path, WantedRuns()), WantedRuns(), str(store.path))
    except InputError as error:
        errors.append(error)
        return []
    return [found for run in runs if (found := replace(store, run=run).read(options, errors))]


def parted(others: Readings, stores: Sequence[Sequence[Readings]]) -> list[Part]:
    """The readings by fit: `others` of a folder's logs, and those of each run of each of its stores.

    A run joins the logs that it agrees with. Where all logs are of one fit, the other runs of its store are left out,
    and a note says so; where none agrees, or the logs are of several fits, each is a part of its own.
    """
    parts = [Part(list(others))] if others else []
    for runs in stores:
        parts = _with_store(parts, runs, bool(others))
    return parts


def of_stored_run(readings: Readings) -> list[Reading]:
    """The readings of a run of a store, and of those beside it the ones in its own folders or that agree with it."""
    stored = [reading for reading in readings if reading.run is not None]
    folders = [folder for reading in stored if reading.run is not None for folder in reading.run.folders]
    return [
        reading
        for reading in readings
        if reading.run is not None
        or any(reading.path.is_relative_to(folder) for folder in folders)
        or any(_same_fit(_curves_of(reading), _curves_of(one)) for one in stored)
    ]


def _with_store(parts: Sequence[Part], runs: Sequence[Readings], run_folder: bool) -> list[Part]:
    """The parts with the runs of one more store, in a folder that is a run's by its logs, or holds stores alone."""
    one_fit = run_folder and len(parts) == 1
    if one_fit and len(runs) == 1:  # whatever it logged where
        return [Part([*parts[0].readings, *runs[0]], parts[0].notes)]
    logged = [reading for part in parts for reading in part.readings]
    of_logged = [_curves_of(reading) for reading in logged]
    of_runs = [[_curves_of(reading) for reading in run] for run in runs]
    partners = [{i for i, one in enumerate(of_logged) if any(_same_fit(one, own) for own in run)} for run in of_runs]
    kept = _without_repeats(of_runs, partners)
    grouped, taken = _grouped(logged, runs, partners, kept)
    rest = _rest(parts, logged, taken)
    if one_fit and len(grouped) == 1:
        left = [run for place, run in enumerate(runs) if place not in kept]
        beside = [reading for part in rest for reading in part.readings]
        return [Part([*beside, *grouped[0].readings], parts[0].notes + _note(left, runs[kept[0]]))]
    unmatched = [Part(list(run)) for place, run in enumerate(runs) if not partners[place]]
    return [*grouped, *rest, *unmatched]


def _grouped(
    logged: Readings, runs: Sequence[Readings], partners: Sequence[Set[int]], kept: Sequence[int]
) -> tuple[list[Part], Set[int]]:
    """A part for the kept runs that share a partner, with all partners of theirs; and the places of these."""
    grouped: list[Part] = []
    taken: dict[int, Part] = {}
    for place in kept:
        part = next((taken[i] for i in partners[place] if i in taken), None)
        if part is None:
            part = Part([])
            grouped.append(part)
        part.readings.extend(logged[i] for i in sorted(partners[place]) if i not in taken)
        part.readings.extend(runs[place])
        taken |= dict.fromkeys(partners[place], part)
    return grouped, taken.keys()


def _rest(parts: Sequence[Part], logged: Readings, taken: Set[int]) -> list[Part]:
    """What is left of the parts when some readings were taken out of them."""
    gone = {id(logged[i]) for i in taken}
    left = [Part([one for one in part.readings if id(one) not in gone], part.notes) for part in parts]
    return [part for part in left if part.readings]


def _without_repeats(runs: Sequence[Sequence[_Curves]], partners: Sequence[Set[int]]) -> list[int]:
    """The places of the runs that agree with logs, but for those whose steps another one covers: of two fits from one
    seed the one that ended early agrees with the other's logs, too.
    """
    spans = {place: _span(runs[place]) for place, found in enumerate(partners) if found}
    kept: list[int] = []
    for place in sorted(spans, key=lambda place: (spans[place][0] - spans[place][1], place)):
        same = (other for other in kept if partners[other] & partners[place])
        if not any(_within(spans[place], spans[other]) for other in same):
            kept.append(place)
    return sorted(kept)


def _within(short: tuple[int, int], long: tuple[int, int]) -> bool:
    return long[0] <= short[0] and short[1] <= long[1]


def _span(run: Sequence[_Curves]) -> tuple[int, int]:
    """The first and the last step of a run."""
    steps = pl.concat([rows["step"] for part in run for _, _, rows in part.series] or [pl.Series([0])])
    low, high = steps.min(), steps.max()
    assert isinstance(low, int)
    assert isinstance(high, int)
    return low, high


def _note(left: Sequence[Readings], taken: Readings) -> tuple[Note, ...]:
    """A note on the runs of a store that are not those of the logs beside it."""
    runs = [run[0].run for run in left if run[0].run is not None]
    if not runs:
        return ()
    store = taken[0].path.name
    message = (
        f"{store} holds {len(runs) + 1} runs; the other logs here are of {taken[0].run}. Its others: {listed(runs)}"
    )
    return (Note("several-runs", message),)


def _same_fit(a: _Curves, b: _Curves) -> bool:
    """Whether two readings log the same values at the same steps, to the last that both have; by their gradient norms,
    or where these have no step in common or stand still by their losses.
    """
    tolerance = max(TOLERANCE, 10.0 ** (1 - min(a.digits, b.digits)))
    for role in (Role.GRAD_NORM, Role.LOSS):
        pairs = [(x, y) for (r, q, x) in a.series for (s, p, y) in b.series if r is s is role and q == p]
        told = [_equal(x, y, tolerance) for x, y in pairs]
        if any(one is not None for one in told):
            return any(told)
    return False


def _curves_of(reading: Reading) -> _Curves:
    series = []
    for metric, points in with_steps(reading).series.items():
        naming = name_metric(metric)
        if naming.role in (Role.GRAD_NORM, Role.LOSS):
            rows = points.select("step", "value").drop_nulls("step")
            last = rows.filter(pl.Series(rows_that_count(rows["step"].to_numpy())))
            series.append((naming.role, (naming.quantity, naming.layer), last))
    return _Curves(reading.digits, series)


def _equal(a: pl.DataFrame, b: pl.DataFrame, tolerance: float) -> bool | None:
    """Whether two series agree; None where they have too few steps in common, or stand still and so agree with any."""
    found = [agreement(a, b, shift, tolerance) for shift in _STEP_BASES]
    told = [one for one in found if one.common >= _LEAST_COMMON]
    if not told or _stands_still(a, tolerance) or _stands_still(b, tolerance):
        return None
    return any(one.holds and one.ends_alike for one in told)


def _stands_still(rows: pl.DataFrame, tolerance: float) -> bool:
    finite = rows.filter(pl.col("value").is_finite())["value"]
    low, high = finite.min(), finite.max()
    if not isinstance(low, float) or not isinstance(high, float):
        return True
    return high - low <= 2 * tolerance * max(abs(low), abs(high))
