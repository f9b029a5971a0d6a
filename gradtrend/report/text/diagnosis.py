"""The diagnosis of one step for a person: what stands out, gradients and activations by depth, what to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from gradtrend.model.diagnosis import Diagnosis, Fit, Flow, LayerFlow, LayerOutput, Start
from gradtrend.report.text.lines import wrapped
from gradtrend.report.text.sweep import sweep_lines
from gradtrend.report.wording.escape import escape, shorten
from gradtrend.report.wording.numbers import number, plural
from gradtrend.report.wording.style import Style

Part = tuple[str, list[str]]  # a title and its lines
_Row = TypeVar("_Row", LayerFlow, LayerOutput)

MAX_ROWS = 20  # a screen holds two such tables
_MAX_ACTIONS = 5
_NAME = 22
_KIND = 12
_MISSING = {"frozen": "frozen", "not-reached": "no gradient reaches it"}


def render_diagnosis(diagnosis: Diagnosis, style: Style) -> str:
    """The whole diagnosis, one part below the other."""
    lines = [style.paint(escape(_headline(diagnosis)), "bold")]
    parts = [
        *diagnosis_parts(diagnosis, style),
        ("Precisions", sweep_lines(diagnosis.precisions, style)),
        ("Learning the batch by heart", _overfit_lines(diagnosis, style)),
        ("Bear in mind", [line for text in diagnosis.notes for line in wrapped(text, style)]),
        ("Next", _next_lines(diagnosis, style)),
    ]
    for title, part in parts:
        if part:
            lines += ["", style.paint(title, "bold"), *part]
    return "".join(f"{line}\n" for line in lines)


def diagnosis_parts(diagnosis: Diagnosis, style: Style) -> list[Part]:
    """The parts that a replay shows as well: what stands out, gradients, activations, the loss at the start."""
    remarks = diagnosis.remarks or ("nothing stands out",)
    return [
        ("Layers: what stands out", [line for text in remarks for line in wrapped(text, style, "  - ", "    ")]),
        ("Gradients by depth (input first)", _gradient_lines(diagnosis, style)),
        ("Activations by depth", _output_lines(diagnosis.outputs)),
        ("Loss beside guessing", _start_lines(diagnosis, style)),
    ]


def _headline(diagnosis: Diagnosis) -> str:
    norm = "" if diagnosis.gradient_norm is None else f", gradient norm {number(diagnosis.gradient_norm)}"
    size = f"{plural(len(diagnosis.layers), 'layer')} of {plural(diagnosis.parameters, 'parameter')}"
    return f"One step: loss {number(diagnosis.loss)}{norm}; {size}, {diagnosis.precision} on {diagnosis.device}"


def _gradient_lines(diagnosis: Diagnosis, style: Style) -> list[str]:
    layers = [layer for layer in diagnosis.layers if layer.parameters]
    if not layers:
        return []
    head = f"{'mean':>9}{'std':>9}{'max abs':>9}{'zeros':>7}{'norm':>9}{'/weight':>9}"
    shown, left = _chosen(layers, _oddness_of_gradients(layers))
    lines = [f"  {'':<{_NAME}}{'':<{_KIND}}{head}", *map(_gradient_line, shown)]
    return lines + _more(left, "layer") + wrapped(_trend(diagnosis), style)


def _gradient_line(layer: LayerFlow) -> str:
    name = _name(layer.layer, layer.kind)
    if layer.gradient is None:
        return f"  {name}  {_MISSING.get(layer.missing or '', 'counted at ' + escape(layer.shared or ''))}"
    seen = layer.gradient
    ratio = "" if layer.ratio is None else number(layer.ratio)
    bad = f"  {plural(seen.nonfinite, 'NaN or inf', 'NaN or inf')}" if seen.nonfinite else ""
    numbers = f"{_short(seen.mean):>9}{_short(seen.std):>9}{_short(seen.max_abs):>9}{_share(seen.zeros):>7}"
    return f"  {name}{numbers}{_short(seen.norm):>9}{ratio:>9}{bad}{'  breaks the chain' if layer.breaks else ''}"


def _trend(diagnosis: Diagnosis) -> str:
    trend = diagnosis.trend
    if trend.flow is Flow.UNKNOWN or trend.factor is None:
        return f"too few layers ({trend.layers}) with weights and a gradient to tell a trend"
    factor = f"x{trend.factor:.2g} a layer over {trend.layers} layers"
    if trend.flow is Flow.EVEN:
        return f"even: {factor} toward the input"
    return f"{trend.flow} from {trend.last or '(the model)'} toward the input: {factor}"


def _output_lines(outputs: Sequence[LayerOutput]) -> list[str]:
    if not outputs:
        return []
    head = f"{'mean':>9}{'std':>9}{'max abs':>9}{'zeros':>7}  units"
    shown, left = _chosen(outputs, _oddness_of_outputs(outputs))
    return [f"  {'':<{_NAME}}{'':<{_KIND}}{head}", *map(_output_line, shown), *_more(left, "output")]


def _output_line(output: LayerOutput) -> str:
    seen = output.values
    numbers = f"{_short(seen.mean):>9}{_short(seen.std):>9}{_short(seen.max_abs):>9}{_share(seen.zeros):>7}"
    said = []
    if output.dead is not None:
        said.append(f"{output.dead} of {output.units} dead")
    if output.saturated_share is not None:
        said.append(f"{output.saturated} of {output.units} saturated, {_share(output.saturated_share)} of values")
    if seen.nonfinite:
        said.append(f"{seen.nonfinite} NaN or inf")
    if output.calls > 1:
        said.append(f"{output.calls} calls")
    return f"  {_name(output.layer, output.kind)}{numbers}  {', '.join(said)}".rstrip()


def _start_lines(diagnosis: Diagnosis, style: Style) -> list[str]:
    start = diagnosis.start
    if start is None:
        return []
    words = {
        Start.AS_GUESSING: "as at the start of training",
        Start.FAR_ABOVE: "far above: the logits are too large",
        Start.BELOW: "far below: the model has learned already, or sees the labels",
        Start.DEAD_HEAD: "exactly that, and no gradient: the head is dead",
        Start.ALL_IGNORED: "all targets are ignored",
        Start.NONFINITE: "not finite",
    }
    what = start.function or "the loss"
    text = f"{what} {number(start.loss)}, ln({start.classes}) is {number(start.expected)}: {words[start.state]}"
    return wrapped(text, style)


def _overfit_lines(diagnosis: Diagnosis, style: Style) -> list[str]:
    tried = diagnosis.overfit
    if tried is None:
        return []
    if tried.first is None or tried.last is None:
        return wrapped(f"not tried: {tried.problem}", style)
    words = {
        Fit.LEARNED: "it can be learned",
        Fit.FALLS: "it falls; more steps (overfit_steps) would tell how far",
        Fit.STANDS: "it stands",
        Fit.NONFINITE: "it is not finite",
        Fit.NOT_TRIED: f"stopped: {tried.problem}",
    }
    steps = f"{plural(tried.steps, 'step')} of Adam at {number(tried.rate)}, on a copy"
    return wrapped(f"loss {number(tried.first)} to {number(tried.last)} in {steps}: {words[tried.state]}", style)


def _next_lines(diagnosis: Diagnosis, style: Style) -> list[str]:
    lines = []
    for place, advice in enumerate(diagnosis.next[:_MAX_ACTIONS], start=1):
        lines += wrapped(advice.text, style, first=f"  {place}. ", rest="     ")
    return lines or ["  nothing to do"]


def _chosen(rows: Sequence[_Row], oddness: Callable[[_Row], float]) -> tuple[list[_Row], int]:
    """The rows that stand out most, in the order of depth, and how many are left out."""
    worst = sorted(range(len(rows)), key=lambda place: -oddness(rows[place]))[:MAX_ROWS]
    return [rows[place] for place in sorted(worst)], len(rows) - len(worst)


def _oddness_of_gradients(layers: Sequence[LayerFlow]) -> Callable[[LayerFlow], float]:
    """Decades from the middle of all; beyond all of these no gradient at all, and one that is not finite."""
    sizes = sorted(math.log10(layer.size) for layer in layers if layer.size)
    middle = sizes[len(sizes) // 2] if sizes else 0.0

    def oddness(layer: LayerFlow) -> float:
        if layer.breaks or (layer.gradient is not None and layer.gradient.nonfinite):
            return math.inf
        if layer.gradient is None:
            return -1.0 if layer.missing in (None, "frozen") else 1e3
        return abs(math.log10(layer.size) - middle) if layer.size else 1e4

    return oddness


def _oddness_of_outputs(outputs: Sequence[LayerOutput]) -> Callable[[LayerOutput], float]:
    """NaN or inf first, then dead and saturated units, then decades from the middle of all."""
    sizes = sorted(math.log10(output.values.std) for output in outputs if output.values.std > 0)
    middle = sizes[len(sizes) // 2] if sizes else 0.0

    def oddness(output: LayerOutput) -> float:
        if output.values.nonfinite:
            return math.inf
        units = (output.dead or 0) / output.units if output.units else 0.0
        decades = abs(math.log10(output.values.std) - middle) if output.values.std > 0 else 0.0
        return 100 * max(units, output.saturated_share or 0.0) + decades

    return oddness


def _more(left: int, what: str) -> list[str]:
    return [f"  and {plural(left, f'more {what}')} that stand out less"] if left else []


def _name(name: str, kind: str) -> str:
    shown = shorten(escape(name or "(the model)"), _NAME - 1)
    return f"{shown:<{_NAME}}{shorten(escape(kind), _KIND - 1):<{_KIND}}"


def _short(value: float) -> str:
    """Two digits: tables are read for orders of magnitude."""
    return number(float(f"{value:.2g}"))


def _share(value: float) -> str:
    """A share in per cent; only what is exactly none or all is shown as 0 % or 100 %."""
    return f"{min(max(value * 100, 1), 99):.0f}%" if 0 < value < 1 else f"{value:.0%}"
