"""How a run was set up, from what lies beside its logs: hparams.yaml, LightlyTrain's train.log, MLflow parameters.

Names differ between frameworks, so settings are found by the last part of their name (`model_args/lr`, `optim.lr`,
`learning_rate`); the least nested one counts.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from gradtrend.model.runlog import Settings

LEARNING_RATE = ("lr", "learning_rate", "peak_lr", "max_lr", "base_lr", "init_lr", "lr0")
WARMUP_STEPS = ("lr_warmup_steps", "warmup_steps", "num_warmup_steps", "warmup_iters", "warmup_updates")
GRADIENT_CLIP = (
    "gradient_clip_val", "max_grad_norm", "grad_clip", "clip_grad", "gradient_clip", "gradient_clipping",
    "clip_grad_norm", "grad_clip_norm", "grad_norm_clip", "clip_norm", "max_norm",
)  # fmt: skip
BATCH_SIZE = (
    "batch_size", "per_device_train_batch_size", "train_batch_size", "micro_batch_size",
    "train_micro_batch_size_per_gpu",
)  # fmt: skip
ACCUMULATION = (
    "gradient_accumulation_steps", "accumulate_grad_batches", "accumulation_steps", "grad_accum_steps", "grad_accum",
    "accum_iter", "update_freq",
)  # fmt: skip
PRECISION = ("precision", "mixed_precision", "amp_dtype", "dtype", "torch_dtype")
OPTIMIZER = ("optimizer", "optim", "optimizer_name", "optimizer_type", "opt")

HPARAMS_FILES = ("hparams.yaml", "hparams.yml")
MAX_FOLDERS = 100  # loggers nest their folders a few levels; a data set beside them must not be walked
MAX_DEPTH = 3
PART_BYTES = 16 * 1024 * 1024  # a run prints its arguments when it starts; a resumed one appends them to the log
TRAIN_LOG = "train.log"
_ARGS = re.compile(r"(Resolved Args:|Resolved configuration:|\bArgs:)\s*(?=\{)")
_SEPARATORS = re.compile(r"[./]")
_UNSET = frozenset({"", "none", "null", "auto", "default"})


def settings_of(folder: Path) -> Settings:
    """Return the settings that the files in a run folder give; what is missing or broken is simply not known."""
    sources = [settings_from(arguments) for arguments in train_log_arguments(folder / TRAIN_LOG)]
    for path in hparams_files(folder):
        from gradtrend.ingest.settings_yaml import read_yaml

        try:
            found = settings_from(read_yaml(path))
        except RecursionError:  # YAML may hold itself
            continue
        if found.framework is None and re.match(r"version_\d+$", path.parent.name):
            found = merge_settings(found, Settings(framework="lightning"))
        sources.append(found)
    if any(folder.glob("trainer_state.json")) or any(folder.glob("checkpoint-*/trainer_state.json")):
        sources.append(Settings(framework="transformers"))
    return merge_settings(Settings(), *sources)


def merge_settings(first: Settings, *others: Settings) -> Settings:
    """Return the settings of the first, with what it does not know from the others in turn."""
    known: dict[str, Any] = {}
    for source in (first, *others):
        for name in (item.name for item in fields(Settings)):
            value = getattr(source, name)
            if value is not None:
                known.setdefault(name, value)
    return Settings(**known)


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Return the settings in a mapping, nested or with `/` or `.` in its keys; numbers may be text."""
    flat = dict(sorted(flattened(values), key=lambda item: item[0].count("/")))
    return Settings(
        framework=framework_of(flat),
        precision=precision_in(flat),
        learning_rate=number_in(flat, LEARNING_RATE),
        warmup_steps=whole(number_in(flat, WARMUP_STEPS)),
        gradient_clip=0.0 if switched_off(flat, GRADIENT_CLIP) else number_in(flat, GRADIENT_CLIP),
        batch_size=whole(number_in(flat, BATCH_SIZE)),
        accumulation=whole(number_in(flat, ACCUMULATION)),
        optimizer=text_in(flat, OPTIMIZER),
    )


def flattened(values: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a nested mapping with their path, in lower case, its parts joined by `/`."""
    for key, value in values.items():
        path = prefix + _SEPARATORS.sub("/", str(key).lower().replace("-", "_"))
        if isinstance(value, Mapping) and value:
            yield from flattened(value, f"{path}/")
        else:
            yield path, value


def matching(flat: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[Any]:
    """Yield the values whose name is one of `names`, in the order of `names`, the least nested first."""
    for name in names:
        yield from (value for path, value in flat.items() if path.rpartition("/")[2] == name)


def number_in(flat: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    """Return the first number among the named values. Of a list, as in multi-head runs, the largest."""
    for value in matching(flat, names):
        number = as_number(value)
        if number is not None:
            return number
    return None


def as_number(value: Any) -> float | None:
    """Return a finite number from a number, a text or a list of them; None where there is none."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, list | tuple):
        return max((number for number in map(as_number, value) if number is not None), default=None)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def whole(number: float | None) -> int | None:
    """Return a count; a fraction (a warm-up given as a share of the run) is none."""
    return int(number) if number is not None and number == int(number) and number >= 0 else None


def text_in(flat: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first word among the named values that says something."""
    for value in matching(flat, names):
        if isinstance(value, str) and value.strip().lower() not in _UNSET and as_number(value) is None:
            return value.strip()
    return None


def switched_off(flat: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    """Say whether a setting is there and set to nothing: a clip of None means no clipping."""
    first = next(matching(flat, names), False)
    return first is None or (isinstance(first, str) and first.lower() in ("none", "null"))


def precision_in(flat: Mapping[str, Any]) -> str | None:
    """Return the precision; transformers and others have the switches `fp16` and `bf16` for it."""
    word = text_in(flat, PRECISION)
    if word and word.lower() != "no":
        return word
    for name in ("bf16", "fp16"):
        if any(value is True or str(value).lower() == "true" for value in matching(flat, (name,))):
            return name
    number = number_in(flat, ("precision",))  # Lightning takes 16 and 32 as numbers
    return str(whole(number)) if number is not None else None


def framework_of(flat: Mapping[str, Any]) -> str | None:
    """Return the framework that a set of names gives away, None where they could be anybody's."""
    if "float32_matmul_precision" in flat and ("task" in flat or "method" in flat):
        return "lightly-train"
    if "per_device_train_batch_size" in flat:
        return "transformers"
    return None


def hparams_files(folder: Path) -> list[Path]:
    """Return the hparams files in a run folder and its loggers' sub-folders, `version_1` before `version_0`."""
    found: list[Path] = []
    level = [str(folder)]
    looked_at = 0
    for _ in range(MAX_DEPTH + 1):
        below: list[str] = []
        for place in level:
            looked_at += 1
            try:
                with os.scandir(place) as entries:
                    for entry in entries:
                        if entry.is_dir():
                            below.append(entry.path)
                        elif entry.name in HPARAMS_FILES and entry.is_file():
                            found.append(Path(entry.path))
            except OSError:
                continue
        level = sorted(below, reverse=True)[: MAX_FOLDERS - looked_at]
    return found


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


def train_log_arguments(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments in a LightlyTrain train.log, best first: the last resolved ones, then the last given ones.

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
