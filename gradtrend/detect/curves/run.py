"""What a rule is evaluated on: one series with everything of its run that a measure may look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gradtrend.detect.curves.divergence import Divergence, divergence_of
from gradtrend.detect.curves.levels import median, pace_of
from gradtrend.detect.curves.loss import Descent, batch_loss, descent_of, furthest_of, gain_overall, without_masked
from gradtrend.detect.curves.nonfinite import Collapse, NonFiniteState, find_collapse, lost_terms, nonfinite_state
from gradtrend.detect.curves.series import Series, series_of, total_of
from gradtrend.detect.curves.shape import Change, Shape, describe
from gradtrend.detect.curves.spikes import Spike, find_spikes
from gradtrend.detect.curves.terms import bad_terms, exploding_terms
from gradtrend.detect.curves.warmup import early_until, warmup_end
from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Role

# x3 above everything before: what a spike of warm-up must show, since the norm is high anyway when training begins.
_BEYOND_HISTORY = 0.5


@dataclass(frozen=True)
class RunCurves:
    """One run: its series by role, and what holds for all of them.

    `loss` is the loss of the batches whose norms are judged, `progress` the same where it says how far training came,
    else None. `furthest` are the losses that say so and reach to the end of the run: a batch loss may be logged for the
    first hundred steps only, and an evaluated one to the end. `total_is_made` says that the total norm was not logged
    but made of those of the layers, which need not be all.
    """

    log: RunLog
    norms: tuple[Series, ...]
    layers: tuple[Series, ...]
    loss: Series | None
    progress: Series | None
    furthest: tuple[Series, ...]
    lr: Series | None
    loss_scale: Series | None
    param_norms: tuple[Series, ...]
    nonfinite: NonFiniteState
    total_is_made: bool = False

    @property
    def losses(self) -> tuple[Series, ...]:
        """The losses that are judged: that of the batches, then the others that reach to the end."""
        batch = () if self.loss is None else (self.loss,)
        return (*batch, *(loss for loss in self.furthest if loss is not self.loss))

    @property
    def series(self) -> tuple[Series, ...]:
        """Every series that counts: total norms, layers, losses, learning rate, loss scale, weight norms."""
        single = tuple(s for s in (self.lr, self.loss_scale) if s is not None)
        return (*self.norms, *self.layers, *self.losses, *single, *self.param_norms)

    def covers(self, series: Series) -> float | None:
        """The share of the run's steps over which a series is logged; None where the run has but one step."""
        first, last = self.span
        if not len(series) or last <= first:
            return None
        return (self.logged_until(series) - int(series.steps[0])) / (last - first)

    def logged_until(self, series: Series) -> int:
        """The last step before which a series would have been logged again, at its own pace."""
        return min(
            int(series.steps[-1]) + int(pace_of(series.steps) or 1) - 1, max(int(series.steps[-1]), self.span[1])
        )

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first and the last step of any series that counts."""
        ends = [int(step) for series in self.series if len(series) for step in (series.steps[0], series.steps[-1])]
        return min(ends, default=0), max(ends, default=0)

    def curve(self, series: Series | None) -> Curve:
        """The curve of one of this run's series, or of the run as a whole; always the same one."""
        return self._curves[None if series is None else series.metric]

    @cached_property
    def _curves(self) -> Mapping[str | None, Curve]:
        return {None: Curve(self, None)} | {series.metric: Curve(self, series) for series in self.series}

    @cached_property
    def warmup_end(self) -> int | None:
        """The step at which the logged learning rate reaches its peak, or the configured one without a log, or None."""
        return self.log.settings.warmup_steps if self.lr is None else warmup_end(self.lr)

    @cached_property
    def exploding_terms(self) -> tuple[str, ...]:
        """The terms of the loss that explode while others stay where they are."""
        return tuple(name for name in exploding_terms(self.log) if name not in {loss.metric for loss in self.furthest})

    @cached_property
    def bad_terms(self) -> tuple[str, ...]:
        """The terms of the loss that are not finite at a step at which another term, or a norm, is."""
        return bad_terms(self.log)

    @cached_property
    def descent(self) -> Descent | None:
        """How the batch loss came down, or None where it cannot tell."""
        return descent_of(self.progress)

    @cached_property
    def top_layer_level(self) -> float | None:
        """log10 of the largest per-layer level over the second half of the run, or None without layers."""
        levels = [late_level(shape) for s in self.layers if (shape := self.curve(s).shape) is not None]
        return max(levels, default=None)


