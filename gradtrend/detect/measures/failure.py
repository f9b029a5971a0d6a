"""Measures of what known causes show: zeros, rewards without spread, what came before a failure, which term it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from gradtrend.detect.curves.failure import before_failure, failed_at, fails_for_good, rise_of, rows_before_failure
from gradtrend.detect.curves.levels import median
from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.series import FloatArray, Series
from gradtrend.detect.curves.terms import metrics_of, values_named
from gradtrend.detect.measures import spans
from gradtrend.detect.measures.measure import Measure

_REWARD = r"(?i)(?<![a-z])rewards?(?![a-z])"
_PLAYER = (
    r"(?i)(?<![a-z])(?:rewards?|returns?|rew|actor|critic|advantages?|surrogate)(?![a-z])"
    r"|value_function|(?:value|policy|(?<![a-z])qf?\d?)_?loss"
)
_SCALE_POINTS = 20  # fewer may be the halvings of the first steps alone, of a log that begins with them
_MOST_RESUMES = 100  # steps that go back more often are no resumed runs
_NEAR = 5  # values that show the level before a failure


def _zero_share(series: Sequence[Series]) -> float | None:
    """Share of zeros in the series with the fewest."""
    shares = [float((one.finite_values == 0).mean()) for one in series if len(one.finite_values)]
    return min(shares, default=None)


def _norms_zero(curve: Curve) -> float | None:
    """Share of the finite gradient norms that are exactly 0; of several norms, of the one with the fewest zeros."""
    return _zero_share(curve.run.norms)


def _losses_zero(curve: Curve) -> float | None:
    """Share of the losses that are exactly 0."""
    loss = curve.run.loss
    return None if loss is None else _zero_share([loss])


def _rates_zero(curve: Curve) -> float | None:
    """Share of the logged learning rates that are exactly 0."""
    return None if curve.run.lr is None else _zero_share([curve.run.lr])


def _loss_change(curve: Curve) -> float | None:
    """How far the last third of the loss lies from its first third, as a share of the first."""
    values = np.zeros(0) if curve.run.loss is None else curve.run.loss.finite_values
    third = max(1, len(values) // 3)
    first = abs(median(values[:third])) if len(values) > 1 else 0.0
    return abs(median(values[-third:]) - median(values[:third])) / first if first > 0 else None


def _reward_spread(curve: Curve) -> float | None:
    """The median spread of the rewards within a group."""
    values = values_named(curve.run.log, r"(?:^|/)reward_std$")
    return median(values[np.isfinite(values)]) if np.isfinite(values).any() else None


def _groups_without_spread(curve: Curve) -> float | None:
    """The median share of the groups whose rewards are all the same."""
    values = values_named(curve.run.log, r"frac_reward_zero_std$")
    return median(values[np.isfinite(values)]) if np.isfinite(values).any() else None


def _failure_rows(curve: Curve) -> float | None:
    """How many healthy rows there are before norm or loss fails; None where neither does."""
    return None if failed_at(curve.run) is None else float(rows_before_failure(curve.run))


def _failure_rise(curve: Curve) -> float | None:
    """How many times norm or loss, whichever more, lies above its level just before it fails, or at the end."""
    run = curve.run
    return max((rise_of(before_failure(run, one)) for one in (*run.norms, *run.losses)), default=None)


def _nonfinite_norms(curve: Curve) -> float | None:
    """Share of the gradient norms that are not finite, of the norm with the most."""
    return max((float((~norm.finite).mean()) for norm in curve.run.norms if len(norm)), default=None)


def _nonfinite_losses(curve: Curve) -> float | None:
    """Share of the losses that are not finite."""
    loss = curve.run.loss
    return None if loss is None or not len(loss) else float((~loss.finite).mean())


def _raw_loss(curve: Curve) -> FloatArray:
    """The loss as it was logged: of the one that is judged the zeros beside NaN norms are no values."""
    loss = curve.run.loss
    return np.zeros(0) if loss is None else values_named(curve.run.log, f"^{re.escape(loss.metric)}$")


def _last_loss_zero(curve: Curve) -> float | None:
    """1 where the last logged loss is exactly 0, else 0."""
    raw = _raw_loss(curve)
    return float(raw[-1] == 0) if len(raw) else None


def _first_loss(curve: Curve) -> float | None:
    """The first finite loss."""
    values = np.zeros(0) if curve.run.loss is None else curve.run.loss.finite_values
    return float(values[0]) if len(values) else None


def _fails_for_good(curve: Curve) -> float | None:
    """1 where norm or loss is not finite to the end, or the trainer stopped for it, else 0."""
    return float(fails_for_good(curve.run))


def _finite_losses(curve: Curve) -> float | None:
    """How many finite losses there are that are not exactly 0."""
    raw = _raw_loss(curve)
    return float(np.count_nonzero(np.isfinite(raw) & (raw != 0)))


def _nonfinite_seen(curve: Curve) -> float | None:
    """How many norms and losses are not finite."""
    state = curve.run.nonfinite
    return float(state.grad_count + state.loss_count + bool(curve.run.bad_terms))


def _updates_said_skipped(curve: Curve) -> float | None:
    """1 where lines of the log say that the norm is not finite and its update skipped, else 0."""
    return float("norm-not-finite" in curve.run.log.signs)


def _failure_in_words(curve: Curve) -> float | None:
    """1 where lines of the log say that loss or gradient is not finite and no value shows it, else 0."""
    says = not curve.run.log.signs.isdisjoint(("stops-on-nonfinite", "rows-of-nan"))
    return float(says and not fails_for_good(curve.run) and not curve.run.nonfinite.any)


def _reward_rows(curve: Curve) -> float | None:
    """How many metrics are of rewards."""
    return float(sum(bool(re.search(_REWARD, name)) for name in metrics_of(curve.run.log)))


def _player_rows(curve: Curve) -> float | None:
    """How many metrics are of players whose losses rise in health: rewards, returns, value functions, critics."""
    return float(sum(bool(re.search(_PLAYER, name)) for name in metrics_of(curve.run.log)))


def _norm_rows(curve: Curve) -> float | None:
    """How many finite norms there are, zeros among them."""
    return float(max((len(norm.finite_values) for norm in curve.run.norms), default=0))


def _loss_scale_falls_until(curve: Curve) -> float | None:
    """The share of the log's points after which the loss scale was halved no more; None without a loss scale."""
    scale = curve.run.loss_scale
    if scale is None or len(scale.finite_values) < _SCALE_POINTS:
        return None
    fell = np.flatnonzero(np.diff(scale.finite_values) < 0)
    return float((fell[-1] + 1) / len(scale.finite_values)) if len(fell) else 0.0


