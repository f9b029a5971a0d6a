"""Runs of a store that lies beside other logs: which of them the run folder keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gradtrend.ingest.reading.stored_runs import listed
from gradtrend.ingest.runs.evidence.grouping import Group
from gradtrend.ingest.runs.finding.run_files import RunFiles
from gradtrend.model.runlog import Note


def of_one_run_of_each_store(groups: Sequence[Group], files: RunFiles) -> tuple[list[Group], Mapping[int, list[Note]]]:
    """The groups without the runs of a store with which no other log agrees, where all other logs are of one fit and
    agree with one of its runs; and the notes that say so, by the id of the group that agrees.

    A store in which no run agrees with the other logs, or beside logs of several fits, is all its runs; so is one of
    which runs were asked for.
    """
    kept = list(groups)
    logs = files.logs if files.picked is None else ()
    notes: dict[int, list[Note]] = {}
    for store in (log.path for log in logs if log.adapter.runs is not None):
        of_store = [group for group in kept if any(_is_of(store, trace.path) for trace in group)]
        agreeing = [group for group in of_store if not is_stored(group)]
        left = [group for group in of_store if is_stored(group)]
        one_fit = sum(not is_stored(group) for group in kept) == 1
        if not agreeing or not left or not one_fit:
            continue
        kept = [group for group in kept if not any(group is one for one in left)]
        notes.setdefault(id(agreeing[0]), []).append(_note(store, agreeing[0], left, len(of_store)))
    return kept, notes


def is_stored(group: Group) -> bool:
    """Whether a group has nothing but a run of a store."""
    return all(trace.reading.run is not None for trace in group)


def _is_of(store: Path, path: Path) -> bool:
    return path == store or path.is_relative_to(store)


def _note(store: Path, taken: Group, left: Sequence[Group], count: int) -> Note:
    own = next(trace.reading.run for trace in taken if trace.reading.run is not None)
    others = [group[0].reading.run for group in left]
    runs = listed([run for run in others if run is not None])
    message = f"{store.name} holds {count} runs; the other logs here are of {own}. Its others: {runs}"
    return Note("several-runs", message)
