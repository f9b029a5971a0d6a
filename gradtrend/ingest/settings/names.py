"""How a run was set up, from what lies beside its logs: hparams.yaml, LightlyTrain's train.log, MLflow parameters.

Names differ between frameworks, so settings are found by the last part of their name (`model_args/lr`, `optim.lr`,
`learning_rate`); the least nested one counts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from gradtrend.model.runlog import Settings

_LEARNING_RATE = ("lr", "learning_rate", "peak_lr", "max_lr", "base_lr", "init_lr", "lr0")
_WARMUP_STEPS = ("lr_warmup_steps", "warmup_steps", "num_warmup_steps", "warmup_iters", "warmup_updates")
_GRADIENT_CLIP = (
    "gradient_clip_val", "max_grad_norm", "grad_clip", "clip_grad", "gradient_clip", "gradient_clipping",
    "clip_grad_norm", "grad_clip_norm", "grad_norm_clip", "clip_norm", "max_norm",
)  # fmt: skip
_BATCH_SIZE = (
    "batch_size", "per_device_train_batch_size", "train_batch_size", "micro_batch_size",
    "train_micro_batch_size_per_gpu",
)  # fmt: skip
_ACCUMULATION = (
    "gradient_accumulation_steps", "accumulate_grad_batches", "accumulation_steps", "grad_accum_steps", "grad_accum",
    "accum_iter", "update_freq",
)  # fmt: skip
_PRECISION = ("precision", "mixed_precision", "amp_dtype", "dtype", "torch_dtype")
_OPTIMIZER = ("optimizer", "optim", "optimizer_name", "optimizer_type", "opt")
_SEPARATORS = re.compile(r"[./]")
_UNSET = frozenset({"", "none", "null", "auto", "default"})


def merge_settings(first: Settings, *others: Settings) -> Settings:
    """The settings of the first, with what it does not know from the others in turn."""
    known: dict[str, Any] = {}
    for source in (first, *others):
        for name in (item.name for item in fields(Settings)):
            value = getattr(source, name)
            if value is not None:
                known.setdefault(name, value)
    return Settings(**known)


def settings_from(values: Mapping[str, Any]) -> Settings:
    """The settings in a mapping, nested or with `/` or `.` in its keys; numbers may be text."""
    flat = dict(sorted(_flattened(values), key=lambda item: item[0].count("/")))
    return Settings(
        framework=_framework_of(flat),
        precision=_precision_in(flat),
        learning_rate=_number_in(flat, _LEARNING_RATE),
        warmup_steps=_count(_number_in(flat, _WARMUP_STEPS)),
        gradient_clip=0.0 if _switched_off(flat, _GRADIENT_CLIP) else _number_in(flat, _GRADIENT_CLIP),
        batch_size=_count(_number_in(flat, _BATCH_SIZE)),
        accumulation=_count(_number_in(flat, _ACCUMULATION)),
        optimizer=_text_in(flat, _OPTIMIZER),
    )


def _flattened(values: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a nested mapping, each with its path: in lower case, its parts joined by `/`."""
    for key, value in values.items():
        path = prefix + _SEPARATORS.sub("/", str(key).lower().replace("-", "_"))
        if isinstance(value, Mapping) and value:
            yield from _flattened(value, f"{path}/")
        else:
            yield path, value


def _matching(flat: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[Any]:
    """The values whose name is one of `names`, in the order of `names`, the least nested first."""
    for name in names:
        yield from (value for path, value in flat.items() if path.rpartition("/")[2] == name)


def _number_in(flat: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    """The first number among the named values. Of a list, as in multi-head runs, the largest."""
    for value in _matching(flat, names):
        number = _finite_number(value)
        if number is not None:
            return number
    return None


def _finite_number(value: Any) -> float | None:
    """The finite number that a setting is, of a list of them the largest; None where there is none.

    Logged values are another matter: there NaN is a number and a list is none (`reading.numbers`).
    """
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, list | tuple):
        return max((number for number in map(_finite_number, value) if number is not None), default=None)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _count(number: float | None) -> int | None:
    """A number of steps or samples; a fraction (a warm-up given as a share of the run) is none."""
    return int(number) if number is not None and number == int(number) and number >= 0 else None


def _text_in(flat: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first word among the named values that says something."""
    for value in _matching(flat, names):
        if isinstance(value, str) and value.strip().lower() not in _UNSET and _finite_number(value) is None:
            return value.strip()
    return None


def _switched_off(flat: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    """Whether a setting is there and set to nothing: a clip of None means no clipping."""
    first = next(_matching(flat, names), False)
    return first is None or (isinstance(first, str) and first.lower() in ("none", "null"))


def _precision_in(flat: Mapping[str, Any]) -> str | None:
    """The precision; transformers and others have the switches `fp16` and `bf16` for it."""
    word = _text_in(flat, _PRECISION)
    if word and word.lower() != "no":
        return word
    for name in ("bf16", "fp16"):
        switches = [*_matching(flat, (name,)), *(flat[path] for path in flat if path.endswith(f"{name}/enabled"))]
        if any(value is True or str(value).lower() == "true" for value in switches):
            return name
    number = _number_in(flat, ("precision",))  # Lightning takes 16 and 32 as numbers
    return str(_count(number)) if number is not None else None


def _framework_of(flat: Mapping[str, Any]) -> str | None:
    """The framework that a set of names gives away, None where they could be anybody's."""
    if "float32_matmul_precision" in flat and ("task" in flat or "method" in flat):
        return "lightly-train"
    if "per_device_train_batch_size" in flat:
        return "transformers"
    return None
