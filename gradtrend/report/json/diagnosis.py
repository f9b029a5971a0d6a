"""A diagnosis as JSON: `diagnosis` of a replay, and what `gradtrend.diagnose(...).to_dict()` gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradtrend.report.json.fields import plain

if TYPE_CHECKING:
    from gradtrend.model.diagnosis import Diagnosis


def diagnosis_to_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis, fields as in `gradtrend.model.diagnosis`; `nonfinite_fields` says what a null was."""
    made: dict[str, Any] = plain(diagnosis)
    for advice in made["next"]:  # as in a run's report: told of those that are
        if not advice["conditional"]:
            del advice["conditional"]
    return made