def _bad_terms(curve: Curve) -> float | None:
    """How many terms of the loss are not finite at a step at which another is."""
    return float(len(curve.run.bad_terms))


def _exploding_terms(curve: Curve) -> float | None:
    """How many terms of the loss explode while others stay where they are."""
    return float(len(curve.run.exploding_terms))


def _loss_jump_at_resume(curve: Curve) -> float | None:
    """How far the loss lies, after the steps went back, above where it was at those steps before, as a share of that;
    the worst of several times. None where the steps never go back.
    """
    loss = curve.run.loss
    table = curve.run.log.table
    if loss is None or not table["segment"].max():
        return None
    rows = table.filter(pl.col("series") == loss.metric)
    last = min(int(rows["segment"].max() or 0), _MOST_RESUMES)  # type: ignore[arg-type]
    jumps = [_jump(rows, segment) for segment in range(1, last + 1)]
    return max((jump for jump in jumps if jump is not None), default=None)


def _jump(rows: pl.DataFrame, segment: int) -> float | None:
    after = rows.filter((pl.col("segment") == segment) & pl.col("value").is_finite())
    if after.is_empty():
        return None
    before = rows.filter(
        (pl.col("segment") < segment) & (pl.col("step") < after["step"][0]) & pl.col("value").is_finite()
    )
    if before.height < _NEAR:
        return None
    level = median(before["value"].to_numpy()[-_NEAR:])
    return (median(after["value"].to_numpy()[:3]) - level) / level if level > 0 else None


MEASURES: Mapping[str, Measure] = {
    "norms_zero": Measure(_norms_zero, "share", "gradient norms that are exactly 0", spans.whole),
    "losses_zero": Measure(_losses_zero, "share", "losses that are exactly 0", spans.whole, "no loss"),
    "rates_zero": Measure(_rates_zero, "share", "learning rates that are exactly 0", spans.whole, "no learning rate"),
    "loss_change": Measure(
        _loss_change, "share", "change of the loss from first to last third", spans.whole, "no loss"
    ),
    "reward_spread": Measure(_reward_spread, "", "spread of the rewards of a group", spans.whole, "no reward_std"),
    "groups_without_spread": Measure(
        _groups_without_spread, "share", "groups whose rewards do not differ", spans.whole, "no frac_reward_zero_std"
    ),
    "failure_rows": Measure(_failure_rows, "rows", "healthy rows before the failure", spans.whole, "nothing fails"),
    "failure_rise": Measure(
        _failure_rise, "x", "norm or loss over its level just before", spans.whole, "no norm or loss"
    ),
    "nonfinite_norms": Measure(_nonfinite_norms, "share", "norms that are not finite", spans.nonfinite, "no norm"),
    "nonfinite_losses": Measure(_nonfinite_losses, "share", "losses that are not finite", spans.nonfinite, "no loss"),
    "last_loss_zero": Measure(_last_loss_zero, "", "1 where the last loss is exactly 0", spans.whole, "no loss"),
    "fails_for_good": Measure(_fails_for_good, "", "1 where norm or loss fails for good", spans.collapse, ""),
    "finite_losses": Measure(_finite_losses, "points", "losses that are finite and not 0", spans.whole, ""),
    "nonfinite_seen": Measure(_nonfinite_seen, "points", "norms and losses that are not finite", spans.nonfinite, ""),
    "updates_said_skipped": Measure(
        _updates_said_skipped, "", "1 where lines say that updates are skipped for their norm", spans.whole, ""
    ),
    "failure_in_words": Measure(
        _failure_in_words, "", "1 where lines alone say that a value is not finite", spans.whole, ""
    ),
    "player_rows": Measure(
        _player_rows, "series", "metrics of rewards, returns, critics or value functions", spans.whole, ""
    ),
    "reward_rows": Measure(_reward_rows, "series", "metrics of rewards", spans.whole, ""),
    "norm_rows": Measure(_norm_rows, "points", "finite norms, zeros among them", spans.whole, ""),
    "loss_scale_falls_until": Measure(
        _loss_scale_falls_until,
        "share",
        "where in the log the loss scale was last halved",
        spans.whole,
        "no loss scale",
    ),
    "first_loss": Measure(_first_loss, "", "the first loss", spans.whole, "no loss"),
    "exploding_terms": Measure(_exploding_terms, "terms", "terms of the loss that explode alone", spans.whole, ""),
    "loss_jump_at_resume": Measure(
        _loss_jump_at_resume, "share", "rise of the loss where the steps go back", spans.whole, "no resume"
    ),
    "bad_terms": Measure(
        _bad_terms, "terms", "terms of the loss that are not finite beside others", spans.nonfinite, ""
    ),
}
