"""The gradient norms of layers as a heat map: rows of cells on the step axis of the charts."""

from __future__ import annotations

import math

from gradtrend.model.report import RunReport, SeriesReport
from gradtrend.model.series import Outline
from gradtrend.model.words import Role
from gradtrend.report.html.names import without_common
from gradtrend.report.html.points import Json
from gradtrend.report.wording.escape import escape

_COLUMNS = 100  # cells a row: 8 pixels each in a wide window
_MAX_ROWS = 160  # more would be thinner than can be told apart, and 40 KB
_MAX_RUN_ROWS = 60  # of each run where several are in one page
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# A cell is two of these digits: the levels from the lowest to the highest norm, and what has none.
_LEVELS, _ZERO, _BAD, _NONE = 4093, 4093, 4094, 4095


def layers_of(run: RunReport) -> list[SeriesReport]:
    """The layers whose norms can be drawn, in the order of the log."""
    found = [s for s in run.series if s.role is Role.GRAD_NORM and s.layer is not None]
    return [s for s in found if s.outline is not None]


def heat_map(run: RunReport, several: bool) -> Json | None:
    """The cells of at most 160 layers (those with findings before all others); None for fewer than two layers."""
    layers = layers_of(run)
    if len(layers) < 2:
        return None
    shown = _chosen(layers, run, _MAX_RUN_ROWS if several else _MAX_ROWS)
    outlines = [s.outline for s in shown if s.outline is not None]
    first, last = min(o.steps[0] for o in outlines), max(o.steps[-1] for o in outlines)
    columns = min(_COLUMNS, max(len(o.steps) for o in outlines))
    rows = [_row(outline, first, last, columns) for outline in outlines]
    logs = [math.log10(v) for row in rows for v in row if v is not None and math.isfinite(v) and v > 0]
    low, high = (min(logs), max(logs)) if logs else (0.0, 0.0)
    return {
        "layers": without_common([escape(s.layer or s.metric) for s in shown]),
        "all": len(layers),
        "from": first,
        "to": last,
        "columns": columns,
        "low": round(low, 4),
        "high": round(high, 4),
        "cells": ["".join(_cell(value, low, high) for value in row) for row in rows],
        "marked": [i for i, s in enumerate(shown) if any(f.layer == s.layer for f in run.findings)],
    }


def _chosen(layers: list[SeriesReport], run: RunReport, most: int) -> list[SeriesReport]:
    """Of too many layers those with findings, and of the others evenly many from the first to the last."""
    if len(layers) <= most:
        return layers
    named = {finding.layer for finding in run.findings if finding.layer}
    sick = [i for i, s in enumerate(layers) if s.layer in named][:most]
    others = [i for i, s in enumerate(layers) if s.layer not in named]
    room = most - len(sick)
    even = [others[len(others) * place // room] for place in range(room)] if len(others) > room else others
    return [layers[i] for i in sorted({*sick, *even})]


def _row(outline: Outline, first: int, last: int, columns: int) -> list[float | None]:
    """Of each share of the steps the largest norm, NaN before all; where nothing is logged what was there before."""
    row: list[float | None] = [None] * columns
    width = max(1, last - first + 1)
    for step, value in zip(outline.steps, outline.values, strict=True):
        place = min(columns - 1, (step - first) * columns // width)
        known = row[place]
        if known is None or not math.isfinite(value) or (math.isfinite(known) and value > known):
            row[place] = value
    end = min(columns - 1, (outline.steps[-1] - first) * columns // width)
    for place in range(1, end + 1):
        row[place] = row[place - 1] if row[place] is None else row[place]
    return row


def _cell(value: float | None, low: float, high: float) -> str:
    if value is None:
        code = _NONE
    elif not math.isfinite(value):
        code = _BAD
    elif value <= 0:
        code = _ZERO
    else:
        code = round((math.log10(value) - low) / (high - low) * (_LEVELS - 1)) if high > low else _LEVELS // 2
    return _DIGITS[code // 64] + _DIGITS[code % 64]
