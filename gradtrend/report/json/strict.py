"""JSON as RFC 8259 wants it."""

from __future__ import annotations

import json
import math
from typing import Any

Json = dict[str, Any]


def strict_json(value: object) -> str:
    """`value` as JSON with NaN and inf as null and lone surrogates written out, as RFC 8259 wants."""
    return json.dumps(_strict(value), indent=2, allow_nan=False) + "\n"


def strict_line(value: object) -> str:
    """As `strict_json`, on one line."""
    return json.dumps(_strict(value), allow_nan=False, separators=(",", ":")) + "\n"


def _strict(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_strict(key): _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    return value
