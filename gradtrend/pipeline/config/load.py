"""The file of a project's settings -> a Config. All mistakes are reported at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradtrend.detect.rules import parsed, text_of
from gradtrend.errors import ConfigError
from gradtrend.pipeline.config.settings import Config

OWN_FILE, SHARED_FILE = "gradtrend.toml", "pyproject.toml"
_LARGEST = 1 << 20  # bytes: a hundred times a large pyproject.toml, which says nothing of single files
_TABLE = "tool.gradtrend"
Found = tuple[Path, str, Mapping[str, Any]]


def load_config(folder: Path, given: Path | None = None) -> Config:
    """The settings in the file that was given, else in the first that is found from `folder` upward: gradtrend.toml, or
    pyproject.toml where it has `[tool.gradtrend]`. An empty `Config` where there is none.

    Raises ConfigError that lists every mistake.
    """
    found = _found_upward(folder) if given is None else _table_of(given)
    if found is None and given is not None:
        raise ConfigError(f"{given}: has no [{_TABLE}]")
    if found is None:
        return Config()
    from gradtrend.pipeline.config.keys import config_of  # only where there is something to check

    file, table, data = found
    return config_of(file, table, data)


def _found_upward(folder: Path) -> Found | None:
    for place in (folder, *folder.parents):
        for name in (OWN_FILE, SHARED_FILE):
            file = place / name
            try:
                there = file.exists()
            except OSError:  # a folder above that may not be looked into is nobody's project
                there = False
            found = _table_of(file, searching=True) if there else None
            if found is not None:
                return found
    return None


def _table_of(file: Path, searching: bool = False) -> Found | None:
    """The settings in a file and the table that they stand in, None in a pyproject.toml that has none. One that was not
    asked for, does not name gradtrend and cannot be read is another tool's affair.
    """
    shared = file.name == SHARED_FILE
    try:
        text = text_of(file, _LARGEST, "settings")
    except (OSError, ValueError) as error:
        if searching and shared:
            return None
        raise ConfigError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    if shared and "gradtrend" not in text:
        return None
    try:
        data = parsed(text)
    except (ValueError, RecursionError) as error:
        if searching and shared and f"[{_TABLE}" not in text:
            return None
        raise ConfigError(f"{file}: {error}") from None
    if not shared:
        return file.absolute(), "", data
    tool = data.get("tool")
    table = tool.get("gradtrend") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{file}: {_TABLE} must be a table")
    return None if table is None else (file.absolute(), f"{_TABLE}.", table)
