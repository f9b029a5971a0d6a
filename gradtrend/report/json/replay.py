"""A replay as JSON: `captures[].replay` of the report, and the elements of `gradtrend replay --format json`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradtrend.model.report import SCHEMA_VERSION
from gradtrend.version import __version__

if TYPE_CHECKING:
    from gradtrend.model.replay import Replay


def replays_to_dict(replays: Sequence[Replay], exit_code: int) -> dict[str, Any]:
    """The whole answer of `gradtrend replay`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "gradtrend", "version": __version__},
        "exit_code": exit_code,
        "replays": [replay_to_dict(replay) for replay in replays],
    }


def replay_to_dict(replay: Replay) -> dict[str, Any]:
    """One replay, fields as in `gradtrend.model.replay`.

    JSON has no NaN: a field that is not finite is null, and its object's `nonfinite_fields` says what it was.
    """
    made: dict[str, Any] = _plain(replay)
    return made


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    what = {
        name: _name(value) for name, value in fields.items() if isinstance(value, float) and not math.isfinite(value)
    }
    made = {name: None if name in what else _plain(value) for name, value in fields.items()}
    return made | {"nonfinite_fields": what} if what else made


def _name(value: float) -> str:
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
