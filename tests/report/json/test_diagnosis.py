"""A diagnosis for programs: every field, strict JSON, and the schema."""

from __future__ import annotations

import copy
import json
from dataclasses import fields
from typing import Any

import jsonschema
import pytest

from gradtrend.model.diagnosis import Diagnosis
from gradtrend.report.json.diagnosis import diagnosis_to_dict
from gradtrend.report.json.report import schema
from tests.report.text.test_diagnosis import SICK, SOUND


def validate(value: dict[str, Any]) -> None:
    whole = schema()
    jsonschema.validate(value, {"$defs": whole["$defs"], "$ref": "#/$defs/diagnosis"})


@pytest.mark.parametrize("diagnosis", [SICK, SOUND])
def test_it_fits_the_schema_as_strict_json(diagnosis: Diagnosis) -> None:
    made = diagnosis_to_dict(diagnosis)
    assert list(made) == [field.name for field in fields(Diagnosis)]
    validate(json.loads(json.dumps(made, allow_nan=False)))


def test_what_a_null_was_is_said() -> None:
    (row,) = diagnosis_to_dict(SICK)["precisions"]
    assert (row["loss"], row["gradient_norm"]) == (None, None)
    assert row["nonfinite_fields"] == {"loss": "nan", "gradient_norm": "inf"}


@pytest.mark.parametrize("path", [["trend", "flow"], ["start", "state"], ["overfit", "state"], ["next", 0, "action"]])
def test_the_schema_refuses_other_words(path: list[Any]) -> None:
    made = copy.deepcopy(diagnosis_to_dict(SICK))
    *parents, last = path
    inner = made
    for part in parents:
        inner = inner[part]
    inner[last] = "nonsense"
    with pytest.raises(jsonschema.ValidationError):
        validate(made)
