"""What was read of one run, before any judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gradtrend.model.capture import Capture, OverflowReport
from gradtrend.model.precision import is_float16

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl


@dataclass(frozen=True, slots=True)
class Skipped:
    """A piece of a source that could not be used.

    `line` is the 1-based line of a text file, `offset` the byte offset in a binary one.
    """

    reason: str
    line: int | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One log that was read; `path` is relative to the run folder. `skipped` holds the first 100 only. `size` in bytes
    and `modified` in seconds since the epoch are those of its file; None for what is none, or holds other runs too.
    """

    format: str
    path: str
    series: int
    points: int
    skipped: tuple[Skipped, ...] = ()
    skipped_count: int = 0
    size: int | None = field(default=None, compare=False)
    modified: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Note:
    """An observation made while reading that a GT5xx rule turns into a finding.

    `kind` is what the rule selects (`steps-go-back`, `sources-disagree`, `step-base`, `truncated`, `no-steps` ...).
    `details` is a template value for the rule's message.
    """

    kind: str
    message: str
    metric: str | None = None
    first_step: int | None = None
    last_step: int | None = None
    measures: tuple[tuple[str, float], ...] = ()
    details: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the run was set up, as far as its own files say; None is "not known"."""

    framework: str | None = None
    precision: str | None = None
    learning_rate: float | None = None
    warmup_steps: int | None = None
    gradient_clip: float | None = None
    batch_size: int | None = None
    accumulation: int | None = None
    optimizer: str | None = None

    @property
    def in_float16(self) -> bool | None:
        """Whether the run trained in float16."""
        return None if self.precision is None else is_float16(self.precision)


Scalar = bool | int | float | str | None  # the value of a hyperparameter
Hyperparameters = tuple[tuple[str, Scalar], ...]
LEFT_OUT = "(left out)"  # stands for the value of a hyperparameter that looks like a secret

# What lines of a log may mention beside its metrics, of what a rule or an order of actions can depend on.
SIGNS = frozenset(
    {
        "float16", "norm-not-finite", "scale-at-minimum", "blames-the-rate", "attention-warning", "ctc",
        "stops-on-nonfinite", "rows-of-nan",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunLog:
    """One run as read. `run` is its path; `name` is what the store that it is of calls it, if it is of one; `folder` is
    where its captures lie, which its path need not be: `train.log#2`, `mlflow.db/3f2a`.

    `table` has one row a logged value, in the order logged within each series: `series` (metric name),
    `role` (a `Role` value), `layer` (None for a total), `step` (i64), `value` (f64; NaN and inf kept), `time` (f64
    seconds since the epoch or null), `line` (i64, 1-based, or null), `segment` (i32 from 0; it grows by one where the
    steps of a series go back, that is after a resume or an overwrite).

    `losses` are the metrics that log the whole training loss (of batches, averaged, evaluated), the one with the most
    points first; empty where there is none, or where all are terms of a loss that is not logged as a whole. `reasons`
    says of each metric why it has its role. `signs` are names out of `SIGNS` for what the lines of the logs mention.

    `hyperparameters` are all that the run was given, as its files spell them: sorted by name (the nested path joined by
    `/`), each with its value; a short list as its JSON text. Empty unless `load_run` was asked for them.
    """

    run: str
    table: pl.DataFrame
    sources: tuple[Source, ...] = ()
    notes: tuple[Note, ...] = ()
    captures: tuple[Capture, ...] = ()
    overflow_reports: tuple[OverflowReport, ...] = ()
    settings: Settings = field(default_factory=Settings)
    signs: frozenset[str] = frozenset()
    losses: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    folder: Path | None = None
    hyperparameters: Hyperparameters = ()


def rows_that_count(steps: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """(n,) mask of the rows of a series, in the order logged, that no later row overwrites.

    A row counts when its step is below every later step: each step once, with its last value, and nothing of what an
    earlier segment logged beyond the point from which a later one went on.
    """
    import numpy as np

    counts = np.ones(len(steps), dtype=bool)
    counts[:-1] = steps[:-1] < np.minimum.accumulate(steps[::-1])[::-1][1:]
    return counts
