"""Temporary folders of this process, none of which outlives it."""

from __future__ import annotations

import atexit
import os
from pathlib import Path

_PREFIX = "gradtrend-"
_folders: dict[Path, int] = {}  # and the processes that made them: a copy of one must not remove what is not its own


def new_folder() -> Path:
    """An empty folder, by its real path. It is removed by `remove`, at the latest when this process ends."""
    import tempfile

    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX)))
    if not _folders:
        atexit.register(remove_all)
    _folders[folder] = os.getpid()
    return folder


def remove(folder: Path) -> None:
    """Remove a folder of this process with all that is in it."""
    import shutil

    if _folders.pop(folder, None) == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def remove_all() -> None:
    """Remove all folders of this process. Called where it ends, and by those who end it past Python's own way to."""
    for folder in list(_folders):
        remove(folder)
