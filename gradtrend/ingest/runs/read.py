"""Logs that are read together -> the runs that they are, each with its parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.names import name_metric
from gradtrend.ingest.runs.evidence.restarts import fits_in
from gradtrend.ingest.runs.finding.places import home_of, is_container, is_held_out, is_held_out_file
from gradtrend.ingest.runs.finding.run_files import RunFiles
from gradtrend.ingest.runs.parts import Choice, Part, RunParts, Unread
from gradtrend.model.words import Role

_SHOWN = 5  # runs named where the one asked for is not there


def read_runs(files: RunFiles, options: ReadOptions, choice: Choice) -> tuple[RunParts, ...]:
    """The runs that the logs read together are, at least one.

    What cannot be read stands as `errors` in the run to which it belongs, or in one of its own. Raises InputError where
    the runs of a store cannot be listed.
    """
    if files.error is not None:
        raise files.error
    parts, errors = _read_all(files, options, choice)
    if files.stored:
        readings = tuple(part.reading for part in parts)
        own = files.alone
        return (RunParts(files.name, files.folder, readings, readings, tuple(errors), files.notes, own, own),)
    if files.only is None and files.picked is None and _is_plain(files, parts, errors):
        readings = tuple(part.reading for part in parts)
        below = not Path(files.name).is_file()  # around a log that was given by itself others may lie
        return (RunParts(files.name, files.folder, readings, readings, tuple(errors), has_sub_folders=below),)
    from gradtrend.ingest.runs.sort import runs_of  # loaded where there is something to tell apart

    runs = runs_of(files, parts, errors, choice)
    if files.picked is not None:
        from gradtrend.ingest.runs.picked import picked_runs

        runs = picked_runs(files, files.picked, runs, [part.reading for part in parts], errors)
    return runs if files.only is None else _only(files.only, runs)


def _only(name: str, runs: Sequence[RunParts]) -> tuple[RunParts, ...]:
    """The one run of a name. Raises InputError where there is none."""
    found = tuple(run for run in runs if run.name == name)
    if not found:
        names = ", ".join(run.name for run in runs[:_SHOWN])
        raise InputError(f"{name}: no such run", f"There is: {names}" if runs else None)
    return found


def _is_plain(files: RunFiles, parts: Sequence[Part], errors: Sequence[Unread]) -> bool:
    """Whether there is one run at most, and it lies where logs were looked for."""
    if len(parts) + len(errors) > 1 or files.passed_over:
        return False
    paths = [part.reading.path for part in parts] + [unread.path for unread in errors]
    homes = {files.folder, *files.with_debug}
    homes |= {
        home_of(path.parent, files.folder)
        for path in paths
        if path != files.folder and path.is_relative_to(files.folder)
    }
    return homes == {files.folder}


def _read_all(files: RunFiles, options: ReadOptions, choice: Choice) -> tuple[list[Part], list[Unread]]:
    """What every log held, by fit, and the errors of those that could not be read."""
    read: list[tuple[Reading, bool]] = []
    errors: list[Unread] = []
    for log in files.logs:
        try:
            for reading in log.read(options):
                read.append((reading, log.adapter.folder_a_series))
        except InputError as error:
            errors.append(Unread(log.path, error))
    names: dict[Path, list[str]] = {}
    for reading, _ in read:
        names.setdefault(reading.path.parent, []).append(reading.path.name)
    parts: list[Part] = []
    for reading, by_writer in read:
        fits = fits_in(_named_by_place(reading, files.folder, names), choice.judged.values())
        parts += (Part(fit, i if len(fits) > 1 else 0, by_writer) for i, fit in enumerate(fits, start=1))
    return parts, errors


def _named_by_place(reading: Reading, root: Path, names: Mapping[Path, Sequence[str]]) -> Reading:
    """The reading with what only its file or its folder says put into the metric names.

    `SummaryWriter.add_scalars("grads", {"fc": ...})` writes the tag `grads` in a folder `grads_fc`; Keras writes the
    same tags in `train/` and `validation/`; other programs write `train.csv` and `val.csv`.
    """
    folder = reading.path.parent
    if is_held_out_file(reading.path.name, names[folder]):
        return _held_out(reading)
    if folder == root or not reading.path.is_relative_to(root):
        return reading
    tags = list(reading.series)
    stem = tags[0].replace("/", "_").replace(" ", "_") + "_" if len(tags) == 1 else ""
    if len(tags) == 1 and folder.name.startswith(stem) and len(folder.name) > len(stem):
        return replace(reading, series={f"{tags[0]}/{folder.name.removeprefix(stem)}": reading.series[tags[0]]})
    if is_held_out(folder) and _is_part(reading, names):
        return _held_out(reading)
    return reading


def _held_out(reading: Reading) -> Reading:
    return replace(reading, series={f"val/{metric}": points for metric, points in reading.series.items()})


def _is_part(reading: Reading, folders: Collection[Path]) -> bool:
    """Whether a folder called `test` or the like is a part of a run, and not a run of that name beside others."""
    folder = reading.path.parent
    siblings = [other for other in folders if other != folder and other.parent == folder.parent]
    if folder.parent in folders or any(other.name.lower() in ("train", "training") for other in siblings):
        return True
    # An evaluation has no gradients.
    no_norm = not any(name_metric(metric).role is Role.GRAD_NORM for metric in reading.series)
    return no_norm and all(is_container(other.name) for other in siblings)
