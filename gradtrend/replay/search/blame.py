"""Which microbatches fail, and which samples in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

_MAX_SEARCHED = 4  # microbatches whose samples are looked for; each takes some runs of the step


def blame(subject: Subject, precision: str, backward: bool) -> Blame:
    """The microbatches that fail alone, and the samples in them that make them fail. Raises what the model raises.

    `backward` says whether the failure needs the backward pass to show.
    """
    with subject.in_type_of(precision) as present:
        whole = list(present)
    bad = [index for index, batch in enumerate(whole) if _fails(subject, precision, index, batch, backward)]
    if not bad:
        return Blame((), note=_none_alone(len(whole), backward))
    found: list[Sample] = []
    notes: list[str] = []
    together = by_chance = False
    size = None
    cured: dict[int, bool | None] = {}
    for index in bad[:_MAX_SEARCHED]:
        layout = batches.layout_of(whole[index], time_comes_first(subject.model))
        size = size or (layout.size if layout else None)
        if layout is None or layout.size < 2 or batches.is_empty(whole[index]):
            notes.append(_no_samples(whole[index], layout))
            continue
        parts, _ = part_runs(subject, precision, index, whole[index], layout, backward)
        numbers, note, jointly = _search(parts)
        notes += [note] if note else []
        together = together or jointly
        cured[index] = _is_finite_without(parts, numbers)
        by_chance = by_chance or (bool(numbers) and parts.draws and not _fails_whatever_is_drawn(parts, numbers))
        found += [Sample(index, number, batches.identity(whole[index], number, layout.size)) for number in numbers]
    searched = bad[:_MAX_SEARCHED]
    explained = {sample.microbatch for sample in found}
    return Blame(
        microbatches=tuple(bad),
        samples=tuple(found),
        batch_size=size,
        cured=_together_cured(cured.values()) if explained == set(bad) else None,
        note=None if explained == set(searched) else next(iter(notes), None),
        together=together,
        by_chance=by_chance,
    )


def _none_alone(count: int, backward: bool) -> str:
    if backward and count > 1:
        return "no microbatch fails alone: only the accumulated gradients are bad"
    if count > 1:
        return "no microbatch fails when it is run alone: it takes what an earlier one leaves behind, or other numbers"
    return "the microbatch does not fail when it is run again: what the step is given differs from run to run"


def _no_samples(batch: Any, layout: Layout | None) -> str:
    if batches.is_empty(batch):
        return "the microbatch is empty: it holds a tensor without any sample"
    return "the microbatch has no samples to tell apart" if layout is None else "the microbatch has one sample"


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
        return alone, None, False
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


def _together_cured(found: Iterable[bool | None]) -> bool | None:
    values = list(found)
    return None if None in values else all(values)


def _fails_whatever_is_drawn(parts: PartRuns, numbers: Sequence[int]) -> bool:
    """Whether the samples also fail with other random numbers: those that begin the run, not those of their places."""
    return any(parts.fails_with_other_numbers([number]) for number in numbers)
