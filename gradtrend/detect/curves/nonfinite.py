"""NaN and inf: where they begin, whether they stay, and which of gradient and loss was first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradtrend.detect.curves.levels import pace_of
from gradtrend.detect.curves.loss import masked_steps
from gradtrend.detect.curves.series import IntArray, Series
from gradtrend.model.runlog import Note, RunLog
from gradtrend.model.words import Cause, Order

# From the collapse on at least this share of the points is non-finite: a filter or one rank may let a value through.
_STAYS_SHARE = 0.9
# So many non-finite points at the very end can still be skipped updates of a loss scaler that the log's end cut off.
_SCALER_SKIPS = 2
# As many non-finite values that came back make a habit (GT205), which the end of a log may cut anywhere.
_OFTEN = 3
# Half as much again as its lowest value: what GT303 calls a loss that climbs away.
_CLIMBED = 1.5
# A trainer that skips every second update still trains; one that skips more has lost the run.
_MOST_SKIPPED = 0.5
# Every norm non-finite is a collapse from this many rows on; fewer may be the first log of a run that goes on.
_ALL_NONFINITE_ROWS = 3


@dataclass(frozen=True, slots=True)
class Collapse:
    """The index and step from which a series stays non-finite, and for how many points."""

    index: int
    step: int
    points: int


@dataclass(frozen=True, slots=True)
class NonFiniteState:
    """Everything about non-finite values of a run that the rules and the report need.

    `evidence_step` is the first step that only files under `debug/` show to be non-finite; `came_back` counts the
    non-finite values after which the same series was finite again. `norm_seen` says that a norm was logged or
    captured when the loss was; without one nothing is known of forward and backward pass.
    """

    norm_seen: bool
    grad_first: int | None
    loss_first: int | None
    grad_count: int
    loss_count: int
    masked_share: float
    forward_first: int | None
    evidence_step: int | None
    collapse_step: int | None
    collapse_points: int
    came_back: int

    @property
    def any(self) -> bool:
        """Whether anything is non-finite."""
        firsts = (self.grad_first, self.loss_first, self.forward_first, self.evidence_step)
        return any(first is not None for first in firsts)

    @property
    def collapsed(self) -> bool:
        """Whether it stays so."""
        return self.collapse_step is not None


def find_collapse(series: Series) -> Collapse | None:
    """Where a series becomes non-finite for good, or None."""
    bad = ~series.finite
    if not bad[-1]:
        return None
    n = len(bad)
    share = np.cumsum(bad[::-1])[::-1] / np.arange(n, 0, -1)
    index = int(np.flatnonzero(bad & (share >= _STAYS_SHARE))[0])
    if index == 0 and n < _ALL_NONFINITE_ROWS:
        return None
    return Collapse(index, int(series.steps[index]), n - index)


def lost_terms(losses: Sequence[Series], norms: Sequence[Series]) -> tuple[Series, ...]:
    """The terms of a loss that is not logged as a whole that become non-finite for good, and with them what is trained
    on: no norm is finite after that. (One of several models, or a term that is only watched, leaves the norm finite.)
    """
    last = _last_finite(norms)
    return tuple(
        term
        for term in losses
        if (gone := find_collapse(term)) is not None
        and gone.points >= _ALL_NONFINITE_ROWS
        and gone.index > 0
        and gone.step > last
    )


def nonfinite_state(
    log: RunLog, norms: Sequence[Series], loss: Series | None, furthest: Sequence[Series], scaled: bool
) -> NonFiniteState:
    """What the log and the files under `debug/` say together. `loss` is that of the batches, `furthest` are the losses
    that are logged to the end, or terms that are lost; `scaled` says that a loss scaler is at work.
    """
    later = [other for other in furthest if loss is None or other.metric != loss.metric]
    losses = [*([] if loss is None else [loss]), *later]
    grad_steps = [int(n.steps[~n.finite][0]) for n in norms if not n.finite.all()]
    loss_steps = [int(one.steps[~one.finite][0]) for one in losses if not one.finite.all()]
    unseen = _seen_where_skipped(log)
    collapses = [c for n in norms if n.metric not in unseen and (c := _lasting(n, loss, scaled)) is not None]
    collapses += [c for one in losses if (c := _lost(one, norms)) is not None]
    if loss is not None and not loss_steps and (gone := _loss_gone(loss, collapses)) is not None:
        loss_steps = [gone]
    if not loss_steps and (stopped := _loss_stopped(log, [*norms, *losses])) is not None:
        loss_steps = [stopped]
    evidence = _evidence(log, norms, losses)
    first = min(collapses, key=lambda c: c.step, default=None)
    collapse_step = min([c.step for c in collapses] + ([] if evidence is None else [evidence]), default=None)
    captured = [c.step for c in log.captures if c.step is not None and not c.finite]
    return NonFiniteState(
        norm_seen=bool(
            grad_steps or captured or log.overflow_reports or _seen_until(norms) >= min(loss_steps, default=-1)
        ),
        grad_first=min(grad_steps + captured, default=None),
        loss_first=min(loss_steps, default=None),
        grad_count=sum(int((~n.finite).sum()) for n in norms),
        loss_count=sum(int((~one.finite).sum()) for one in losses),
        masked_share=_masked_share(loss, norms),
        forward_first=min((r.batch for r in log.overflow_reports if r.detected), default=None),
        evidence_step=evidence,
        collapse_step=collapse_step,
        collapse_points=first.points if first else 0,
        came_back=sum(_came_back(s) for s in (*norms, *losses)) + _trained_on(log, norms),
    )


def _seen_where_skipped(log: RunLog) -> set[str]:
    """The norms that are known from a trainer's warnings alone, where it skips less than half of the updates: at the
    other steps they were finite.
    """
    notes = (note for note in log.notes if note.kind == "skipped-updates" and note.metric is not None)
    return {str(note.metric) for note in notes if dict(note.measures).get("skipped_share", 0.0) < _MOST_SKIPPED}


def _masked_share(loss: Series | None, norms: Sequence[Series]) -> float:
    """Share of the steps with a non-finite norm at which the loss is logged as exactly 0.0."""
    if loss is None or all(norm.finite.all() for norm in norms):
        return 0.0
    masked = _distinct([loss.steps[masked_steps(loss, norm)] for norm in norms])
    return masked / _distinct([norm.steps[~norm.finite] for norm in norms])


def _distinct(parts: Sequence[IntArray]) -> int:
    """How many different steps there are. (`np.unique` would load `numpy.ma`, which a short log would notice.)"""
    steps = np.sort(np.concatenate(parts))
    return min(1, len(steps)) + int((steps[1:] != steps[:-1]).sum())


def _trained_on(log: RunLog, norms: Sequence[Series]) -> int:
    """How many captured or reported steps were followed by a finite norm."""
    last = _last_finite(norms)
    captured = sum(c.step is not None and not c.finite and c.step < last for c in log.captures)
    return captured + sum(r.detected and r.batch < last for r in log.overflow_reports)


def _last_finite(norms: Sequence[Series]) -> int:
    """The last step at which a norm is finite; -1 without one."""
    return max((int(n.steps[n.finite][-1]) for n in norms if n.finite.any()), default=-1)


def _seen_until(norms: Sequence[Series]) -> int:
    """The last step for which a norm speaks: one interval after its last, since it may be logged less often."""
    return max((_next_step([norm]) for norm in norms), default=-2)


def _came_back(series: Series) -> int:
    """How many non-finite values a finite one follows."""
    finite = np.flatnonzero(series.finite)
    return int((~series.finite[: finite[-1]]).sum()) if len(finite) else 0


def _comes_and_goes(series: Series) -> bool:
    """Whether so many non-finite values came back before that one or two at the end say nothing: the log ends there."""
    return _came_back(series) >= _OFTEN


def _lasting(norm: Series, loss: Series | None, scaled: bool) -> Collapse | None:
    """The collapse of a norm, unless it may be a loss scaler's skipped updates at the very end of the log."""
    collapse = find_collapse(norm)
    if collapse is None or collapse.points > _SCALER_SKIPS or collapse.index == 0:
        return collapse
    if _comes_and_goes(norm):
        return None
    skipped_before = not norm.finite[: collapse.index].all()
    if not scaled and not skipped_before:
        return collapse
    if loss is None:
        return None  # nothing speaks against one more skipped update
    values = loss.between(collapse.step, int(norm.steps[-1]))
    return collapse if not len(values) or not np.isfinite(values).all() else None


