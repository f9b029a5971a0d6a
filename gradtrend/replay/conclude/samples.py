"""Which microbatches and samples are to blame, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from statistics import median

from gradtrend.model.replay import Blame, Sample, Share
from gradtrend.replay.conclude.words import numbers

_SHOWN = 3  # samples that a sentence names


def blamed(blame: Blame | None) -> list[str]:
    """Of a step that fails, the samples first."""
    if blame is None:
        return []
    sentences = [_samples(blame)] if blame.samples else []
    if blame.microbatches:
        many = len(blame.microbatches) > 1
        sentences.append(
            f"Microbatch{'es' if many else ''} {numbers(blame.microbatches)} fail{'' if many else 's'} alone."
        )
    if blame.note:
        sentences.append(f"{blame.note[0].upper()}{blame.note[1:]}.")
    return sentences


def carried(blame: Blame | None, shares: Sequence[Share]) -> Iterator[str]:
    """Whose gradient an explosion is."""
    if blame is None:
        if len(shares) > 1:
            yield "No microbatch and no sample stands out: all of the batch has large gradients."
        return
    if len({share.microbatch for share in shares}) > 1 and blame.microbatches:
        yield f"The largest norm is that of microbatch {numbers(blame.microbatches)}."
    for sample in blame.samples[:_SHOWN]:
        beside = {s.sample: s.norm for s in shares if s.sample is not None and s.microbatch == sample.microbatch}
        of = f" of microbatch {sample.microbatch}" if len({share.microbatch for share in shares}) > 1 else ""
        yield (
            f"Sample {_name(sample)}{of} has a gradient norm of {beside[sample.index]:.3g} when its loss is the only "
            f"one (not averaged with others); the median of its microbatch is {median(beside.values()):.3g}."
        )


def _samples(blame: Blame) -> str:
    many = len(blame.samples) > 1
    text = f"Sample{'s' if many else ''} {_named(blame)} make{'' if many else 's'} it fail"
    if blame.together:
        text += ", only together"
    if blame.by_chance:
        text += f", with the random numbers that {'they' if many else 'it'} drew"
    if blame.cured is None:
        return f"{text}."
    return f"{text}; without {'them' if many else 'it'} the step {'is finite' if blame.cured else 'still fails'}."


def _named(blame: Blame) -> str:
    """`3 (c.png) of 8`, or by microbatch: `2, 5 of microbatch 0 and 1 of microbatch 3`."""
    microbatches = {sample.microbatch for sample in blame.samples}
    left = len(blame.samples) - _SHOWN
    more = f" and {left} more" if left > 0 else ""
    shown = list(islice(blame.samples, _SHOWN))
    if microbatches == {0}:
        return f"{', '.join(map(_name, shown))}{more} of {blame.batch_size}"
    parts = [
        f"{', '.join(map(_name, samples))} of microbatch {number}"
        for number, samples in groupby(shown, key=lambda sample: sample.microbatch)
    ]
    return " and ".join(parts) + more


def _name(sample: Sample) -> str:
    """`3 (img_0030.png)`."""
    return f"{sample.index} ({sample.identity})" if sample.identity else str(sample.index)
