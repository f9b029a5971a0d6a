"""Which microbatches fail, and which samples in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradtrend.model.replay import Blame, Sample
from gradtrend.replay.run.step import run_step
from gradtrend.replay.search import batches
from gradtrend.replay.search.batches import Layout
from gradtrend.replay.search.samples import (
    PartRuns,
    failing_alone,
    failing_together,
    part_runs,
    time_comes_first,
)
from gradtrend.replay.subject.subject import Subject

_MAX_TRIED = 8  # samples that are given other random numbers, to see whether theirs are to blame
_MAX_SEARCHED = 4  # microbatches whose samples are looked for; each takes some runs of the step


def blame(subject: Subject, precision: str, backward: bool) -> Blame:
    """The microbatches that fail alone, and the samples in them that make them fail. Raises what the model raises.

    `backward` says whether the failure needs the backward pass to show.
    """
    whole = subject.batches_in(precision)
    bad = [index for index, batch in enumerate(whole) if _fails(subject, precision, index, batch, backward)]
    if not bad:
        return Blame((), note=_none_alone(len(whole), backward))
    searched = [_searched(subject, precision, index, whole[index], backward) for index in bad[:_MAX_SEARCHED]]
    explained = [one for one in searched if one.samples]
    cured = [one.cured for one in explained]
    return Blame(
        microbatches=tuple(bad),
        samples=tuple(sample for one in explained for sample in one.samples),
        batch_size=next((one.size for one in searched if one.size is not None), None),
        cured=None if len(explained) < len(bad) or None in cured else all(cured),
        note=next((one.note for one in searched if one.note is not None), None),
        together=bool(explained) and all(one.together for one in explained),
        by_chance=bool(explained) and all(one.by_chance for one in explained),
    )


@dataclass(frozen=True, slots=True)
class _Searched:
    """What was found in one microbatch; `note` says why no sample is named. The rest is as in `Blame`."""

    size: int | None
    samples: tuple[Sample, ...] = ()
    note: str | None = None
    together: bool = False
    cured: bool | None = None
    by_chance: bool = False


def _searched(subject: Subject, precision: str, index: int, batch: Any, backward: bool) -> _Searched:
    layouts = batches.layouts_of(batch, time_comes_first(subject.model))
    if not layouts or layouts[0].size < 2 or batches.is_empty(batch):
        return _Searched(layouts[0].size if layouts else None, note=_no_samples(batch, bool(layouts)))
    tried = (_searched_along(subject, precision, index, batch, layout, backward) for layout in layouts)
    found = []
    for one in tried:
        if one.samples:
            return one
        found.append(one)
    return found[0]


def _searched_along(
    subject: Subject, precision: str, index: int, batch: Any, layout: Layout, backward: bool
) -> _Searched:
    parts = part_runs(subject, precision, index, batch, layout, backward)
    numbers, note, together = _search(parts)
    return _Searched(
        size=layout.size,
        samples=tuple(Sample(index, number, batches.identity(batch, number, layout.size)) for number in numbers),
        note=note,
        together=together,
        cured=None if parts.exhausted else _is_finite_without(parts, numbers),
        by_chance=bool(numbers) and parts.draws and not _fails_whatever_is_drawn(parts, numbers),
    )


def _none_alone(count: int, backward: bool) -> str:
    if backward and count > 1:
        return "no microbatch fails alone: only the accumulated gradients are bad"
    if count > 1:
        return "no microbatch fails when it is run alone: it takes what an earlier one leaves behind, or other numbers"
    return "the microbatch does not fail when it is run again: what the step is given differs from run to run"


def _no_samples(batch: Any, any_layout: bool) -> str:
    if batches.is_empty(batch):
        return "the microbatch is empty: it holds a tensor without any sample"
    return "the microbatch has one sample" if any_layout else "the microbatch has no samples to tell apart"


def _fails(subject: Subject, precision: str, index: int, batch: Any, backward: bool) -> bool:
    return not run_step(subject, precision, only=[(index, batch)], backward=backward).finite


def _search(parts: PartRuns) -> tuple[list[int], str | None, bool]:
    """The samples to blame, why none can be named, and whether they fail only together."""
    size = parts.layout.size
    alone = failing_alone(parts)
    if len(alone) == size:
        return [], "every part of the batch fails alone", False
    if len(alone) > size // 2:
        return [], f"{len(alone)} of {size} samples fail alone", False
    if alone:
        return alone, "more may fail: so many do that not all were searched" if parts.exhausted else None, False
    if parts.refused:
        return [], f"the step does not run on part of the batch ({parts.refused[0][:120]})", False
    jointly = failing_together(parts)
    if 0 < len(jointly) <= size // 2:
        return jointly, None, True
    return [], "no part of the batch fails alone: it takes the samples together", False


def _is_finite_without(parts: PartRuns, numbers: Sequence[int]) -> bool | None:
    """Whether the microbatch is finite without these samples; None where that cannot be told."""
    rest = [number for number in range(parts.layout.size) if number not in numbers]
    result = parts.result_of(rest, repeated=False) if rest and numbers else None
    return None if result is None else result.finite


def _fails_whatever_is_drawn(parts: PartRuns, numbers: Sequence[int]) -> bool:
    """Whether the samples also fail with other random numbers: those that begin the run, not those of their places."""
    return any(parts.fails_with_other_numbers([number]) for number in numbers[:_MAX_TRIED])
