"""Choosing one run of a store that holds several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.model.runlog import Note

_MAX_RUNS_LISTED = 10  # enough to find one's run again, short enough for one screen


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run of a store. `started` is in seconds since the epoch; `place` is where the adapter finds it again."""

    id: str
    name: str | None
    started: float | None
    has_metrics: bool
    deleted: bool = False
    place: str = ""

    def __str__(self) -> str:
        when = "start unknown"
        if self.started is not None:
            with suppress(ValueError, OverflowError, OSError):  # a time far outside the calendar
                when = datetime.fromtimestamp(self.started, UTC).strftime("started %Y-%m-%d %H:%M:%S UTC")
        return f"{self.id} ({self.name or 'no name'}, {when})"


def choose_run(runs: Sequence[StoredRun], wanted: str | None, store: str) -> tuple[StoredRun, tuple[Note, ...]]:
    """The run to read: the wanted one (full id, name, or start of an id), else the newest that has metrics.

    Where nothing was asked for and there were others to choose from, a note lists them. Raises InputError where there
    is no such run, or nothing to read.
    """
    if wanted:
        return _named_run(runs, wanted, store), ()
    usable = _newest_first(run for run in runs if run.has_metrics and not run.deleted)
    if not usable:
        raise EmptyLogError(
            f"{store} holds no run with metrics ({len(runs)} runs in all)",
            "Check that the run logged metrics here, or give another store.",
        )
    chosen, others = usable[0], usable[1:]
    if not others:
        return chosen, ()
    message = (
        f"{store} holds {len(usable)} runs; read the newest, {chosen}. Others (--run-id picks one): {_listed(others)}"
    )
    return chosen, (Note("several-runs", message),)


def _named_run(runs: Sequence[StoredRun], wanted: str, store: str) -> StoredRun:
    """The run that `wanted` names. Raises InputError where it names none or several."""
    matches = (
        [run for run in runs if run.id == wanted]
        or [run for run in runs if run.name == wanted and not run.deleted]
        or [run for run in runs if run.id.startswith(wanted) and not run.deleted]
    )
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise InputError(
            f"--run-id {wanted} fits {len(matches)} runs of {store}",
            f"Give one full id: {_listed(_newest_first(matches))}",
        )
    present = _newest_first(run for run in runs if not run.deleted)
    hint = f"It holds: {_listed(present)}" if present else "It holds no runs."
    raise InputError(f"no run {wanted} in {store}", hint)


def _newest_first(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """The runs by start time, newest first; those without one come last."""
    return sorted(runs, key=lambda run: -math.inf if run.started is None else run.started, reverse=True)


def _listed(runs: Sequence[StoredRun]) -> str:
    """Up to `_MAX_RUNS_LISTED` runs in words."""
    more = len(runs) - _MAX_RUNS_LISTED
    return "; ".join(str(run) for run in runs[:_MAX_RUNS_LISTED]) + (f"; and {more} more" if more > 0 else "")
