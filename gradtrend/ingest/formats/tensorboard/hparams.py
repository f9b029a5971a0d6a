"""What TensorBoard's hparams plug-in keeps of how a run was set up: one event, written as the session starts."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradtrend.ingest.files.protobuf import whole_fields
from gradtrend.ingest.formats.tensorboard.blocks import Block

_WORDS = b"session_start_info"  # end its tag
_HEAD_BYTES = 256 * 1024  # of a file, in which it stands: a search of all would cost as much as decoding it
_EVENT = (5, 1, 9, 1, 2, 3)  # Event.summary.value.metadata.plugin_data.content as HParamsPluginData.session_start_info
_HPARAMS, _KEY, _VALUE = 1, 1, 2
_NULL, _NUMBER, _STRING, _BOOL, _LIST = 1, 2, 3, 4, 6  # google.protobuf.Value
_DOUBLE = struct.Struct("<d")
_DEEPEST = 3  # lists within lists


def hparams_in(block: Block) -> dict[str, Any]:
    """The hyperparameters that the first block of a file has; empty where it has none, or they are damaged."""
    at = bytes(block.data[:_HEAD_BYTES]).find(_WORDS)
    number = int(np.searchsorted(block.records.starts, at, side="right")) - 1
    if at < 0 or number < 0:
        return {}
    start, length = int(block.records.starts[number]), int(block.records.lengths[number])
    event = bytes(block.data[start : start + length])
    return {name: value for info in _within(event, _EVENT) for name, value in _hparams(info)}


def _within(message: bytes, path: tuple[int, ...]) -> Iterator[bytes]:
    """The messages at the end of a path of field numbers."""
    if not path:
        yield message
        return
    for number, content in whole_fields(message):
        if number == path[0] and isinstance(content, bytes):
            yield from _within(content, path[1:])


def _hparams(info: bytes) -> Iterator[tuple[str, Any]]:
    for entry in _within(info, (_HPARAMS,)):
        parts = dict(whole_fields(entry))
        key, value = parts.get(_KEY), parts.get(_VALUE)
        if isinstance(key, bytes) and isinstance(value, bytes):
            yield key.decode("utf-8", errors="replace"), _value(value)


def _value(message: bytes, depth: int = 0) -> Any:
    for number, content in whole_fields(message)[:1]:
        if number == _NUMBER and isinstance(content, bytes) and len(content) == _DOUBLE.size:
            value = float(_DOUBLE.unpack(content)[0])
            return int(value) if value.is_integer() and abs(value) < 2**53 else value  # it knows no whole numbers
        if number == _STRING and isinstance(content, bytes):
            return content.decode("utf-8", errors="replace")
        if number == _BOOL:
            return bool(content)
        if number == _LIST and isinstance(content, bytes) and depth < _DEEPEST:
            return [_value(one, depth + 1) for one in _within(content, (1,))]
    return None
