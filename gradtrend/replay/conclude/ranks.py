"""Captures of several ranks at one step are one event: NaN of one rank reaches all by all-reduce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradtrend.model.replay import Outcome, Replay, ReplayCause

_ASK_OTHERS = "With several processes the NaN of one reaches all: replay the captures of the other ranks too."


def join_ranks(results: Sequence[Replay]) -> tuple[Replay, ...]:
    """The results, with those that did not reproduce explained by the rank that did."""
    return tuple(_joined(result, results) for result in results)


def _joined(result: Replay, results: Sequence[Replay]) -> Replay:
    if result.outcome is not Outcome.NOT_REPRODUCED or not result.inspection.bad_parameters:
        return result
    others = [other for other in results if other is not result and _same_event(other, result)]
    makers = [other for other in others if other.outcome is Outcome.CONFIRMED]
    if makers:
        rank = makers[0].inspection.rank
        why = f"Rank {rank} makes the non-finite values ({makers[0].inspection.path}); this rank's own step is finite."
        return replace(
            result, outcome=Outcome.CONFIRMED, cause=ReplayCause.OTHER_RANK, why=(why, *result.why), notes=result.notes
        )
    if not others and result.inspection.world_size != 1:
        return replace(result, notes=(*result.notes, _ASK_OTHERS))
    return result


def _same_event(one: Replay, other: Replay) -> bool:
    return one.inspection.step == other.inspection.step and one.inspection.rank != other.inspection.rank
