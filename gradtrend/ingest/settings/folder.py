"""The settings of a run folder: the files in which frameworks leave them, LightlyTrain's train.log."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gradtrend.ingest.files.regular import read_regular
from gradtrend.ingest.settings.names import merge_settings, settings_from
from gradtrend.model.runlog import Settings

# In this order: what a logger wrote for the run, what a command was given, what a configuration says.
_SETTINGS_FILES = (
    "hparams.yaml", "hparams.yml", "hparams.json", "training_args.json", "training_args.yaml", "train_args.json",
    "args.json", "args.yaml", "opt.yaml", "hyp.yaml", "params.json", "ds_config.json", "deepspeed_config.json",
    "train_config.json", "train_config.yaml", "config.yaml", "config.yml", "config.json",
)  # fmt: skip
_MAX_JSON = 1 << 20  # bytes; settings are a few kilobytes
_OF_WEIGHTS = ("dtype", "torch_dtype")
_MAX_FOLDERS = 100  # loggers nest their folders a few levels; a data set beside them must not be walked
_MAX_DEPTH = 3
PART_BYTES = 16 * 1024 * 1024  # a run prints its arguments when it starts; a resumed one appends them to the log
_TRAIN_LOG = "train.log"
_ARGS = re.compile(r"(Resolved Args:|Resolved configuration:|\bArgs:)\s*(?=\{)")


def settings_of(folder: Path) -> Settings:
    """The settings that the files in a run folder give; what is missing or broken is simply not known."""
    sources = [settings_from(arguments) for arguments in _train_log_arguments(folder / _TRAIN_LOG)]
    for path in _settings_files(folder):
        try:
            found = settings_from(_content(path))
        except RecursionError:  # YAML may hold itself
            continue
        if found.framework is None and re.match(r"version_\d+$", path.parent.name):
            found = merge_settings(found, Settings(framework="lightning"))
        sources.append(found)
    if any(folder.glob("trainer_state.json")) or any(folder.glob("checkpoint-*/trainer_state.json")):
        sources.append(Settings(framework="transformers"))
    return merge_settings(Settings(), *sources)


def _content(path: Path) -> Mapping[str, Any]:
    """The mapping in a file of settings; empty where it is none. The type of a model's weights, which its configuration
    names, is not the precision of the run.
    """
    if path.suffix != ".json":
        from gradtrend.ingest.files.yaml import read_yaml

        return read_yaml(path)
    try:
        content = json.loads(read_regular(path, _MAX_JSON))
    except (OSError, ValueError, RecursionError):
        return {}
    return {key: value for key, value in content.items() if key not in _OF_WEIGHTS} if isinstance(content, dict) else {}


def _settings_files(folder: Path) -> list[Path]:
    """The files of settings in a run folder and its loggers' sub-folders, the surer first, `version_1` before
    `version_0`.
    """
    found: list[Path] = []
    level = [str(folder)]
    looked_at = 0
    for _ in range(_MAX_DEPTH + 1):
        below: list[str] = []
        for place in level:
            looked_at += 1
            try:
                with os.scandir(place) as entries:
                    for entry in entries:
                        if entry.is_dir():
                            below.append(entry.path)
                        elif entry.name in _SETTINGS_FILES and entry.is_file():
                            found.append(Path(entry.path))
            except OSError:
                continue
        level = sorted(below, reverse=True)[: _MAX_FOLDERS - looked_at]
    return sorted(found, key=lambda path: _SETTINGS_FILES.index(path.name))


def _head_and_end(path: Path) -> str:
    """A file's text, of a large one its first and its last part; "" where it cannot be read or is a pipe."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            data = file.read(PART_BYTES)
            file.seek(max(len(data), path.stat().st_size - PART_BYTES))
            data += file.read(PART_BYTES)
    except OSError:
        return ""
    return data.decode("utf-8", errors="replace")


def _train_log_arguments(path: Path) -> Iterator[Mapping[str, Any]]:
    """The arguments in a LightlyTrain train.log, best first: the last resolved ones, then the last given ones.

    A resumed or overwritten run appends to the log, so the last ones count.
    """
    text = _head_and_end(path)
    matches = list(_ARGS.finditer(text))
    for resolved in (True, False):
        last = next((match for match in reversed(matches) if match[1].startswith("Resolved") is resolved), None)
        if last is None:
            continue
        try:
            arguments, _ = json.JSONDecoder().raw_decode(text, last.end())
        except (ValueError, RecursionError):
            continue
        if isinstance(arguments, Mapping):
            yield arguments
