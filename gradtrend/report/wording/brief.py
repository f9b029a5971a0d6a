"""A run in one line: how bad it is, where it went wrong, how it ends, and why in about four words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradtrend.model.advice import SoFar
from gradtrend.model.finding import Finding, by_weight
from gradtrend.model.many import badness
from gradtrend.model.numbers import times
from gradtrend.model.report import RunReport, SeriesReport
from gradtrend.model.words import Cause, Role, Severity, Verdict
from gradtrend.report.wording.numbers import number
from gradtrend.report.wording.subject import deciding_series

_FELL = 10  # times: a fall that a reader would see on a log scale
_LAYERS = {"vanishing-layer": ("vanishes", "vanish"), "exploding-layer": ("explodes", "explode")}


def deciding_loss(run: RunReport) -> SeriesReport | None:
    """The loss that diverges, else the first."""
    losses = [s for s in run.series if s.role is Role.LOSS]
    return next((s for s in losses if s.onset_step is not None), losses[0] if losses else None)


def worst_severity(run: RunReport) -> Severity | None:
    """The severity of the worst finding."""
    return max((finding.severity for finding in run.findings), key=lambda severity: severity.rank, default=None)


def is_well(run: RunReport) -> bool:
    """Whether there is nothing to look at: judged, not sick, and no warning."""
    return badness.is_well(run.verdict, worst_severity(run))


def by_badness(runs: Sequence[RunReport]) -> list[RunReport]:
    """The worst first, and else in their order."""
    return sorted(runs, key=lambda run: badness.badness(run.verdict, worst_severity(run), run.confidence))


def onset_of(run: RunReport) -> int | None:
    """The step at which a run that is not stable went wrong: its rise or fall, else its first NaN or inf."""
    found = run.nonfinite
    firsts = [] if found is None else [s for s in (found.grad_first_step, found.loss_first_step) if s is not None]
    if run.verdict is Verdict.NAN_COLLAPSE and firsts:
        return min(firsts)
    if run.verdict in (Verdict.STABLE, Verdict.UNDETERMINED):
        return None
    order = [deciding_loss(run), deciding_series(run)]
    if run.verdict is not Verdict.DIVERGING:
        order.reverse()
    onsets = [series.onset_step for series in order if series is not None and series.onset_step is not None]
    return next(iter(onsets), _first_step(run))


def _first_step(run: RunReport) -> int | None:
    top = _telling(run)
    return None if top is None else top.first_step


def ends_at(run: RunReport) -> float | None:
    """The last value of the norm that decided; of a run without one that of the loss."""
    series = deciding_series(run) or deciding_loss(run)
    return None if series is None else series.last


def because(run: RunReport) -> str:
    """Why, in about four words; empty where there is nothing to tell. What else was found is counted, but for what a
    baseline knows; where it knows why, that is said, and what is new behind it.
    """
    top = _telling(run)
    if top is None:
        return ""
    words = _words(run, top)
    known = all(finding.known for finding in run.findings if finding.rule == top.rule)
    others = {f.rule for f in run.findings if f.severity is not Severity.INFO and not f.known and f.rule != top.rule}
    if known:
        return f"known: {words}" + (f", +{len(others)} new" if others else "")
    others -= {"GT201"} if "NaN" in words else set()
    return words + (f", +{len(others)}" if others else "")


def _telling(run: RunReport) -> Finding | None:
    """The finding that gave the verdict, else the weightiest; of notes none."""
    names = (run.verdict.value, f"{run.verdict.value}-layer")
    ranked = sorted(by_weight(run.findings), key=lambda f: f.name not in names)
    top = ranked[0] if ranked else None
    return None if top is None or (top.severity is Severity.INFO and top.name not in names) else top


def _words(run: RunReport, top: Finding) -> str:
    norm, loss = deciding_series(run), deciding_loss(run)
    if top.name == "exploding":
        grown = "norm grows" if norm is None or norm.decades is None else f"norm {times(norm.decades)}"
        nan = run.nonfinite is not None and not run.nonfinite.recovered
        return f"{grown}, then NaN" if nan else grown
    if top.name == "nan-collapse":
        return _collapse(run)
    if top.name in _LAYERS:
        layers = {f.layer for f in run.findings if f.rule == top.rule}
        one, many = _LAYERS[top.name]
        return f"layer {top.layer} {one}" if len(layers) == 1 else f"{len(layers)} layers {many}"
    if top.name == "diverging" and loss is not None and loss.last is not None:
        return f"loss climbs to {number(loss.last)}"
    if top.name == "vanishing" and norm is not None:
        return _vanished(norm)
    if top.name == "warmup-spike" and norm is not None and norm.peak is not None:
        return f"spike to {number(norm.peak)}, settled"
    words = top.name.replace("-", " ")
    if run.verdict is Verdict.UNDETERMINED:
        return f"{words}, {run.so_far}" if run.so_far is SoFar.SUSPICIOUS else words
    return f"{words} at {top.first_step}" if top.first_step is not None and words.endswith("spike") else words


def _vanished(norm: SeriesReport) -> str:
    """By how much it fell, if it did: a norm may be next to nothing from its first step on."""
    if not norm.baseline or not norm.last or norm.last * _FELL > norm.baseline:
        return "norm tiny, loss stands"
    return f"norm {times(math.log10(norm.last / norm.baseline))}"


def _collapse(run: RunReport) -> str:
    found = run.nonfinite
    if found is None or (found.grad_first_step is None and found.loss_first_step is None):
        return "NaN for good"
    if found.cause is Cause.MASKED:
        return "norm NaN, loss masked"
    if found.loss_first_step is None:
        return "norm NaN, loss finite"
    return "loss NaN for good" if found.grad_first_step is None else "norm and loss NaN"
