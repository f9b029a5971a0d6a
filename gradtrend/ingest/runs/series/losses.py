"""Which of a run's losses say how far training came: batch, running and evaluated ones are series of their own."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gradtrend.ingest.reading.columns import longest_gap
from gradtrend.ingest.reading.names import PART_OF_LOSS, Naming, is_held_out_loss, normalise
from gradtrend.model.runlog import Note
from gradtrend.model.words import Role

if TYPE_CHECKING:
    import polars as pl

# What runs log whose loss is no measure of progress: reinforcement learning (the better the policy, the larger the
# values to be fitted) and players against one another. Preference tuning logs `rewards/...` and has a loss to fall.
_GAME = re.compile(
    r"(?:^|[/_.])(?:(?:ep|episode|mean|avg|average|total|eval)_(?:rew|reward|return)s?(?:_mean)?|episode_(?:len|length)"
    r"|exploration_rate|(?:value|policy|actor|critic)_loss|g_loss|d_loss|loss_[gd]|(?:generator|discriminator)_loss"
    r"|loss_(?:generator|discriminator|gen|disc))(?:$|[/_.])"
    r"|(?:^|[/.])rewards?(?:_(?:mean|std|avg))?$"
)
# A part of the loss stands in for the whole where it goes on after every whole one has ended: this share of the run.
_GOES_ON = 0.1
_LEAST_GONE = 3  # as for a norm that has nothing but NaN
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Gone:
    """A loss without a number from its step `first` to its `last`."""

    metric: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Reach:
    """A metric with the first and last step at which it is logged, and how often."""

    metric: str
    first: int
    last: int
    points: int


def whole_losses(losses: Sequence[Reach], namings: Mapping[str, Naming], metrics: Collection[str]) -> tuple[str, ...]:
    """The metrics that log the whole training loss, the one with most points first; empty where all are terms of it, or
    where the other `metrics` of the run show that its loss does not say how far training came. That which the user has
    chosen says so.

    Beside the whole a part is none, unless no whole loss reaches as far: AlgoPerf logs `loss` for the first hundred
    steps and evaluates `train/ctc_loss` to the end.
    """
    chosen = any(namings[loss.metric].chosen for loss in losses)
    if not chosen and any(_GAME.search(normalise(metric)) for metric in metrics):
        return ()
    wholes = [loss for loss in losses if namings[loss.metric].priority < PART_OF_LOSS]
    if not wholes:
        return (losses[0].metric,) if len(losses) == 1 else ()
    first, last = min(loss.first for loss in losses), max(loss.last for loss in losses)
    seen = max(loss.last for loss in wholes)
    further = [loss for loss in losses if loss not in wholes and loss.last - seen > _GOES_ON * (last - first)]
    ranked = sorted(wholes, key=lambda loss: -loss.points)
    return tuple(loss.metric for loss in (*ranked, *further))


def without_parts(namings: Mapping[str, Naming], losses: Sequence[Reach], wholes: Sequence[str]) -> dict[str, Naming]:
    """The namings with the parts of a loss, beside the whole, as other metrics."""
    if not wholes:
        return dict(namings)
    parts = {loss.metric for loss in losses} - set(wholes)
    why = "a part of the loss; the total is logged too"
    return {
        metric: replace(naming, role=Role.OTHER, why=why) if metric in parts else naming
        for metric, naming in namings.items()
    }


def gone_note(gone: Sequence[Gone]) -> Note | None:
    """A note on losses that are NaN or inf for good: parts of the loss, or losses on held-out data."""
    if not gone:
        return None
    first = min(gone, key=lambda one: one.first)
    more = f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else ""
    names = ", ".join(one.metric for one in gone[:_NAMED]) + more
    return Note(
        "loss-part-nonfinite",
        f"{names}: NaN or inf from step {first.first} on",
        first.metric,
        first_step=first.first,
        last_step=max(one.last for one in gone),
        measures=(("nonfinite_losses", float(len(gone))),),
        details=names,
    )


def is_any_loss(metric: str, naming: Naming) -> bool:
    """Whether a metric is a loss: of training, whole or in part, or on held-out data."""
    return naming.role is Role.LOSS or (naming.role is Role.OTHER and is_held_out_loss(metric))


def ends_finite(rows: pl.DataFrame) -> bool:
    """Whether the last value, in the order logged, is a number."""
    return math.isfinite(rows["value"][-1])


def gone_for_good(metric: str, rows: pl.DataFrame) -> Gone | None:
    """From which step a loss has no number any more, or None: at least three values at its end, and more than twice as
    many as ever lay between two numbers (a column that is filled every fifth row only is full of NaN).

    `rows` has the columns `step` and `value`, in the order logged.
    """
    if not len(rows) or ends_finite(rows):
        return None
    numbers = rows["value"].is_finite().arg_true()
    if not len(numbers):
        return None
    if len(rows) - 1 - numbers[-1] < max(_LEAST_GONE, 2 * longest_gap(numbers) + 1):
        return None
    steps = rows["step"]
    return Gone(metric, int(steps[numbers[-1] + 1]), int(steps[-1]))
