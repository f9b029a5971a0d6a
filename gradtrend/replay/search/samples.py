"""Which samples of a microbatch make it fail: alone, or only together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradtrend.replay.run.randomness import Playing, Recording, Tape
from gradtrend.replay.run.step import StepResult, run_step
from gradtrend.replay.search import batches
from gradtrend.replay.search.batches import Layout
from gradtrend.replay.subject.subject import Subject

MAX_SAMPLES = 8  # when more parts of the batch than these fail, the samples are not what is special
_MAX_RUNS = 200  # of the step, to find samples that fail only together: minutes for a step of a second


@dataclass(slots=True)
class PartRuns:
    """Runs of parts of one microbatch, each sample with the random numbers that it had in the whole."""

    subject: Subject
    precision: str
    microbatch: int
    batch: Any
    layout: Layout
    backward: bool
    tape: Tape
    refused: list[str] = field(default_factory=list)
    runs: int = 0

    def result_of(self, indices: Sequence[int]) -> StepResult | None:
        """The run of these samples alone, None where the model refuses them.

        BatchNorm refuses a single sample, a fixed batch size any part: it is then given them twice, or as many times as
        fill the batch.
        """
        filled = [indices[place % len(indices)] for place in range(self.layout.size)]
        for attempt in (list(indices), [*indices, *indices], filled):
            try:
                return self._run(attempt)
            except Exception as error:  # the user's code, given a batch of a size it never saw
                refusal = f"{type(error).__name__}: {error}"
        self.refused.append(refusal)
        return None

    def fails(self, indices: Sequence[int]) -> bool:
        """Whether these samples alone fail."""
        result = self.result_of(indices) if indices else None
        return result is not None and not result.finite

    def _run(self, indices: Sequence[int]) -> StepResult:
        self.runs += 1
        part = batches.take(self.batch, indices, self.layout)
        only = [(self.microbatch, part)]
        watch = Playing(self.tape, indices) if self.tape.drawn else None
        return run_step(self.subject, self.precision, only=only, backward=self.backward, watch=watch)


def part_runs(
    subject: Subject, precision: str, index: int, batch: Any, layout: Layout, backward: bool
) -> tuple[PartRuns, StepResult]:
    """What runs parts of this microbatch, and the result of the whole of it. Raises what the model raises."""
    tape = Tape(layout.size)
    whole = run_step(subject, precision, only=[(index, batch)], backward=backward, watch=Recording(tape))
    return PartRuns(subject, precision, index, batch, layout, backward, tape), whole


def failing_alone(parts: PartRuns) -> list[int]:
    """The samples that fail alone: groups that fail are halved until they are single samples.

    Gives more than `MAX_SAMPLES` where so many parts fail that no sample is special.
    """
    groups = [list(range(parts.layout.size))]
    while any(len(group) > 1 for group in groups) and len(groups) <= MAX_SAMPLES:
        halves = [half for group in groups for half in _halved(group)]
        groups = [half for half in halves if parts.fails(half)]
    return [number for group in groups for number in group]


def failing_together(parts: PartRuns) -> list[int]:
    """A smallest set that fails and of which none can be left out (Zeller and Hildebrandt 2002, "ddmin").

    All samples where leaving out any part cures the step, or where the runs that it takes are too many.
    """
    present, pieces = list(range(parts.layout.size)), 2
    end = parts.runs + _MAX_RUNS
    while len(present) > 1 and parts.runs < end:
        smaller = _first_smaller(present, pieces, lambda rest: parts.runs < end and parts.fails(rest))
        if smaller is not None:
            present, pieces = smaller, max(2, pieces - 1)
        elif pieces >= len(present):
            return present
        else:
            pieces = min(len(present), 2 * pieces)
    return list(range(parts.layout.size)) if parts.runs >= end else present


def _first_smaller(present: list[int], pieces: int, fails: Callable[[list[int]], bool]) -> list[int] | None:
    """The samples without one of so many pieces of them, where they still fail."""
    step = max(1, len(present) // pieces)
    for start in range(0, len(present), step):
        rest = present[:start] + present[start + step :]
        if rest and fails(rest):
            return rest
    return None


def time_comes_first(model: torch.nn.Module) -> bool:
    """Whether a layer of the model takes (time, batch, ...): recurrent ones, and attention, say so themselves."""
    return any(getattr(module, "batch_first", True) is False for module in model.modules())


def _halved(group: list[int]) -> list[list[int]]:
    middle = len(group) // 2
    return [part for part in (group[:middle], group[middle:]) if part]
