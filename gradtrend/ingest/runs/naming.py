"""Where a run lies and how it is named: so that its name tells it from its neighbours."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from gradtrend.ingest.reading.stored_runs import StoredRun
from gradtrend.ingest.runs.evidence.grouping import Group
from gradtrend.ingest.runs.evidence.traces import Trace
from gradtrend.ingest.runs.finding.find import joined
from gradtrend.ingest.runs.finding.places import home_of, natural
from gradtrend.ingest.runs.finding.run_files import RunFiles
from gradtrend.ingest.runs.stored_groups import is_stored


@dataclass(frozen=True, slots=True)
class Place:
    """A run's name as reported and its folder, where its settings and captures are looked for."""

    name: str
    folder: Path

    @classmethod
    def at(cls, files: RunFiles, path: Path) -> Place:
        """The place of a folder or file below the one in which logs were looked for."""
        return cls(_name(files, path), path if path.is_dir() else path.parent)


class Owned(NamedTuple):
    """Whether what lies in a run's folder is its own, and whether what lies below is."""

    folder: bool = True
    below: bool = True


def owned(files: RunFiles, folders: Sequence[Path]) -> list[Owned]:
    """What is each run's own, by the folders of all. Around a log that was given by itself others may lie."""
    counts = Counter(folders)
    above = {parent for folder in counts for parent in folder.parents}
    all_seen = Path(files.name).is_dir()
    return [Owned(counts[folder] == 1, counts[folder] == 1 and all_seen and folder not in above) for folder in folders]


def places_of(files: RunFiles, groups: Sequence[Group], single_folder: frozenset[str]) -> list[Place]:
    """For each group its place: the outermost folder that holds no other's logs, else its file and its number there."""
    if len(groups) == 1:
        return [_of_only(files, groups[0])]
    holders: Counter[Path] = Counter()
    direct: Counter[Path] = Counter()
    numbered = Counter({trace.path.parent: 0 for group in groups for trace in group})
    owners = Counter(path for group in groups for path in {trace.path for trace in group})
    shared = {path for path, count in owners.items() if count > 1}
    for group in groups:
        if any(trace.path in shared or trace.format in single_folder for trace in group):
            numbered.update({trace.path.parent for trace in group})
        folders = {trace.path.parent for trace in group}
        direct.update(folders)
        holders.update({above for folder in folders for above in (folder, *folder.parents)})
    places = [_place(files, group, (holders, direct, numbered), shared, single_folder) for group in groups]
    return _numbered(places)


def _of_only(files: RunFiles, group: Group) -> Place:
    inside = all(trace.path.is_relative_to(files.folder) for trace in group)
    if not inside or files.logs[0].path == files.folder or not Path(files.name).is_dir():
        return Place(files.name, files.folder)
    folder = _original(group) or home_of(_common(group), files.folder)
    return Place(_name(files, folder), folder)


def _original(group: Group) -> Path | None:
    """Of a run and its copies elsewhere the folder with the most points, the first by name; None without copies."""
    homes: dict[Path, Counter[str]] = {}
    points: Counter[Path] = Counter()
    for trace in group:
        homes.setdefault(trace.home, Counter())[trace.format] += 1
        points[trace.home] += len(trace.main.steps) if trace.main is not None else 0
    if len(homes) < 2 or len({frozenset(formats) for formats in homes.values()}) > 1:
        return None
    spans = {home: _span([trace for trace in group if trace.home == home]) for home in homes}
    first, last = min(span[0] for span in spans.values()), max(span[1] for span in spans.values())
    if (first, last) not in spans.values():  # no copies: one goes on from another
        return None
    return min(homes, key=lambda home: (-points[home], len(home.parts), natural(str(home))))


def _span(traces: Sequence[Trace]) -> tuple[int, int]:
    """The first and the last step of some logs."""
    told = [trace for trace in traces if trace.main is not None]
    return min((trace.first for trace in told), default=0), max((trace.last for trace in told), default=0)


def _place(
    files: RunFiles,
    group: Group,
    counts: tuple[Counter[Path], Counter[Path], Counter[Path]],
    shared: set[Path],
    single_folder: frozenset[str],
) -> Place:
    if is_stored(group):
        return _in_store(files, group)
    holders, direct, numbered = counts
    common = _common(group)
    inner = sorted({trace.home for trace in group} | {trace.path.parent for trace in group})
    candidates = [home_of(common, files.folder), common, *inner]
    inside = [folder for folder in candidates if folder.is_relative_to(files.folder)]
    original = _original(group)
    alone = original if original is not None and holders[original] == 1 else None
    alone = alone or next((folder for folder in inside[:2] if holders[folder] == 1), None)
    if alone is None and direct[common] == 1 and all(trace.home == common for trace in group) and common in inside:
        alone = common
    alone = alone or next((folder for folder in inside if holders[folder] == 1), None)
    alone = alone or next((folder for folder in inside if direct[folder] == 1 and common == folder), None)
    if alone is not None:
        return Place(_name(files, alone), alone)
    own = [trace for trace in group if trace.path not in shared and trace.format not in single_folder]
    if own and not any(trace.path in shared for trace in group):
        first = max(own, key=lambda trace: (trace.norm is not None, len(trace.main.steps) if trace.main else 0))
        return Place(_name(files, first.path), first.path.parent)
    folder = group[0].path.parent
    in_one_file = {trace.path for trace in group} if direct[folder] > numbered[folder] else ()
    at = next(iter(in_one_file)) if len(in_one_file) == 1 else folder
    return Place(_name(files, at) + "#", folder)


def _in_store(files: RunFiles, group: Group) -> Place:
    path = group[0].path
    store = next((log.path for log in files.logs if path == log.path or path.is_relative_to(log.path)), path)
    return place_in_store(files, store, group[0].reading.run)


def place_in_store(files: RunFiles, store: Path, run: StoredRun | None) -> Place:
    """The place of a run of a store: by its id there."""
    return Place(os.path.join(_name(files, store), run.id if run is not None else ""), store.parent)  # noqa: PTH118


def _common(group: Group) -> Path:
    return Path(os.path.commonpath([trace.path.parent for trace in group]))


def _name(files: RunFiles, path: Path) -> str:
    given = Path(files.name)
    if not path.is_relative_to(files.folder) or path == given:
        return files.name
    return joined(files.name, files.folder, path)


def _numbered(places: Sequence[Place]) -> list[Place]:
    """The places with names that differ: `PATH#1`, `PATH#2` where several runs lie in one folder or file."""
    counts = Counter(place.name for place in places)
    seen: Counter[str] = Counter()
    named = []
    for place in places:
        if counts[place.name] > 1 or place.name.endswith("#"):
            seen[place.name] += 1
            named.append(replace(place, name=f"{place.name.rstrip('#')}#{seen[place.name]}"))
        else:
            named.append(place)
    return named
