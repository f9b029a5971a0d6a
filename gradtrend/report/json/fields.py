"""Dataclasses as JSON, field by field."""

from __future__ import annotations

import dataclasses
import math
from typing import Any


def plain(value: Any) -> Any:
    """Dataclasses as dicts, tuples as lists.

    JSON has no NaN: a field that is not finite is None, and its object's `nonfinite_fields` says what it was.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    what = {
        name: _name(value) for name, value in fields.items() if isinstance(value, float) and not math.isfinite(value)
    }
    made = {name: None if name in what else plain(value) for name, value in fields.items()}
    return made | {"nonfinite_fields": what} if what else made


def _name(value: float) -> str:
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
