"""Numbers as people read them."""

from __future__ import annotations

import math

from gradtrend.model.report import RunReport


def number(value: float) -> str:
    """`value` to three significant digits, in plain notation between 0.001 and 100000.

    Whole numbers up to there keep all their digits.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    size = abs(value)
    if size == 0 or (size < 1e5 and value == int(value)):
        return str(int(value))
    if 1e-3 <= size < 99950:
        digits = max(0, 2 - math.floor(math.log10(size)))
        text = f"{value:.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def share(value: float) -> str:
    """A confidence in 0..1 to two digits, rounded down: only certainty itself is shown as 1.00."""
    return f"{math.floor(value * 100 + 1e-9) / 100:.2f}"


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 step`, `2 steps`."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"


def steps(first: int | None, last: int | None, unit: str = "step") -> str:
    """`step 5`, `steps 5 to 9`, or nothing where no step is known; `unit` is what is counted."""
    if first is None:
        return "" if last is None else f"up to {unit} {last}"
    return f"{unit} {first}" if last is None or last == first else f"{unit}s {first} to {last}"


def counted_in(run: RunReport) -> str:
    """What a run's steps are: rows where its log gives no step."""
    return "row" if any(finding.name == "no-steps" for finding in run.findings) else "step"
