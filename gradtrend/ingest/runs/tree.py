"""The logs under a folder, as a tree of the folders in which they lie."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradtrend.ingest.files.streams import head_of
from gradtrend.ingest.formats import SOURCES, adapters_of
from gradtrend.ingest.reading import HEAD_BYTES, Adapter

_MAX_DEPTH = 8  # run folders nest a few levels; deeper trees are data sets
# Never logs, and often many or large: weights, images, code, archives of data.
_NEVER = re.compile(
    r"\.(?:pt|pth|ckpt|safetensors|bin|np[yz]|h5|onnx|png|jpe?g|gif|svg|webp|mp4|wav|pyc?|ipynb|md|rst|html|css|js|so|tar"
    r"|zip|whl|parquet|arrow|tfrecord|lock|toml|ya?ml|pkl|pdf|sh|cfg|ini)$",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"(?!)")  # for a format of another package, which knows its own names
_MAX_VISITS = 10  # of one folder by several links: `latest`, `best` and the like
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "mlartifacts", "artifacts"})
_Place = tuple[int, int]  # device and inode


@dataclass(frozen=True, slots=True)
class LogFile:
    """A path (file, or folder such as `mlruns/`) and the adapter that reads it."""

    path: Path
    adapter: Adapter


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder with the logs in it and the sub-folders that have any; `has_debug` says that it may hold captures."""

    folder: Path
    logs: tuple[LogFile, ...]
    has_debug: bool
    children: tuple[Tree, ...]

    def all_logs(self) -> Iterator[LogFile]:
        """Its own logs, then those below."""
        yield from self.logs
        for child in self.children:
            yield from child.all_logs()


def adapter_for(file: Path, source: str = "auto", names: Sequence[str] = ()) -> Adapter | None:
    """The adapter that claims a file, by content and then by name; `source` names one outright. One that knows a metric
    of the file by its name in `names` comes before all.
    """
    adapters = adapters_of(source)
    if source != "auto":
        return next(adapter for adapter in adapters if adapter.name == source)
    return _first_to_claim(adapters, file, names)


def _first_to_claim(adapters: Sequence[Adapter], file: Path, names: Sequence[str]) -> Adapter | None:
    with file.open("rb") as opened:
        head = head_of(opened, HEAD_BYTES)
    if names and (known := next((a for a in adapters if a.holds is not None and a.holds(file, head, names)), None)):
        return known
    return next((adapter for adapter in adapters if adapter.claims(file, head)), None)


def adapter_without_head(path: Path, source: str = "auto") -> Adapter | None:
    """The adapter that claims what has no first bytes: a folder that is one log (a store), an address."""
    return next((a for a in adapters_of(source) if source in ("auto", a.name) and a.claims(path, b"")), None)


class _Walk:
    """One walk through the folders under a path.

    Symlink loops are cut, and no folder is entered often: a dozen that link to one another have millions of paths.
    """

    def __init__(self, source: str, names: Sequence[str]) -> None:
        self._source = source
        self._names = names
        self._adapters = adapters_of(source)
        self._passed_over = _NEVER if source in SOURCES else _NOTHING
        self._visits: Counter[_Place] = Counter()

    def tree(self, folder: Path, above: frozenset[_Place] = frozenset()) -> Tree:
        """The tree of a folder that lies within the folders `above`. What cannot be read below it is passed over."""
        within = above | {_place(folder)}
        logs: list[LogFile] = []
        children: list[Tree] = []
        for entry in sorted(folder.iterdir()):
            try:
                found = self._folder(entry, within) if entry.is_dir() else self._file(entry)
            except OSError:
                continue
            if isinstance(found, Tree):
                children.append(found)
            elif found is not None:
                logs.append(found)
        return Tree(folder, tuple(logs), (folder / "debug").is_dir(), tuple(children))

    def _folder(self, folder: Path, within: frozenset[_Place]) -> Tree | LogFile | None:
        if folder.name.startswith(".") or folder.name in _SKIPPED_FOLDERS or len(within) > _MAX_DEPTH:
            return None
        place = _place(folder)
        if place in within or (folder.is_symlink() and self._visits[place] >= _MAX_VISITS):
            return None
        self._visits[place] += 1
        adapter = adapter_without_head(folder, self._source)
        if adapter is not None:
            return LogFile(folder, adapter)
        tree = self.tree(folder, within)
        return tree if tree.logs or tree.children or tree.has_debug else None

    def _file(self, file: Path) -> LogFile | None:
        if not file.is_file() or self._passed_over.search(file.name) or file.stat().st_size == 0:
            return None
        try:
            adapter = _first_to_claim(self._adapters, file, self._names)
        except PermissionError:  # known by its name, it is told when it is read
            adapter = next((a for a in self._adapters if a.claims(file, b"")), None)
        return LogFile(file, adapter) if adapter is not None and self._source in ("auto", adapter.name) else None


def _place(folder: Path) -> _Place:
    status = folder.stat()
    return status.st_dev, status.st_ino


def log_tree(folder: Path, source: str, names: Sequence[str] = ()) -> Tree:
    """The tree of logs under a folder; of the format `source`, unless it is `auto`. `names` as `adapter_for` has it."""
    return _Walk(source, names).tree(folder)
