"""A path -> the runs it holds, each with its log files.

A folder is a run when logs lie in it. Logs in sub-folders belong to the same run where the sub-folder is one that
loggers make (`runs/`, `lightning_logs/version_0/`, `checkpoint-500/` ...); otherwise each sub-folder is its own run.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.formats import ADAPTERS
from gradtrend.ingest.reading import Adapter
from gradtrend.ingest.reading.patterns import HELD_OUT_WORDS
from gradtrend.ingest.runs import standard_input

_HEAD_BYTES = 64 * 1024
_MAX_DEPTH = 8  # run folders nest a few levels; deeper trees are data sets
# Never logs, and often many or large: weights, images, code, archives of data.
_NEVER = re.compile(
    r"\.(?:pt|pth|ckpt|safetensors|bin|np[yz]|h5|onnx|png|jpe?g|gif|svg|webp|mp4|wav|pyc?|ipynb|md|rst|html|css|js|so|tar"
    r"|zip|whl|parquet|arrow|tfrecord|lock|toml|ya?ml|pkl|pdf|sh|cfg|ini)$",
    re.IGNORECASE,
)
_MAX_VISITS = 10  # of one folder by several links: `latest`, `best` and the like
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "mlartifacts", "artifacts"})
# Folders that loggers and trainers make inside one run.
_CONTAINER = re.compile(
    r"^(?:runs|logs?|lightning_logs|tb_logs|csv_logs|tensorboard|tb|tfevents|events|metrics|wandb|trackio|debug|version_\d+"
    rf"|checkpoint-\d+|files|vis_data|train|training|{'|'.join(HELD_OUT_WORDS)}|checkpoints)$",
    re.IGNORECASE,
)

# `SummaryWriter.add_hparams` makes a folder named by the time.
_HPARAMS_FOLDER = re.compile(r"^\d{9,}(?:\.\d+)?$")


_Folder = tuple[int, int]  # device and inode


@dataclass(frozen=True, slots=True)
class LogFile:
    """A path (file, or folder such as `mlruns/`) and the adapter that reads it."""

    path: Path
    adapter: Adapter


@dataclass(frozen=True, slots=True)
class RunFiles:
    """One run: its name as reported (the path as given, joined with the child), its folder and its logs.

    `is_stream` says that its log can be read once, and by this process alone.
    """

    name: str
    folder: Path
    logs: tuple[LogFile, ...]
    is_stream: bool = False


@dataclass(frozen=True, slots=True)
class _Tree:
    folder: Path
    logs: tuple[LogFile, ...]
    has_debug: bool
    children: tuple[_Tree, ...]

    def all_logs(self) -> Iterator[LogFile]:
        yield from self.logs
        for child in self.children:
            yield from child.all_logs()


def _adapter_for(path: Path, source: str = "auto") -> Adapter | None:
    """The adapter that claims the path, by content and then by name; `source` names one outright."""
    if source != "auto":
        return next(adapter for adapter in ADAPTERS if adapter.name == source)
    head = b"" if path.is_dir() else _head(path)
    return next((adapter for adapter in ADAPTERS if adapter.claims(path, head)), None)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


def find_runs(path: str, source: str = "auto") -> tuple[RunFiles, ...]:
    """The runs at a path, at least one. Raises InputError for a missing or unreadable path."""
    if not path:  # and not the current folder, which Path makes of it
        raise InputError("an empty path", "Give a run folder or a log; is a variable of the shell not set?")
    root = Path(path)
    if path == "-":
        return (RunFiles(path, root, (LogFile(root, standard_input.adapter(source)),), is_stream=True),)
    if "://" in path:
        return (_at_address(path, root, source),)
    try:
        if not root.exists():
            raise InputError(f"{path}: no such file or folder")
        if not root.is_dir():
            return (_single(path, root, source),)
        adapter = _folder_adapter(root, source)
        if adapter is not None:
            return (RunFiles(path, root, (LogFile(root, adapter),)),)
        tree = _walk(root, source, 0, set(), Counter())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", "Check the permissions of the path.") from error
    return tuple(_named(path, root, run) for run in _group(tree)) or (RunFiles(path, root, ()),)


def _at_address(path: str, root: Path, source: str) -> RunFiles:
    adapter = _folder_adapter(root, source)
    if adapter is None:
        raise InputError(
            f"{path}: not an address that gradtrend can read",
            "Give http(s)://host:port of an MLflow tracking server, or the path of a log.",
        )
    return RunFiles(path, root, (LogFile(root, adapter),))


def _single(path: str, file: Path, source: str) -> RunFiles:
    if file.is_fifo():
        return RunFiles(path, file, (LogFile(file, standard_input.adapter(source, file)),), is_stream=True)
    if not file.is_file():
        raise InputError(f"{path}: neither a file nor a folder", "Give a log, or pipe one into `gradtrend analyze -`.")
    if file.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty", "The run may not have flushed its log yet.")
    adapter = _adapter_for(file, source)
    if adapter is None:
        names = ", ".join(a.name for a in ADAPTERS)
        raise InputError(
            f"{path}: not a log that gradtrend knows", f"Known formats: {names}; --source names one outright."
        )
    return RunFiles(path, file.parent, (LogFile(file, adapter),))


def _folder_adapter(folder: Path, source: str) -> Adapter | None:
    return next((a for a in ADAPTERS if source in ("auto", a.name) and a.claims(folder, b"")), None)


def _named(path: str, root: Path, tree: _Tree) -> RunFiles:
    relative = tree.folder.relative_to(root)
    name = path if relative == Path() else os.path.join(path, relative)  # noqa: PTH118  keeps the path as given
    return RunFiles(name, tree.folder, tuple(sorted(tree.all_logs(), key=lambda log: str(log.path))))


def _walk(folder: Path, source: str, depth: int, seen: set[_Folder], visits: Counter[_Folder]) -> _Tree:
    """The tree of logs under a folder. Unreadable sub-folders and files are passed over, symlink loops cut.

    `seen` are the folders above this one, `visits` counts how often each was walked: a dozen folders that link to one
    another have millions of paths.
    """
    logs: list[LogFile] = []
    children: list[_Tree] = []
    status = folder.stat()
    seen = seen | {(status.st_dev, status.st_ino)}
    for entry in sorted(folder.iterdir()):
        try:
            if entry.is_dir():
                child = _walk_child(entry, source, depth, seen, visits)
                if isinstance(child, LogFile):
                    logs.append(child)
                elif child is not None:
                    children.append(child)
            elif entry.is_file() and (log := _log_file(entry, source)) is not None:
                logs.append(log)
        except OSError:
            continue
    return _Tree(folder, tuple(logs), (folder / "debug").is_dir(), tuple(children))


def _walk_child(
    entry: Path, source: str, depth: int, seen: set[_Folder], visits: Counter[_Folder]
) -> _Tree | LogFile | None:
    if entry.name.startswith(".") or entry.name in _SKIPPED_FOLDERS or depth >= _MAX_DEPTH:
        return None
    status = entry.stat()
    place = (status.st_dev, status.st_ino)
    if place in seen or (entry.is_symlink() and visits[place] >= _MAX_VISITS):
        return None
    visits[place] += 1
    adapter = _folder_adapter(entry, source)
    if adapter is not None:
        return LogFile(entry, adapter)
    tree = _walk(entry, source, depth + 1, seen, visits)
    return tree if tree.logs or tree.children or tree.has_debug else None


def _log_file(file: Path, source: str) -> LogFile | None:
    if _NEVER.search(file.name) or file.stat().st_size == 0:
        return None
    try:
        adapter = _adapter_for(file)
    except PermissionError:  # known by its name, it is told when it is read
        adapter = next((a for a in ADAPTERS if a.claims(file, b"")), None)
    if adapter is None or source not in ("auto", adapter.name):
        return None
    return LogFile(file, adapter)


def _group(tree: _Tree) -> list[_Tree]:
    """The runs in a tree; a run's `children` are the sub-folders that belong to it."""
    if tree.logs or tree.has_debug:
        parts = tuple(child for child in _parts(tree) if len(_group(child)) < 2)
        others = [run for child in tree.children if child not in parts for run in _group(child)]
        return [_Tree(tree.folder, tree.logs, tree.has_debug, parts), *others]
    containers = [child for child in tree.children if _CONTAINER.match(child.folder.name)]
    others = [run for child in tree.children if child not in containers for run in _group(child)]
    grouped = [_group(child) for child in containers]
    if containers and all(len(runs) == 1 for runs in grouped):
        return [_Tree(tree.folder, (), False, tuple(runs[0] for runs in grouped)), *others]
    return [run for runs in grouped for run in runs] + others


def _parts(tree: _Tree) -> tuple[_Tree, ...]:
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


def _made_by_logger(child: _Tree) -> bool:
    name = child.folder.name
    if _CONTAINER.match(name) or _HPARAMS_FOLDER.match(name):
        return True
    # `add_scalars` makes one folder a series, called <tag>_<series>, beside the event file that the tag's writer keeps.
    logs = list(child.all_logs())
    own_writer = bool(logs) and all(log.adapter.folder_a_series for log in logs)
    return own_writer and name.startswith(("grad", "loss", "norm"))
