"""Runs of stores beside other logs that were asked for: what of a share is of them."""

from __future__ import annotations

from collections.abc import Sequence

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.stored_runs import StoredRun
from gradtrend.ingest.runs.finding.run_files import Picked, RunFiles
from gradtrend.ingest.runs.naming import place_in_store
from gradtrend.ingest.runs.parts import RunParts, Unread


def picked_runs(
    files: RunFiles,
    picked: Picked,
    runs: Sequence[RunParts],
    readings: Sequence[Reading],
    errors: Sequence[Unread],
) -> tuple[RunParts, ...]:
    """Of the runs in a share those that hold a picked run of a store, and those of no store unless only the former were
    asked for. One that none holds, as it could not be read or has no norm and no loss, is a run with what it has.
    """
    held = [[reading.run for reading in run.readings if reading.run is not None] for run in runs]
    kept = [
        run
        for run, stored in zip(runs, held, strict=True)
        if any(one in picked.runs for one in stored) or not (stored or picked.only)
    ]
    known = [one for stored in held for one in stored]
    return (*kept, *(_not_told(files, one, readings, errors) for one in picked.runs if one not in known))


def _not_told(files: RunFiles, run: StoredRun, readings: Sequence[Reading], errors: Sequence[Unread]) -> RunParts:
    """A run of a store of which the other logs say nothing."""
    store = next(log.path for log in files.logs if run in log.runs)
    place = place_in_store(files, store, run)
    own = tuple(reading for reading in readings if reading.run == run)
    unread = () if own else tuple(error for error in errors if error.path == store)
    return RunParts(place.name, place.folder, own, own, unread, has_debug=False, has_settings=False)
