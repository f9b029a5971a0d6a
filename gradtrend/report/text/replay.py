"""Replays for a person: verdict, what the capture is, why, the precisions, what led there, next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gradtrend.model.replay import Field, Inspection, LayerGradient, Magnitude, Origin, Outcome, Replay
from gradtrend.report.text.diagnosis import diagnosis_parts
from gradtrend.report.text.lines import wrapped
from gradtrend.report.text.sweep import sweep_lines
from gradtrend.report.wording.escape import escape, shorten
from gradtrend.report.wording.numbers import number, plural
from gradtrend.report.wording.replay import replay_headline
from gradtrend.report.wording.style import Style

_LOOKS = {
    Outcome.CONFIRMED: "red",
    Outcome.FLAKY: "red",
    Outcome.NOT_REPRODUCED: "yellow",
    Outcome.CANNOT_RUN: "yellow",
    Outcome.INSPECTED: "cyan",
}
_MAX_FIELDS = 6
_MAX_IMPORTS = 6
_MAX_FRAMES = 8
_MAX_LAYERS = 6
_MAX_HEALTH = 5
_MAX_ACTIONS = 4
_NAME_WIDTH = 38  # of a module or parameter in a table


def render_replays(replays: Sequence[Replay], style: Style) -> str:
    """One block a capture."""
    lines: list[str] = []
    for replay in replays:
        lines += [*([""] if lines else []), *_block(replay, style)]
    return "".join(f"{line}\n" for line in lines)


def _block(replay: Replay, style: Style) -> list[str]:
    verdict = style.paint(escape(replay_headline(replay)), "bold", _LOOKS[replay.outcome])
    lines = [f"{style.paint(escape(replay.inspection.path), 'bold')}: {verdict}"]
    for title, part in (
        ("Capture", _capture_lines(replay.inspection, style)),
        ("Why", [line for text in replay.why for line in wrapped(text, style)]),
        ("Precisions", sweep_lines(replay.sweep, style)),
        ("What the operator was given (sizes)", _given_lines(replay.origin)),
        ("Before it (sizes of module outputs)", _frame_lines(replay)),
        ("Gradients that stand out", _layer_lines(replay.layers)),
        *([] if replay.diagnosis is None else diagnosis_parts(replay.diagnosis, style)),
        ("Bear in mind", [line for text in _notes(replay) for line in wrapped(text, style)]),
        ("Next", _next_lines(replay, style)),
    ):
        if part:
            lines += ["", style.paint(title, "bold"), *part]
    return lines


def _notes(replay: Replay) -> tuple[str, ...]:
    return replay.notes or replay.inspection.notes


def _capture_lines(inspection: Inspection, style: Style) -> list[str]:
    if inspection.problem is not None:
        return []
    rank = "" if inspection.rank is None else f", rank {inspection.rank}"
    text = (
        f"{inspection.kind}, step {inspection.step}{rank}; {inspection.model}; {inspection.parameters} tensors of state"
    )
    lines = wrapped(text, style)
    for index, fields in enumerate(inspection.microbatches[:2]):
        lines += wrapped(f"microbatch {index}: {_fields(fields)}", style, rest="    ")
    if len(inspection.microbatches) > 2:
        lines.append(f"  and {plural(len(inspection.microbatches) - 2, 'more microbatch', 'more microbatches')}")
    lines += _recorded_lines(inspection, style)
    for health in inspection.nonfinite[:_MAX_HEALTH]:
        counts = f"{health.nan} NaN, {health.positive_inf} inf, {health.negative_inf} -inf"
        lines += wrapped(f"non-finite {health.role} {health.name}: {counts}", style, rest="    ")
    return lines + _more(len(inspection.nonfinite) - _MAX_HEALTH, "non-finite tensor")


def _recorded_lines(inspection: Inspection, style: Style) -> list[str]:
    """What the capture says of itself: bad parameters, precision, versions, and what trusting it would import."""
    lines = []
    bad = inspection.bad_parameters
    if bad:
        lines += wrapped(f"{plural(len(bad), 'parameter')} named bad, the first {bad[0]}", style, rest="    ")
    known = [f"{name} {version}" for name, version in inspection.versions]
    if inspection.precision:
        known.insert(0, f"precision {inspection.precision}")
    if inspection.gradient_norm is not None:
        known.append(f"gradient norm {number(inspection.gradient_norm)}")
    if known:
        lines += wrapped(f"recorded: {', '.join(known)}", style, rest="    ")
    imports = ", ".join(inspection.imports[:_MAX_IMPORTS])
    left = len(inspection.imports) - _MAX_IMPORTS
    more = f" and {left} more" if left > 0 else ""
    lines += wrapped(f"--trust would import and call: {imports}{more}", style, rest="    ")
    for why in inspection.refused[:_MAX_IMPORTS]:
        lines += wrapped(f"--trust would refuse it: {why}", style, rest="    ")
    return lines


def _fields(fields: Iterable[Field]) -> str:
    shown = list(fields)
    texts = [f"{field.name or 'batch'} {field.dtype}{_shape(field.shape)}" for field in shown[:_MAX_FIELDS]]
    return ", ".join(texts) + (f" and {len(shown) - _MAX_FIELDS} more" if len(shown) > _MAX_FIELDS else "")


def _shape(shape: Sequence[int]) -> str:
    return f" ({'x'.join(str(size) for size in shape)})" if shape else ""


def _frame_lines(replay: Replay) -> list[str]:
    return [
        f"  {_name(frame.module or '(the model)')}  {escape(frame.module_class):<18} {frame.magnitude.dtype:<9} "
        f"{number(frame.magnitude.abs_min):>9} to {number(frame.magnitude.abs_max)}"
        for frame in replay.frames[-_MAX_FRAMES:]
    ]


def _given_lines(origin: Origin | None) -> list[str]:
    if origin is None:
        return []
    lines = [_given_line(one, one.tensor) for one in origin.given]
    wide = origin.lost[1] if origin.lost is not None else None
    return lines + ([_given_line(wide, f"{wide.tensor} in float32")] if wide is not None else [])


def _given_line(one: Magnitude, name: str) -> str:
    kinds = ((one.zeros, "zero"), (one.negative, "negative"), (one.nonfinite, "not finite"))
    counts = [f"{count:,} {what}" for count, what in kinds if count]
    shape = "x".join(map(str, one.shape)) or "a number"
    counted = f", of {math.prod(one.shape):,}: {', '.join(counts)}" if counts else ""
    if one.nonfinite and one.nonfinite == math.prod(one.shape):
        return f"  {_name(name)}  {one.dtype:<9} {shape:<12} nothing finite in it"
    return f"  {_name(name)}  {one.dtype:<9} {shape:<12} {number(one.abs_min):>9} to {number(one.abs_max)}{counted}"


def _name(name: str) -> str:
    return f"{shorten(escape(name), _NAME_WIDTH):<{_NAME_WIDTH}}"


def _layer_lines(layers: Sequence[LayerGradient]) -> list[str]:
    """The non-finite ones by number, the other flagged ones one a line."""
    spoilt = [layer for layer in layers if "non-finite" in layer.flags]
    lines = []
    if spoilt:
        names = [escape(layer.parameter) for layer in spoilt]
        span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        lines.append(f"  {len(spoilt)} of {plural(len(layers), 'parameter')} non-finite: {span}")
    flagged = [layer for layer in layers if layer.flags and layer not in spoilt]
    lines += [
        f"  {_name(layer.parameter)}  norm {number(layer.norm):>9}{_usual(layer)}, {layer.zeros:.0%} zeros: "
        f"{', '.join(layer.flags)}"
        for layer in flagged[:_MAX_LAYERS]
    ]
    finite = [layer.norm for layer in layers if layer not in spoilt]
    if lines and finite:
        lines.append(f"  the finite norms run from {number(min(finite))} to {number(max(finite))}")
    return lines + _more(len(flagged) - _MAX_LAYERS, "flagged parameter")


def _usual(layer: LayerGradient) -> str:
    return "" if layer.usual is None else f" (usually {number(layer.usual)})"


def _more(left: int, what: str) -> list[str]:
    return [f"  and {plural(left, f'more {what}')}, listed by --format json"] if left > 0 else []


def _next_lines(replay: Replay, style: Style) -> list[str]:
    actions = [*([replay.hint] if replay.hint else []), *(a for finding in replay.findings for a in finding.actions)]
    actions += [] if replay.diagnosis is None else [advice.text for advice in replay.diagnosis.next]
    lines = []
    for place, text in enumerate(actions[:_MAX_ACTIONS], start=1):
        lines += wrapped(text, style, first=f"  {place}. ", rest="     ")
    return lines
