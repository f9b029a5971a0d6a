"""Which samples of a microbatch make it fail: alone, or only together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradtrend.replay.run.randomness import Tape, playing, recording
from gradtrend.replay.run.step import StepResult, run_step
from gradtrend.replay.search import batches
from gradtrend.replay.search.batches import Layout
from gradtrend.replay.subject.subject import Subject

_MAX_RUNS = 200  # of the step, to find the samples of a microbatch: minutes for a step of a second


@dataclass(slots=True)
class PartRuns:
    """Runs of parts of one microbatch, each sample with the random numbers that it had in the whole.

    `exhausted`: there were not enough runs to search all of it.
    """

    subject: Subject
    precision: str
    microbatch: int
    batch: Any
    layout: Layout
    backward: bool
    tape: Tape
    refused: list[str] = field(default_factory=list)
    runs: int = 0
    exhausted: bool = False

    def result_of(self, indices: Sequence[int], repeated: bool = True) -> StepResult | None:
        """The run of these samples alone, None where the model refuses them.

        BatchNorm refuses a single sample, a fixed batch size any part: it is then given them twice, or as many times as
        fill the batch, unless `repeated` forbids that.
        """
        attempts = [list(indices)]
        if repeated:
            attempts += [[*indices, *indices], [indices[place % len(indices)] for place in range(self.layout.size)]]
        for attempt in attempts:
            try:
                return self._run(attempt)
            except Exception as error:  # the user's code, given a batch of a size it never saw
                refusal = f"{type(error).__name__}: {error}"
        self.refused.append(refusal)
        return None

    def fails(self, indices: Sequence[int], repeated: bool = True) -> bool:
        """Whether these samples alone fail."""
        result = self.result_of(indices, repeated) if indices else None
        return result is not None and not result.finite

    @property
    def draws(self) -> bool:
        """Whether the step draws random numbers."""
        return bool(self.tape.drawn or self.tape.draws.by_site)

    def fails_with_other_numbers(self, indices: Sequence[int]) -> bool:
        """Whether these samples alone fail with the numbers of the first places of the batch in place of their own."""
        others = [(index + 1) % self.layout.size for index in indices]
        try:
            return not self._run(indices, others).finite
        except Exception:  # the user's code, given a batch of a size it never saw
            return True

    def _run(self, indices: Sequence[int], drawn: Sequence[int] | None = None) -> StepResult:
        """The run of these samples; `drawn` are those whose random numbers they are given, by themselves their own."""
        self.runs += 1
        part = batches.take(self.batch, indices, self.layout)
        only = [(self.microbatch, part)]
        watch = playing(self.tape, indices if drawn is None else drawn)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a part of the batch, which nobody trains on
            return run_step(self.subject, self.precision, only=only, backward=self.backward, watch=watch)


def part_runs(subject: Subject, precision: str, index: int, batch: Any, layout: Layout, backward: bool) -> PartRuns:
    """What runs parts of this microbatch, after one run of the whole of it. Raises what the model raises."""
    tape = Tape(layout.size)
    run_step(subject, precision, only=[(index, batch)], backward=backward, watch=recording(tape))
    return PartRuns(subject, precision, index, batch, layout, backward, tape)


def failing_alone(parts: PartRuns) -> list[int]:
    """The samples that fail alone: groups that fail are halved until they are single samples.

    One group is followed to its end before the next, so that what is found when the runs are used up are samples.
    """
    found: list[int] = []
    groups = [list(range(parts.layout.size))]
    while groups:
        group = groups.pop(0)
        if len(group) == 1:
            found.append(group[0])
            continue
        if parts.runs >= _MAX_RUNS:
            parts.exhausted = True
            continue
        groups = [half for half in _halved(group) if parts.fails(half)] + groups
    good = next((number for number in range(parts.layout.size) if number not in found), None)
    if found and good is not None and not parts.exhausted and parts.fails([good]):
        return []  # any single sample fails: a loss over pairs has none, a deviation of one is 0
    return sorted(found)


def failing_together(parts: PartRuns) -> list[int]:
    """The samples that fail only with one another, all of them; [] where no part of the batch fails.

    A smallest set is found by leaving out parts (Zeller and Hildebrandt 2002, "ddmin"); without its samples the search
    goes on, and who fails with one of its samples alone belongs to them too. None is given twice: two equal samples
    would fail for that.
    """
    found: list[int] = []
    left = list(range(parts.layout.size))
    end = parts.runs + _MAX_RUNS
    while parts.runs < end and parts.fails(left, repeated=False):
        smallest = _smallest(parts, left, end)
        if len(smallest) == parts.layout.size:
            return []
        alike = [n for n in left if n not in smallest and parts.runs < end and _fails_with(parts, n, smallest)]
        found += [*smallest, *alike]
        left = [number for number in left if number not in found]
    return sorted(found)


def _fails_with(parts: PartRuns, number: int, smallest: list[int]) -> bool:
    """Whether a sample stands for one of a set that fails together."""
    return parts.fails(sorted([number, *smallest[1:]]), repeated=False)


def _smallest(parts: PartRuns, present: list[int], end: int) -> list[int]:
    pieces = 2
    while len(present) > 2 and parts.runs < end:
        smaller = _first_smaller(parts, present, pieces, end)
        if smaller is not None:
            present, pieces = smaller, max(2, pieces - 1)
        elif pieces >= len(present):
            break
        else:
            pieces = min(len(present), 2 * pieces)
    return present


def _first_smaller(parts: PartRuns, present: list[int], pieces: int, end: int) -> list[int] | None:
    """The samples without one of so many pieces of them, where they still fail."""
    step = max(1, len(present) // pieces)
    for start in range(0, len(present), step):
        rest = present[:start] + present[start + step :]
        if len(rest) > 1 and parts.runs < end and parts.fails(rest, repeated=False):
            return rest
    return None


def time_comes_first(model: torch.nn.Module) -> bool:
    """Whether a layer of the model takes (time, batch, ...): recurrent ones, and attention, say so themselves."""
    return any(getattr(module, "batch_first", True) is False for module in model.modules())


def _halved(group: list[int]) -> list[list[int]]:
    middle = len(group) // 2
    return [part for part in (group[:middle], group[middle:]) if part]
