"""What a capture can keep of a batch: tensors, plain values and containers; anything else is refused by name."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from collections import UserDict
from collections.abc import Sequence
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from gradtrend.model.capture import ARRAY_KEY, FIELDS_KEY, ITEMS_KEY, OBJECT_KEY

_PLAIN: tuple[Any, ...] = (bool, int, float, str, bytes)
_KEEPS = "tensors, arrays, numbers and texts, in dicts, lists, tuples, named tuples and dataclasses"


def kept(value: Any, where: str) -> Any:
    """The value as `torch.load(weights_only=True)` reads it; `where` names it. Raises `TypeError` for what is not kept.

    An array, and an object of a class that a replay imports (a dataclass, a named tuple), become a dictionary that
    says so: see `gradtrend.model.capture`.
    """
    if isinstance(value, torch.Tensor):
        return _tensor(value, where)
    if isinstance(value, np.ndarray | np.generic):
        return _array(value, where)
    if isinstance(value, enum.Enum):
        return kept(value.value, where)
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, _PLAIN):  # a subclass: its value as the plain kind
        return next(kind for kind in _PLAIN if isinstance(value, kind))(value)
    if isinstance(value, PurePath | datetime.date | torch.device):
        return str(value)
    return _container(value, where)


def kept_microbatches(batches: Sequence[Any]) -> list[Any]:
    """The microbatches of a step, each as `kept`. Raises `TypeError` also for one batch in place of a list."""
    if isinstance(batches, torch.Tensor | str) or not isinstance(batches, Sequence):
        raise TypeError(f"microbatches must be a list of batches, not one {type(batches).__name__}")
    if not batches:
        raise ValueError("microbatches is empty: there is no step to keep")
    return [kept(batch, f"microbatches[{index}]") for index, batch in enumerate(batches)]


def number(value: Any, where: str) -> float | None:
    """A number, or a tensor or array of one, as a float. Raises `TypeError` for anything else."""
    if value is None:
        return None
    try:
        return float(value.detach()) if isinstance(value, torch.Tensor) else float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{where} must be a number, or a tensor of one, not {type(value).__name__}") from error


def _tensor(tensor: torch.Tensor, where: str) -> torch.Tensor:
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        raise TypeError(f"{where} is a {tensor.layout} tensor, which a capture does not keep: give it dense")
    plain = tensor.detach().to("cpu", copy=True)
    return plain.as_subclass(torch.Tensor)


def _array(array: Any, where: str) -> Any:
    if isinstance(array, np.generic):
        return kept(array.item(), where)
    if array.dtype.kind not in "biufc":
        return kept(array.tolist(), where)
    try:
        return {ARRAY_KEY: torch.from_numpy(np.array(array, order="C", dtype=array.dtype.newbyteorder("=")))}
    except TypeError as error:
        raise TypeError(f"{where} is an array of {array.dtype}, which torch has not: convert it") from error


def _container(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        return {_key(key, where): kept(part, f"{where}[{key!r}]") for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = [kept(part, f"{where}.{name}") for name, part in zip(value._fields, value, strict=True)]
        return {OBJECT_KEY: _class_path(type(value), where), ITEMS_KEY: items}
    if isinstance(value, list | tuple | set | frozenset | range):
        values = [kept(part, f"{where}[{index}]") for index, part in enumerate(value)]
        return tuple(values) if isinstance(value, tuple) else values
    if isinstance(value, UserDict | SimpleNamespace) or (
        dataclasses.is_dataclass(value) and not isinstance(value, type)
    ):
        return {OBJECT_KEY: _class_path(type(value), where), FIELDS_KEY: _fields(value, where)}
    raise TypeError(f"{where} is a {type(value).__module__}.{type(value).__qualname__}; a capture keeps {_KEEPS}")


def _fields(value: Any, where: str) -> dict[str, Any]:
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
        return {name: kept(getattr(value, name), f"{where}.{name}") for name in names}
    if isinstance(value, UserDict):  # a tokenizer's BatchEncoding has more attributes, of which its data are the batch
        others = dict.fromkeys(name for name in vars(value) if name != "data")
        return {"data": kept(value.data, where), **others}
    return {name: kept(part, f"{where}.{name}") for name, part in vars(value).items()}


def _key(key: Any, where: str) -> Any:
    if isinstance(key, str | int | float | bool | None):
        return key
    if isinstance(key, tuple):
        return tuple(_key(part, where) for part in key)
    raise TypeError(f"{where} has a {type(key).__name__} as a key; a capture keeps texts and numbers")


def _class_path(found: type, where: str) -> str:
    if found.__module__ == "__main__" or "<" in found.__qualname__:
        raise TypeError(
            f"{where} is a {found.__qualname__}, which no other process could import: move the class to a module"
        )
    return f"{found.__module__}:{found.__qualname__}"