@dataclass(frozen=True)
class Curve:
    """One series of a run. For rules on the run as a whole `series` is its first total gradient norm, or None.

    What is found out about it is kept, so that what one rule asked for serves the next.
    """

    run: RunCurves
    series: Series | None
    _measured: dict[Callable[[Curve], float | None], float | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def measure(self, function: Callable[[Curve], float | None]) -> float | None:
        """What a function says of this curve; it is asked once."""
        if function not in self._measured:
            self._measured[function] = function(self)
        return self._measured[function]

    @cached_property
    def collapse(self) -> Collapse | None:
        """Where this series becomes non-finite for good."""
        return None if self.series is None else find_collapse(self.series)

    @property
    def ending_points(self) -> int:
        """Non-finite points that end this series; a single one counts as two, since it did not come back."""
        return 0 if self.collapse is None else max(2, self.collapse.points)

    @cached_property
    def shape(self) -> Shape | None:
        """The shape of this series' finite part."""
        return None if self.series is None else describe(self.series, self.collapse is not None)

    @property
    def rise(self) -> Change | None:
        """The rise to the end of this series."""
        return None if self.shape is None else self.shape.rise

    @property
    def fall(self) -> Change | None:
        """The fall to the end of this series."""
        return None if self.shape is None else self.shape.fall

    @cached_property
    def progress(self) -> Series | None:
        """The loss that this curve is of, where it says how far training came; else the run's batch loss that does."""
        if self.series is not None and self.series.role is Role.LOSS:
            says = any(self.series is loss for loss in (self.run.progress, *self.run.furthest))
            return self.series if says else None
        return self.run.progress

    @cached_property
    def loss_gain(self) -> float | None:
        """How far that loss came over the whole run, as a share of where it was; None where it cannot tell."""
        if self.progress is None or self.descent is None:
            return None
        own = self.progress is self.series
        return gain_overall(self.progress, self.descent) if own else self.run.curve(self.progress).loss_gain

    @cached_property
    def descent(self) -> Descent | None:
        """How that loss came down; None where it cannot tell."""
        return self.run.descent if self.progress is self.run.progress else descent_of(self.progress)

    @cached_property
    def divergence(self) -> Divergence | None:
        """Where that loss began, where it was best, where it ended."""
        return None if self.progress is None else divergence_of(self.progress)

    @cached_property
    def spikes(self) -> tuple[Spike, ...]:
        """All spikes that came back."""
        return () if self.shape is None else find_spikes(self.shape.y, self.shape.local)

    @cached_property
    def early_spikes(self) -> tuple[Spike, ...]:
        """Spikes of warm-up: above all before them (a bump on the way down is none) and not surpassed by later ones."""
        early = [s for s in self.spikes if self._is_early(s)]
        highest_later = max((s.decades for s in self.late_spikes), default=0.0)
        return tuple(s for s in early if s.beyond >= _BEYOND_HISTORY and s.decades >= highest_later)

    @cached_property
    def late_spikes(self) -> tuple[Spike, ...]:
        """Spikes later than that."""
        return tuple(s for s in self.spikes if not self._is_early(s))

    def _is_early(self, spike: Spike) -> bool:
        assert self.shape is not None
        return int(self.shape.steps[spike.first]) <= self.early_until

    @cached_property
    def early_until(self) -> float:
        """The last step that counts as warm-up or just after it."""
        assert self.series is not None
        steps = self.series.steps
        last = max(int(steps[-1]), self.run.span[1])  # a norm logged for the first steps only is all of it early
        return early_until(int(steps[0]), last, self.run.warmup_end)

    def before(self, index: int) -> tuple[tuple[int, int], ...]:
        """Windows of steps just before a judged point: a twentieth of the run; at the start its first point as well."""
        if index > 0:
            return (self._steps(index - self._near, index - 1),)
        return self._steps(0, 0), self._steps(0, self._near - 1)

    def since(self, index: int) -> tuple[int, int]:
        """The window of a twentieth of the run from a judged point on."""
        return self._steps(index, index + self._near - 1)

    @property
    def _near(self) -> int:
        assert self.shape is not None
        return max(3, self.shape.points // 20)

    def _steps(self, first: int, last: int) -> tuple[int, int]:
        shape = self.shape
        assert shape is not None
        return int(shape.steps[max(0, first)]), int(shape.steps[min(last, shape.points - 1)])


def late_level(shape: Shape) -> float:
    """Median of y over the second half of the judged points."""
    return median(shape.y[shape.points // 2 :])


def run_curves(log: RunLog) -> RunCurves:
    """The series of a run by role, and what is non-finite in them."""
    series = series_of(log)
    by_role = {role: tuple(s for s in series if s.role is role) for role in Role}
    norms = tuple(s for s in by_role[Role.GRAD_NORM] if s.layer is None)
    layers = tuple(s for s in by_role[Role.GRAD_NORM] if s.layer is not None)
    if not norms and (total := total_of(layers)) is not None:
        norms = (total,)
    losses = tuple(_without_masked(loss, norms) for loss in by_role[Role.LOSS])
    wholes = _whole(losses, log)
    loss = batch_loss(wholes or losses, norms)
    scales = by_role[Role.LOSS_SCALE]
    scaled = bool(scales) or bool(log.settings.in_float16)
    furthest = furthest_of(wholes)
    raw = {loss.metric: loss for loss in by_role[Role.LOSS]}
    witnesses = furthest if wholes else lost_terms(losses, norms)
    state = nonfinite_state(log, norms, None if loss is None else raw[loss.metric], witnesses, scaled)
    lr = max(by_role[Role.LR], key=len, default=None)
    scale = max(scales, key=len, default=None)
    progress = loss if wholes else None
    made = bool(norms) and all(one is not norms[0] for one in series)
    return RunCurves(log, norms, layers, loss, progress, furthest, lr, scale, by_role[Role.PARAM_NORM], state, made)


def _whole(losses: Sequence[Series], log: RunLog) -> tuple[Series, ...]:
    """The losses that log the whole loss; one that never has a value is a placeholder beside one that has."""
    wholes = tuple(loss for loss in losses if loss.metric in log.losses)
    valued = tuple(loss for loss in wholes if loss.finite.any())
    return valued or wholes


def _without_masked(loss: Series, norms: Sequence[Series]) -> Series:
    for norm in norms:
        loss = without_masked(loss, norm)
    return loss
