"""Which microbatch fails, and which sample in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gradtrend.model.replay import Blame, Sample
from gradtrend.replay.run.step import run_step
from gradtrend.replay.search import batches
from gradtrend.replay.subject.subject import Subject

_MAX_SAMPLES = 8  # when more parts of the batch than these fail, the samples are not what is special


def blame(subject: Subject, precision: str, backward: bool) -> Blame:
    """The microbatches that fail alone, and by bisection the samples of the first. Raises what the model raises.

    `backward` says whether the failure needs the backward pass to show.
    """
    with subject.in_type_of(precision) as present:
        whole = list(present)
    bad = [index for index, batch in enumerate(whole) if _fails(subject, precision, index, batch, backward)]
    if not bad:
        return Blame((), note="no microbatch fails alone: only the accumulated gradients are bad")
    index = bad[0]
    size = batches.batch_size(whole[index])
    if size is None or size < 2:
        return Blame(tuple(bad), batch_size=size, note="the microbatch has no samples to tell apart")
    search = _Bisection(subject, precision, index, whole[index], size, backward)
    found = search.bad_samples()
    note = search.note(found)
    if note is not None:
        return Blame(tuple(bad), batch_size=size, note=note)
    rest = [number for number in range(size) if number not in found]
    samples = tuple(Sample(index, number, batches.identity(whole[index], number, size)) for number in found)
    return Blame(tuple(bad), samples, size, cured=not search.fails(rest))


def _fails(subject: Subject, precision: str, index: int, batch: Any, backward: bool) -> bool:
    return not run_step(subject, precision, only=[(index, batch)], backward=backward).finite


@dataclass(slots=True)
class _Bisection:
    subject: Subject
    precision: str
    microbatch: int
    batch: Any
    size: int
    backward: bool
    refused: list[str] = field(default_factory=list)

    def bad_samples(self) -> list[int]:
        """The samples that fail alone: groups that fail are halved until they are single samples.

        Gives more than `_MAX_SAMPLES` groups' worth where so many parts fail that no sample is special.
        """
        groups = [list(range(self.size))]
        while any(len(group) > 1 for group in groups) and len(groups) <= _MAX_SAMPLES:
            halves = [half for group in groups for half in _halved(group)]
            groups = [half for half in halves if self.fails(half)]
        return [number for group in groups for number in group]

    def fails(self, indices: Sequence[int]) -> bool:
        """Whether these samples alone fail. BatchNorm refuses a single one: it is then given twice."""
        attempts = [indices] if len(indices) > 1 else [indices, [*indices, *indices]]
        for attempt in attempts:
            try:
                return self._run(attempt)
            except Exception as error:  # the user's code, given a batch of a size it never saw
                refusal = f"{type(error).__name__}: {error}"
        self.refused.append(refusal)
        return False

    def _run(self, indices: Sequence[int]) -> bool:
        part = batches.take(self.batch, indices, self.size)
        return _fails(self.subject, self.precision, self.microbatch, part, self.backward)

    def note(self, found: list[int]) -> str | None:
        """Why no sample can be named, or None."""
        if len(found) == self.size:
            return "every part of the batch fails alone"
        if len(found) > _MAX_SAMPLES:
            return f"more than {_MAX_SAMPLES} of {self.size} samples fail alone"
        if found:
            return None
        if self.refused:
            return f"the step does not run on part of the batch ({self.refused[0][:120]})"
        return "no part of the batch fails alone: it takes the samples together"


def _halved(group: list[int]) -> list[list[int]]:
    middle = len(group) // 2
    return [part for part in (group[:middle], group[middle:]) if part]