def _lost(loss: Series, norms: Sequence[Series]) -> Collapse | None:
    """The collapse of a loss. A single last value counts where it is of a training step (the row of a summary, which
    may be empty there, has no norm) and where the loss had not climbed before: then it diverged, which is sure.
    """
    collapse = find_collapse(loss)
    if collapse is not None and collapse.points <= _SCALER_SKIPS and _comes_and_goes(loss):
        return None
    if collapse is None or collapse.points > 1 or not norms:
        return collapse
    values = loss.finite_values
    climbed = len(values) > 0 and values.min() > 0 and values[-1] > _CLIMBED * values.min()
    return None if climbed or all(int(norm.steps[-1]) != collapse.step for norm in norms) else collapse


def _loss_gone(loss: Series, collapses: Sequence[Collapse]) -> int | None:
    """The step from which the loss is no longer logged because it was NaN (Megatron drops the field), or None."""
    pace = pace_of(loss.steps)
    for collapse in collapses:
        since = collapse.step - int(loss.steps[-1])
        if collapse.points >= _ALL_NONFINITE_ROWS and pace is not None and 0 < since <= 2 * int(pace):
            return collapse.step
    return None


def _evidence(log: RunLog, norms: Sequence[Series], losses: Sequence[Series]) -> int | None:
    """The first step that a capture, a report or the trainer's last words show non-finite; no finite norm follows."""
    last_finite = _last_finite(norms)
    steps = [c.step for c in log.captures if c.step is not None and not c.finite]
    steps += [r.batch for r in log.overflow_reports if r.detected]
    steps += [_stopped_at(note, [*norms, *losses]) for note in log.notes if note.kind == "stopped-on-nan"]
    return min((step for step in steps if step >= last_finite), default=None)


