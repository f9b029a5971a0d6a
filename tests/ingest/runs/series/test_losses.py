"""Which of a run's losses say how far training came."""

from __future__ import annotations

import math

import polars as pl
import pytest

from gradtrend.ingest.runs.series.losses import (
    Gone,
    Reach,
    gone_for_good,
    gone_note,
    is_any_loss,
    whole_losses,
    without_parts,
)
from gradtrend.ingest.runs.series.roles import assign_roles
from gradtrend.model.words import Role


def chosen(*losses: Reach, beside: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The whole losses among these, each at its reach, beside other metrics."""
    names = [loss.metric for loss in losses]
    return whole_losses(losses, assign_roles(names), [*names, *beside])


def to(metric: str, last: int, points: int = 100) -> Reach:
    return Reach(metric, 0, last, points)


@pytest.mark.parametrize("part", ["loss_cls", "loss_scale", "aux_loss", "val_loss", "z_loss", "mtp_1 loss"])
@pytest.mark.parametrize("total", ["loss", "train/loss", "total_loss", "lm loss"])
def test_only_the_total_loss_beside_its_parts(part: str, total: str) -> None:
    namings = assign_roles([part, total])
    losses = [to(name, 1000) for name in (part, total) if namings[name].role is Role.LOSS]
    wholes = whole_losses(losses, namings, [part, total])
    assert wholes == (total,)
    roles = without_parts(namings, losses, wholes)
    assert roles[total].role is Role.LOSS
    assert roles[part].role is not Role.LOSS


def test_several_wholes_stay_with_the_one_of_most_points_first() -> None:
    assert chosen(to("loss", 100, 100), to("train/loss", 48_000, 40)) == ("loss", "train/loss")
    assert chosen(to("train/loss", 48_000, 400), to("loss", 100, 100)) == ("train/loss", "loss")


def test_a_part_that_goes_on_where_the_whole_has_ended_stands_in_for_it() -> None:
    assert chosen(to("loss", 100), to("train/ctc_loss", 48_000, 40)) == ("loss", "train/ctc_loss")
    assert chosen(to("loss", 950), to("train/ctc_loss", 1000)) == ("loss",)


def test_terms_without_a_whole_are_none_of_them() -> None:
    assert chosen(to("loss_cls", 100), to("loss_bbox", 100)) == ()
    assert chosen(to("loss_cls", 100)) == ("loss_cls",)
    assert chosen() == ()


@pytest.mark.parametrize(
    "metric",
    [
        "rollout/ep_rew_mean",
        "episode_reward",
        "train/value_loss",
        "critic_loss",
        "g_loss",
        "loss_D",
        "mean_reward",
        "reward",
        "train/reward_std",
    ],
)
def test_no_loss_says_how_far_players_came(metric: str) -> None:
    assert chosen(to("loss", 100), beside=(metric,)) == ()


@pytest.mark.parametrize("metric", ["rewards/chosen", "reward_margin", "value", "accuracy", "episodes_seen"])
def test_the_loss_of_others_does(metric: str) -> None:
    assert chosen(to("loss", 100), beside=(metric,)) == ("loss",)


NAN = math.nan


def lost(metric: str, *values: float) -> Gone | None:
    return gone_for_good(
        metric, pl.DataFrame({"step": range(10, 10 + len(values)), "value": [float(v) for v in values]})
    )


@pytest.mark.parametrize("metric", ["val_loss", "loss_box", "Validation/Loss", "train/aux_loss"])
def test_from_which_step_a_loss_has_no_number_any_more(metric: str) -> None:
    assert lost(metric, 2, 1, NAN, math.inf, NAN) == Gone(metric, 12, 14)
    assert lost(metric, 2, NAN, 1, NAN, NAN, NAN) == Gone(metric, 13, 15)


@pytest.mark.parametrize(
    "values",
    [[2, 1, NAN, NAN], [NAN, NAN, NAN, NAN], [2, NAN, NAN, 1], [2, NAN, NAN, NAN, 1, NAN, NAN, NAN, NAN], []],
    ids=["two", "never one", "came back", "filled now and then", "empty"],
)
def test_what_is_not_gone_for_good(values: list[float]) -> None:
    assert lost("val_loss", *values) is None


@pytest.mark.parametrize("metric", ["val_loss", "eval/nll", "loss_box", "loss", "Validation/Loss", "train/aux_loss"])
def test_losses_of_all_kinds(metric: str) -> None:
    assert is_any_loss(metric, assign_roles([metric])[metric])


@pytest.mark.parametrize("metric", ["accuracy", "loss_std", "loss_scale", "val/loss_ratio", "loss_avg"])
def test_what_is_no_loss_or_only_follows_one(metric: str) -> None:
    assert not is_any_loss(metric, assign_roles([metric, "loss_val", "loss"])[metric])


def test_one_note_names_the_first_three() -> None:
    note = gone_note([Gone(f"loss_{c}", 20 - i, 40) for i, c in enumerate("abcde")])
    assert note is not None
    assert (note.message, note.first_step, note.last_step) == (
        "loss_a, loss_b, loss_c and 2 more: NaN or inf from step 16 on", 16, 40,
    )  # fmt: skip
    assert gone_note([]) is None


def test_what_the_user_has_chosen_says_so() -> None:
    namings = assign_roles(["loss", "loss_g", "ep_rew_mean"], loss="loss")
    assert whole_losses([to("loss", 100)], namings, list(namings)) == ("loss",)
