"""A report checked against what those who read it demand."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import xmlschema

_FOLDER = Path(__file__).parent / "schemas"
# As GitLab's documentation lists the fields of a Code Quality report; it has no schema of its own.
_TEXT = {"type": "string", "minLength": 1}
_GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": _TEXT,
            "check_name": _TEXT,
            "fingerprint": _TEXT,
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^(?!/|\\./)."},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                },
            },
        },
    },
}


def fits_junit(text: str) -> None:
    """Raise unless a text is what Jenkins' xUnit plugin reads."""
    _junit().validate(text)


def fits_sarif(text: str) -> Any:
    """The document that a text is. Raises unless it is SARIF 2.1.0."""
    return _fitting(text, jsonschema.Draft4Validator(_sarif()))


def fits_gitlab(text: str) -> Any:
    """The document that a text is. Raises unless it is a Code Quality report with fingerprints of their own."""
    loaded = _fitting(text, jsonschema.Draft202012Validator(_GITLAB))
    assert len({one["fingerprint"] for one in loaded}) == len(loaded)
    return loaded


def _fitting(text: str, validator: Any) -> Any:
    loaded = json.loads(text)
    validator.validate(loaded)
    return loaded


@cache
def _junit() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(_FOLDER / "junit-10.xsd")


@cache
def _sarif() -> Any:
    return json.loads((_FOLDER / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))