def _stopped_at(note: Note, series: Sequence[Series]) -> int:
    """The step at which the trainer stopped: the one that it names, else the next."""
    return note.first_step if note.first_step is not None else _next_step(series)


def _loss_stopped(log: RunLog, series: Sequence[Series]) -> int | None:
    """The step whose loss made the trainer stop, by its last words; None where they do not speak of the loss, or where
    only every so many steps are logged and they do not name theirs.
    """
    for note in log.notes:
        if note.kind == "stopped-on-nan" and note.details == "loss":
            every_step = all(int(pace_of(one.steps) or 1) == 1 for one in series)
            if note.first_step is not None or every_step:
                return _stopped_at(note, series)
    return None


def _next_step(series: Sequence[Series]) -> int:
    """The step that would have been logged next: one interval after the last."""
    longest = max(series, key=lambda s: int(s.steps[-1]), default=None)
    if longest is None:
        return 0
    return int(longest.steps[-1]) + int(pace_of(longest.steps) or 1)


def order_of(state: NonFiniteState) -> Order | None:
    """Which of gradient and loss was non-finite first; None where no norm was seen."""
    grad, loss = state.grad_first, state.loss_first
    if not state.norm_seen or (grad is None and loss is None):
        return None
    if loss is None:
        return Order.GRADIENT_ONLY
    if grad is None:
        return Order.LOSS_ONLY
    if grad == loss:
        return Order.SAME_STEP
    return Order.GRADIENT_FIRST if grad < loss else Order.LOSS_FIRST


def cause_of(state: NonFiniteState, exploded: bool, named: Cause | None) -> Cause | None:
    """Why, as far as the log tells. `exploded` says that the finite part explodes, `named` what a rule says."""
    if not state.collapsed:
        return Cause.RECOVERED if state.came_back else None
    if exploded:
        return Cause.AFTER_EXPLOSION
    if named is not None:
        return named
    order = order_of(state)
    if order is None or (order is Order.GRADIENT_ONLY and not state.grad_count):
        return None  # only a file under debug/ says so: the loss of that step is unknown
    return {
        Order.GRADIENT_FIRST: Cause.GRADIENT_FIRST,
        Order.GRADIENT_ONLY: Cause.GRADIENT_FIRST,
        Order.LOSS_FIRST: Cause.LOSS_FIRST,
        Order.LOSS_ONLY: Cause.LOSS_FIRST,
        Order.SAME_STEP: Cause.SAME_STEP,
    }[order]
