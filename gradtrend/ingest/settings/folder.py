"""The settings of a run folder: hparams.yaml, Hydra's config, Ray Tune's params.json, LightlyTrain's train.log."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradtrend.ingest.files.regular import buffered, read_regular
from gradtrend.ingest.limits import LARGEST_SETTINGS
from gradtrend.ingest.settings.names import merge_settings, settings_from
from gradtrend.model.runlog import Settings

# What a logger wrote for the run comes before what a command was given.
_HPARAMS_FILES = (
    "hparams.yaml", "hparams.yml", "hparams.json", "training_args.json", "training_args.yaml", "train_args.json",
    "args.json", "args.yaml", "opt.yaml", "hyp.yaml", "ds_config.json", "deepspeed_config.json",
)  # fmt: skip
_HYDRA = ".hydra"  # the folder of the config of a run, and of what was said on the command line
_CONFIG, _OVERRIDES = "config.yaml", "overrides.yaml"
_RAY_TUNE = "params.json"  # is beside these logs, if it is Ray Tune's
_TRIAL_LOGS = ("result.json", "progress.csv")
# Names that anybody's files have, of which settings are not taken: they say what a run was given, if they are its own.
_CONFIG_FILES = ("config.yaml", "config.yml", "config.json", "params.yaml", "params.yml", _RAY_TUNE)
_MAX_FOLDERS = 100  # loggers nest their folders a few levels; a data set beside them must not be walked
_MAX_DEPTH = 3
PART_BYTES = 16 * 1024 * 1024  # a run prints its arguments when it starts; a resumed one appends them to the log
_TRAIN_LOG = "train.log"
_ARGS = re.compile(r"(Resolved Args:|Resolved configuration:|\bArgs:)\s*(?=\{)")


@dataclass(frozen=True, slots=True)
class Given:
    """What one file says of how a run was set up; empty where it is damaged."""

    path: Path
    values: Mapping[str, Any]


def given_in(folder: Path, below: bool = True) -> list[Given]:
    """What the files in a run folder say, and where `below` those in its sub-folders, the surest first."""
    log = folder / _TRAIN_LOG
    files = (*_config_files(folder), *_hparams_files(folder, below))
    said = [Given(log, arguments) for arguments in _train_log_arguments(log)]
    return said + [Given(path, _read(path)) for path in files]


def given_beside(folder: Path, known: Sequence[Given]) -> Iterator[Mapping[str, Any]]:
    """What the files in a folder say that bear the names of anybody's configuration, but for the known ones."""
    paths = [folder / name for name in _CONFIG_FILES]
    read = {given.path for given in known}
    return (_read(path) for path in paths if path not in read and path.is_file())


def settings_of(folder: Path, below: bool = True) -> Settings:
    """The settings that the files in a run folder give, and where `below` those in its sub-folders; what is missing or
    broken is simply not known.
    """
    return settings_in(folder, given_in(folder, below))


def settings_in(folder: Path, given: Sequence[Given]) -> Settings:
    """The settings in what the files of a run folder say, and in what files there are."""
    sources = []
    for one in given:
        try:
            found = settings_from(one.values)
        except RecursionError:  # YAML may hold itself
            continue
        if found.framework is None and re.match(r"version_\d+$", one.path.parent.name):
            found = merge_settings(found, Settings(framework="lightning"))
        sources.append(found)
    if any(folder.glob("trainer_state.json")) or any(folder.glob("checkpoint-*/trainer_state.json")):
        sources.append(Settings(framework="transformers"))
    return merge_settings(Settings(), *sources)


def is_settings_file(path: Path) -> bool:
    """Whether a file is one of those that settings are read from, by its name."""
    return path.name in (*_HPARAMS_FILES, _RAY_TUNE, _TRAIN_LOG) or path.parent.name == _HYDRA


def _config_files(folder: Path) -> Iterator[Path]:
    """The files of Hydra and of Ray Tune in a run folder, the surest first."""
    yield from (file for name in (_OVERRIDES, _CONFIG) if (file := folder / _HYDRA / name).is_file())
    if (folder / _RAY_TUNE).is_file() and any((folder / log).is_file() for log in _TRIAL_LOGS):
        yield folder / _RAY_TUNE


def _read(path: Path) -> Mapping[str, Any]:
    """What a file says, as a mapping; empty where it is damaged."""
    if path.suffix == ".json":
        return _read_json(path)
    from gradtrend.ingest.files.yaml import read_yaml, read_yaml_list

    if path.name == _OVERRIDES:
        # `~key=value` takes a key away.
        said = (word for word in read_yaml_list(path) if "=" in word and not word.startswith("~"))
        pairs = (word.lstrip("+").partition("=") for word in said)
        return {name.replace(".", "/"): value for name, _, value in pairs}  # as the config itself has them
    return read_yaml(path)


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(read_regular(path, LARGEST_SETTINGS))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, Mapping) else {}


def _hparams_files(folder: Path, below: bool) -> list[Path]:
    """The hparams files in a run folder and its loggers' sub-folders, `version_1` before `version_0`."""
    found: list[Path] = []
    level = [str(folder)]
    looked_at = 0
    for _ in range(_MAX_DEPTH + 1 if below else 1):
        inner: list[str] = []
        for place in level:
            looked_at += 1
            try:
                with os.scandir(place) as entries:
                    for entry in entries:
                        if entry.is_dir():
                            inner.append(entry.path)
                        elif entry.name in _HPARAMS_FILES and entry.is_file():
                            found.append(Path(entry.path))
            except OSError:
                continue
        level = sorted(inner, reverse=True)[: _MAX_FOLDERS - looked_at]
    return sorted(found, key=lambda path: _HPARAMS_FILES.index(path.name))


def _head_and_end(path: Path) -> str:
    """A file's text, of a large one its first and its last part; "" where it cannot be read or is a pipe."""
    try:
        if not path.is_file():
            return ""
        with buffered(path) as file:
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
