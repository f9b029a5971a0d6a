"""What tells the sick runs of a sweep from the healthy ones."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gradtrend.model.runlog import Scalar


class ContrastKind(StrEnum):
    """What of a hyperparameter parts the runs, and so by which test."""

    NUMBER = "number"  # its size: Mann-Whitney's U test
    VALUE = "value"  # one value against all others: Fisher's exact test
    PRESENCE = "presence"  # that it is logged at all: Fisher's exact test


class Outcome(StrEnum):
    """What the comparison of sick and healthy runs came to."""

    FOUND = "found"
    NOTHING_FOUND = "nothing-found"  # enough runs, and no hyperparameter tells them apart
    TOO_FEW_RUNS = "too-few-runs"  # no hyperparameter could have told them apart, however its values lie
    NOTHING_VARIES = "nothing-varies"  # the same in all runs
    NOTHING_LOGGED = "nothing-logged"
    ONE_SIDED = "one-sided"  # all runs are sick, or none is, or there are none


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the runs: how many there are and how many of them are sick."""

    sick: int
    runs: int


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, median and largest value of a number."""

    least: float
    median: float
    most: float


@dataclass(frozen=True, slots=True)
class Contrast:
    """One hyperparameter and how it parts the runs; `names` are all that part them in the same way, the plainest first.

    `p` is that of its test, times the number of tests where it had several; `corrected_p` is corrected for all
    hyperparameters that were tested (Holm), so that with `corrected_p` up to 0.05 for each that is named, the odds that
    any is named by chance are at most one in twenty.

    `inside` are the runs on the side where the sick ones lie more often than elsewhere (above or below `threshold`, as
    `sick_are` says; those with `value`, or with the hyperparameter), `outside` the other ones that have it. For a
    `VALUE` it may be the other way round: where fewer of those with `value` are sick. For a `NUMBER`, `sick` and
    `healthy` are the spreads of its values; `threshold`, `inside` and `outside` are None where no cut parts the runs
    well.
    """

    names: tuple[str, ...]
    kind: ContrastKind
    p: float
    corrected_p: float
    inside: Part | None = None
    outside: Part | None = None
    value: Scalar = None
    threshold: float | None = None
    sick_are: str | None = None  # "above" or "below"
    sick: Spread | None = None
    healthy: Spread | None = None


@dataclass(frozen=True, slots=True)
class Contrasts:
    """The hyperparameters of a sweep by how well they tell its sick runs from the healthy ones.

    `ranked` are all that were tested, the surest first; `found` those below `level`. Of `logged` names, `constant` have
    one value in all runs, and `rare` have none that enough runs share to be tested; names that always go together are
    tested once.
    """

    outcome: Outcome
    runs: int
    sick: int
    ranked: tuple[Contrast, ...] = ()
    tested: int = 0
    logged: int = 0
    constant: int = 0
    rare: int = 0
    level: float = 0.05

    @property
    def healthy(self) -> int:
        """How many runs are not sick."""
        return self.runs - self.sick

    @property
    def found(self) -> tuple[Contrast, ...]:
        """Those that tell sick from healthy runs by more than chance."""
        return tuple(contrast for contrast in self.ranked if contrast.corrected_p <= self.level)
