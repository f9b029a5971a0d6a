"""A live model and a batch -> the diagnosis of one step, which prints as text."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from gradtrend.errors import ConfigError
from gradtrend.model.diagnosis import Diagnosis
from gradtrend.replay import diagnosis_of
from gradtrend.report import Style
from gradtrend.report.json.diagnosis import diagnosis_to_dict
from gradtrend.report.text.diagnosis import render_diagnosis


@dataclass(frozen=True, slots=True)
class PrintedDiagnosis(Diagnosis):
    """A `Diagnosis` whose `print` is its text."""

    def __str__(self) -> str:
        return render_diagnosis(self, Style()).rstrip("\n")

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as JSON has it: plain dicts, lists, numbers and strings; a non-finite number is None."""
        return diagnosis_to_dict(self)


def diagnose(
    model: Any,
    batch: Any,
    step: Any,
    classes: int | None,
    device: str | None,
    precisions: bool,
    overfit_steps: int,
) -> PrintedDiagnosis:
    """As `gradtrend.diagnose`."""
    if classes is not None and classes < 2:
        raise ConfigError(f"classes is {classes}: a cross-entropy has two or more")
    if overfit_steps < 0:
        raise ConfigError(f"overfit_steps is {overfit_steps}: it is a number of steps, or 0 for none")
    found = diagnosis_of(model, batch, step, classes, device, precisions, overfit_steps)
    return PrintedDiagnosis(**{field.name: getattr(found, field.name) for field in fields(Diagnosis)})
