"""Logs that are read together -> the runs that they are, each with its parts, before roles are given and series joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.runs.find import RunFiles
from gradtrend.ingest.runs.places import home_of, is_container, is_held_out
from gradtrend.ingest.runs.restarts import fits_in
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
    """A log that could not be read. `fatal` says that its run is not to be judged without it."""

    path: Path
    error: InputError
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One fit as one log has it, with steps of the whole run; `number` counts the fits of a log from 1, 0 where it holds
    one. `by_writer` says that its folder may be one that a writer makes for one series.
    """

    reading: Reading
    number: int = 0
    by_writer: bool = False


@dataclass(frozen=True, slots=True)
class RunParts:
    """One run: its name as reported, its folder, the logs in it and what of them is joined, copies and ranks left out.

    `root` is the folder below which logs were looked for.
    """

    name: str
    folder: Path
    root: Path
    readings: tuple[Reading, ...] = ()
    joined: tuple[Reading, ...] = ()
    errors: tuple[Unread, ...] = ()
    notes: tuple[Note, ...] = ()
    has_debug: bool = True


def read_runs(files: RunFiles, options: ReadOptions, choice: Choice) -> tuple[RunParts, ...]:
    """The runs that the logs read together are, at least one.

    What cannot be read stands as `errors` in the run to which it belongs, or in one of its own.
    """
    parts, errors = _read_all(files, options, choice)
    if len(parts) < 2 and not files.passed_over and len(files.with_debug) < 2 and not (parts and errors):
        readings = tuple(part.reading for part in parts)
        folder = files.folder if files.folder.is_file() or not readings else _only_home(files, readings[0])
        return (
            (RunParts(files.name, files.folder, files.folder, readings, readings, tuple(errors)),)
            if (folder == files.folder)
            else _sorted_out(files, parts, errors, choice)
        )
    return _sorted_out(files, parts, errors, choice)


def _only_home(files: RunFiles, reading: Reading) -> Path:
    return home_of(reading.path.parent, files.folder) if reading.path.is_relative_to(files.folder) else files.folder


def _sorted_out(
    files: RunFiles, parts: Sequence[Part], errors: Sequence[Unread], choice: Choice
) -> tuple[RunParts, ...]:
    """The parts by run; loaded where there is something to tell apart."""
    from gradtrend.ingest.runs.sort import runs_of

    return runs_of(files, parts, errors, choice)


def _read_all(files: RunFiles, options: ReadOptions, choice: Choice) -> tuple[list[Part], list[Unread]]:
    """What every log held, by fit, and the errors of those that could not be read."""
    read: list[tuple[Reading, bool]] = []
    errors: list[Unread] = []
    for log in files.logs:
        try:
            read += ((reading, log.adapter.folder_a_series) for reading in log.adapter.read(log.path, options))
        except InputError as error:
            errors.append(Unread(log.path, error, options.run_id is not None and log.adapter.holds_runs))
    folders = {reading.path.parent for reading, _ in read}
    parts: list[Part] = []
    for reading, by_writer in read:
        fits = fits_in(_named_by_folder(reading, files.folder, folders), choice.judged.values())
        parts += (Part(fit, i if len(fits) > 1 else 0, by_writer) for i, fit in enumerate(fits, start=1))
    return parts, errors


def _named_by_folder(reading: Reading, root: Path, folders: set[Path]) -> Reading:
    """The reading with what only the sub-folder says put into the metric names.

    `SummaryWriter.add_scalars("grads", {"fc": ...})` writes the tag `grads` in a folder `grads_fc`; Keras writes the
    same tags in `train/` and `validation/`.
    """
    folder = reading.path.parent
    if folder == root or not reading.path.is_relative_to(root):
        return reading
    tags = list(reading.series)
    stem = tags[0].replace("/", "_").replace(" ", "_") + "_" if len(tags) == 1 else ""
    if len(tags) == 1 and folder.name.startswith(stem) and len(folder.name) > len(stem):
        names = [f"{tags[0]}/{folder.name.removeprefix(stem)}"]
    elif is_held_out(folder) and not _is_run_among_runs(folder, folders):
        names = [f"val/{tag}" for tag in tags]
    else:
        return reading
    return replace(reading, series=dict(zip(names, reading.series.values(), strict=True)))


def _is_run_among_runs(folder: Path, folders: set[Path]) -> bool:
    """Whether a folder called `test` or the like is one of several runs so called, and no part of one."""
    if folder.parent in folders:
        return False
    siblings = [other for other in folders if other != folder and other.parent == folder.parent]
    return bool(siblings) and not any(is_container(other.name) and not is_held_out(other) for other in siblings)
