"""The parts of which a run is made, before roles are given and series joined."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.reading import Reading
from gradtrend.model.runlog import Note
from gradtrend.model.words import Role


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's choice of series by name; None leaves it to the names' own meaning."""

    metric: str | None = None
    loss: str | None = None
    lr: str | None = None

    @property
    def judged(self) -> dict[Role, str]:
        """What was chosen as gradient norm and as loss."""
        chosen = {Role.GRAD_NORM: self.metric, Role.LOSS: self.loss}
        return {role: name for role, name in chosen.items() if name is not None}


@dataclass(frozen=True, slots=True)
class Unread:
    """A log that could not be read."""

    path: Path
    error: InputError


@dataclass(frozen=True, slots=True)
class Part:
    """One fit as one log has it, with steps of the whole run.

    `number` counts the fits of a log from 1, and is 0 where it holds one; `by_writer` says that its folder may be one
    that a writer makes for one series.
    """

    reading: Reading
    number: int = 0
    by_writer: bool = False


@dataclass(frozen=True, slots=True)
class RunParts:
    """One run: its name as reported, its folder, its logs and what of them is joined, copies and ranks left out.

    `has_debug` and `has_settings` say that captures and settings in the folder are its own, `has_sub_folders` that all
    that lies below is.
    """

    name: str
    folder: Path
    readings: tuple[Reading, ...] = ()
    joined: tuple[Reading, ...] = ()
    errors: tuple[Unread, ...] = ()
    notes: tuple[Note, ...] = ()
    has_debug: bool = True
    has_settings: bool = True
    has_sub_folders: bool = True
