"""Whose gradient it is: the norm of each microbatch alone, and of each sample of the largest one."""

from __future__ import annotations

import math
from statistics import median

from gradtrend.model.replay import Blame, Sample, Share
from gradtrend.replay.run.step import run_step
from gradtrend.replay.search import batches
from gradtrend.replay.search.samples import part_runs, time_comes_first
from gradtrend.replay.subject.subject import Subject

_MAX_SAMPLES_RUN = 64  # each is one run of the step
# Norms of single samples of one batch lie within a factor of some 3 of their median; ten times is another kind.
_OUTLIER = 10.0


def shares(subject: Subject, precision: str) -> tuple[Share, ...]:
    """Microbatches, then the samples of the one with the largest norm; each norm is of that part's loss alone."""
    whole = subject.batches_in(precision)
    found = []
    for index, batch in enumerate(whole):
        norm = run_step(subject, precision, only=[(index, batch)]).gradient_norm
        if norm is not None:
            found.append(Share(index, None, norm))
    if not found:
        return ()
    index = max(found, key=lambda share: share.norm if math.isfinite(share.norm) else math.inf).microbatch
    layout = batches.layout_of(whole[index], time_comes_first(subject.model))
    if layout is None or not 1 < layout.size <= _MAX_SAMPLES_RUN:
        return tuple(found)
    parts = part_runs(subject, precision, index, whole[index], layout, backward=True)
    for number in range(layout.size):
        result = parts.result_of([number])
        if result is not None and result.gradient_norm is not None:
            name = batches.identity(whole[index], number, layout.size)
            found.append(Share(index, number, result.gradient_norm, name))
    return tuple(found)


def outliers(found: tuple[Share, ...]) -> Blame | None:
    """The microbatches and samples whose norm is far above that of the others; None where none is."""
    groups = [[s for s in found if s.sample is None], [s for s in found if s.sample is not None]]
    microbatches, samples = (_far_above(group) for group in groups)
    if not microbatches and not samples:
        return None
    return Blame(
        microbatches=tuple(dict.fromkeys(share.microbatch for share in (*microbatches, *samples))),
        samples=tuple(Sample(s.microbatch, s.sample, s.identity) for s in samples if s.sample is not None),
        batch_size=len(groups[1]) or None,
    )


def _far_above(group: list[Share]) -> list[Share]:
    if len(group) < 3:  # of two, neither is the usual one
        return []
    typical = median(share.norm for share in group)
    far = [share for share in group if share.norm > _OUTLIER * typical]
    return far if len(far) <= len(group) // 2 else []
