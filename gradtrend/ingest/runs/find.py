"""A path -> the runs it holds, each with its log files.

A folder is a run when logs lie in it. Logs in sub-folders belong to the same run where the sub-folder is one that
loggers make (`runs/`, `lightning_logs/version_0/`, `checkpoint-500/` ...); otherwise each sub-folder is its own run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.formats import SOURCES
from gradtrend.ingest.reading.patterns import HELD_OUT_WORDS
from gradtrend.ingest.runs.tree import LogFile, Tree, adapter_for, adapter_without_head, log_tree

# Folders that loggers and trainers make inside one run.
_CONTAINER = re.compile(
    r"^(?:runs|logs?|lightning_logs|tb_logs|csv_logs|tensorboard|tb|tfevents|events|metrics|wandb|trackio|debug|version_\d+"
    rf"|checkpoint-\d+|files|vis_data|train|training|{'|'.join(HELD_OUT_WORDS)}|checkpoints)$",
    re.IGNORECASE,
)

# `SummaryWriter.add_hparams` makes a folder named by the time.
_HPARAMS_FOLDER = re.compile(r"^\d{9,}(?:\.\d+)?$")


@dataclass(frozen=True, slots=True)
class RunFiles:
    """One run: its name as reported (the path as given, joined with the child), its folder and its logs.

    `is_stream` says that its log can be read once, and by this process alone.
    """

    name: str
    folder: Path
    logs: tuple[LogFile, ...]
    is_stream: bool = False


def find_runs(path: str, source: str = "auto", names: Sequence[str] = ()) -> tuple[RunFiles, ...]:
    """The runs at a path, at least one. `names` are metrics that the user says are logged there: a table with such a
    column is a log, whatever else its header has.

    Raises InputError for a missing or unreadable path.
    """
    if not path:  # and not the current folder, which Path makes of it
        raise InputError("an empty path", "Give a run folder or a log; is a variable of the shell not set?")
    root = Path(path)
    if path == "-":
        return (_stream(path, root, source),)
    if "://" in path:
        return (_at_address(path, root, source),)
    try:
        if not root.exists():
            raise InputError(f"{path}: no such file or folder")
        if not root.is_dir():
            return (_single(path, root, source, names),)
        adapter = adapter_without_head(root, source)
        if adapter is not None:
            return (RunFiles(path, root, (LogFile(root, adapter),)),)
        tree = log_tree(root, source, names)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", "Check the permissions of the path.") from error
    return tuple(_named(path, root, run) for run in _group(tree)) or (RunFiles(path, root, ()),)


def _stream(path: str, pipe: Path, source: str) -> RunFiles:
    from gradtrend.ingest.runs import standard_input  # loaded for a pipe alone, as few calls have one

    return RunFiles(path, pipe, (LogFile(pipe, standard_input.adapter(source, pipe)),), is_stream=True)


def _at_address(path: str, root: Path, source: str) -> RunFiles:
    adapter = adapter_without_head(root, source)
    if adapter is None:
        raise InputError(
            f"{path}: not an address that gradtrend can read",
            "Give http(s)://host:port of an MLflow tracking server, or the path of a log.",
        )
    return RunFiles(path, root, (LogFile(root, adapter),))


def _single(path: str, file: Path, source: str, names: Sequence[str]) -> RunFiles:
    if file.is_fifo():
        return _stream(path, file, source)
    if not file.is_file():
        raise InputError(f"{path}: neither a file nor a folder", "Give a log, or pipe one into `gradtrend analyze -`.")
    if file.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty", "The run may not have flushed its log yet.")
    adapter = adapter_for(file, source, names)
    if adapter is None:
        known = ", ".join(name for name in SOURCES if name != "auto")
        raise InputError(
            f"{path}: not a log that gradtrend knows",
            f"Known formats: {known}; --source names one outright, --metric NAME the column of a table, and"
            " --columns step,loss,grad_norm the columns of one without names.",
        )
    return RunFiles(path, file.parent, (LogFile(file, adapter),))


def _named(path: str, root: Path, tree: Tree) -> RunFiles:
    relative = tree.folder.relative_to(root)
    name = path if relative == Path() else os.path.join(path, relative)  # noqa: PTH118  keeps the path as given
    return RunFiles(name, tree.folder, tuple(sorted(tree.all_logs(), key=lambda log: str(log.path))))


def _group(tree: Tree) -> list[Tree]:
    """The runs in a tree; a run's `children` are the sub-folders that belong to it."""
    if tree.logs or tree.has_debug:
        parts = tuple(child for child in _parts(tree) if len(_group(child)) < 2)
        others = [run for child in tree.children if child not in parts for run in _group(child)]
        return [Tree(tree.folder, tree.logs, tree.has_debug, parts), *others]
    containers = [child for child in tree.children if _CONTAINER.match(child.folder.name)]
    others = [run for child in tree.children if child not in containers for run in _group(child)]
    grouped = [_group(child) for child in containers]
    if containers and all(len(runs) == 1 for runs in grouped):
        return [Tree(tree.folder, (), False, tuple(runs[0] for runs in grouped)), *others]
    return [run for runs in grouped for run in runs] + others


def _parts(tree: Tree) -> tuple[Tree, ...]:
    """The sub-folders of a run folder that hold more of the same run.

    Those that loggers make do. Any other does where it is the only one and its logs are of formats that the run folder
    itself has not; several are runs of their own, beside a launcher's log.
    """
    made = [child for child in tree.children if _made_by_logger(child)]
    others = [child for child in tree.children if child not in made]
    own = {log.adapter.name for log in tree.logs}
    if len(others) == 1 and not own & {log.adapter.name for log in others[0].all_logs()}:
        made += others
    return tuple(made)


def _made_by_logger(child: Tree) -> bool:
    name = child.folder.name
    if _CONTAINER.match(name) or _HPARAMS_FOLDER.match(name):
        return True
    # `add_scalars` makes one folder a series, called <tag>_<series>, beside the event file that the tag's writer keeps.
    logs = list(child.all_logs())
    own_writer = bool(logs) and all(log.adapter.folder_a_series for log in logs)
    return own_writer and name.startswith(("grad", "loss", "norm"))
