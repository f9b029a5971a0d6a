"""Which microbatches fail, and which samples in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtrend.model.replay import Blame, Sample
from gradtrend.replay.run.step import run_step
from gradtrend.replay.search import batches
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
        return Blame((), note="no microbatch fails alone: only the accumulated gradients are bad")
    found: list[Sample] = []
    notes: list[str] = []
    together = False
    size = None
    for index in bad[:_MAX_SEARCHED]:
        layout = batches.layout_of(whole[index], time_comes_first(subject.model))
        size = size or (layout.size if layout else None)
        if layout is None or layout.size < 2:
            notes.append("the microbatch has no samples to tell apart")
            continue
        parts, _ = part_runs(subject, precision, index, whole[index], layout, backward)
        numbers, note, jointly = _search(parts)
        notes += [note] if note else []
        together = together or jointly
        found += [Sample(index, number, batches.identity(whole[index], number, layout.size)) for number in numbers]
    searched = bad[:_MAX_SEARCHED]
    explained = {sample.microbatch for sample in found}
    return Blame(
        microbatches=tuple(bad),
        samples=tuple(found),
        batch_size=size,
        cured=_cured(subject, precision, whole, found, backward) if explained == set(bad) else None,
        note=None if explained == set(searched) else next(iter(notes), None),
        together=together,
    )


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


def _cured(
    subject: Subject, precision: str, whole: Sequence[Any], found: Sequence[Sample], backward: bool
) -> bool | None:
    """Whether the step, all its microbatches, is finite without these samples; None where it cannot be run so."""
    left = []
    for index, batch in enumerate(whole):
        layout = batches.layout_of(batch, time_comes_first(subject.model))
        bad = {sample.index for sample in found if sample.microbatch == index}
        if not bad or layout is None:
            left.append((index, batch))
            continue
        rest = [number for number in range(layout.size) if number not in bad]
        if rest:
            left.append((index, batches.take(batch, rest, layout)))
    if not left:
        return None
    try:
        return run_step(subject, precision, only=left, backward=backward).finite
    except Exception:  # the user's code, given a batch of a size it never saw
        return None
