"""A series as a small picture beside its name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from gradtrend.model.series import Outline

_WIDTH, _HEIGHT, _POINTS = 120, 24, 60
_EDGE = 3  # above and below the line, so that its ends are not cut
# As in the text report: a band narrower than one decade is drawn as if it were one, so that noise looks flat.
_MIN_DECADES = 1.0
_Points = Sequence[tuple[int, int | None]]


def spark(outline: Outline) -> str:
    """A series as SVG: the largest log10 of each share of its steps as a line, red where any value is not finite."""
    shares = min(_POINTS, len(outline.steps))
    highest, bad = _largest(outline, shares)
    logs = [math.log10(abs(v)) for v in highest.values() if v]
    low, high = (min(logs), max(logs)) if logs else (0.0, 0.0)
    missing = max(0.0, _MIN_DECADES - (high - low))
    low, high = low - missing / 2, high + missing / 2
    apart = _WIDTH / max(1, shares - 1)
    points = [
        (round(i * apart), _height(highest[i], low, high) if i in highest else None) for i in sorted({*highest, *bad})
    ]
    bars = "".join(f"<rect x={x} y=0 width={wide} height={_HEIGHT} />" for x, wide in _stretches(sorted(bad), apart))
    return (
        f'<svg class=spark viewBox="0 0 {_WIDTH} {_HEIGHT}" width={_WIDTH} height={_HEIGHT} aria-hidden=true>'
        f'{bars}<path d="{_line(points)}"/></svg>'
    )


def _largest(outline: Outline, shares: int) -> tuple[dict[int, float], set[int]]:
    """Of each share of the steps the largest finite value, and which hold one that is not finite."""
    first, last = outline.steps[0], outline.steps[-1]
    highest: dict[int, float] = {}
    bad: set[int] = set()
    for step, value in zip(outline.steps, outline.values, strict=True):
        share = (step - first) * (shares - 1) // max(1, last - first)
        if not math.isfinite(value):
            bad.add(share)
        elif share not in highest or abs(value) > abs(highest[share]):
            highest[share] = value
    return highest, bad


def _height(value: float, low: float, high: float) -> int:
    if value == 0:
        return _HEIGHT - 1
    return round(_EDGE + (_HEIGHT - 2 * _EDGE) * (1 - (math.log10(abs(value)) - low) / (high - low)))


def _line(points: _Points) -> str:
    parts = []
    for known, stretch in groupby(points, key=lambda point: point[1] is not None):
        if known:
            line = [f"{x} {y}" for x, y in stretch]
            parts.append("M" + "L".join(line if len(line) > 1 else line * 2))
    return "".join(parts)


def _stretches(shares: Sequence[int], apart: float) -> list[tuple[int, int]]:
    """Where each row of neighbouring shares begins, and how wide it is, in pixels."""
    found: list[tuple[int, int]] = []
    for _, row in groupby(enumerate(shares), key=lambda pair: pair[1] - pair[0]):
        members = [share for _, share in row]
        begin = min(_WIDTH - 2, round(members[0] * apart))
        found.append((begin, max(2, min(_WIDTH, round((members[-1] + 1) * apart)) - begin)))
    return found
