"""What was found of one run, before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.runs.tree import LogFile
from gradtrend.model.runlog import Note


@dataclass(frozen=True, slots=True)
class RunFiles:
    """One run: its name as reported (the path as given, joined with the child), its folder and its logs.

    `is_stream` says that its log can be read once, and by this process alone; `alone`, that what else lies in the
    folder (captures, settings) is of this run; `notes` are what was noticed when it was found, and `error` is why it
    cannot be read.
    """

    name: str
    folder: Path
    logs: tuple[LogFile, ...]
    is_stream: bool = False
    alone: bool = True
    notes: tuple[Note, ...] = ()
    error: InputError | None = None
