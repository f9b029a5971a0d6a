"""What was found of runs, before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gradtrend.errors import InputError
from gradtrend.ingest.reading.stored_runs import StoredRun
from gradtrend.ingest.runs.finding.tree import LogFile, PassedOver
from gradtrend.model.runlog import Note

if TYPE_CHECKING:  # loaded where there is an address
    from gradtrend.ingest.remote.objects import Remote


@dataclass(frozen=True, slots=True)
class Picked:
    """The runs of stores that were asked for; `only` says that what is of no store was not."""

    runs: tuple[StoredRun, ...]
    only: bool


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Logs to be read together: of one run, or of several that lie close together.

    `name` is the path as given, joined with the folder that holds them all; `with_debug` are the folders that may hold
    captures, `passed_over` what was not read there. `is_stream` says that its log can be read once, and by this process
    alone; `only` is the name of the one run that was asked for (`train.log#2`).

    Of a run of a store that lies alone `stored` is true, `alone` says that what else lies in its folder (captures,
    settings) is its own, and `notes` are what was noticed when it was found. Of stores beside other logs `picked` are
    the runs that were asked for, None where none were. `error` is why a store cannot be read.

    Of a remote place `remote` says where the logs come from; they can be read as `localized` has them.
    """

    name: str
    folder: Path
    logs: tuple[LogFile, ...]
    is_stream: bool = False
    only: str | None = None
    with_debug: tuple[Path, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    stored: bool = False
    alone: bool = True
    picked: Picked | None = None
    notes: tuple[Note, ...] = ()
    error: InputError | None = None
    remote: Remote | None = None
