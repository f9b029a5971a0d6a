"""Many runs: what is kept of each, and of all together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gradtrend.model.many.badness import badness, is_sick, is_well
from gradtrend.model.runlog import Hyperparameters
from gradtrend.model.words import Severity, Verdict


@dataclass(frozen=True, slots=True)
class Record:
    """One run of a scan.

    `verdict` is None where the run could not be read; `failure` then says why. `severity` is that of its worst
    finding. `brief` is why in about four words, `why` the message of the finding that tells. `rules` are the ids of its
    findings, `next` those of the actions, in order. `metric` is the gradient norm that decided, of a run without one
    the loss, with its `points`, `last_step`, usual level, peak and last value;
    `nonfinite_step` is the first step of a NaN or inf in norm or loss. `size` is that of its logs in bytes, `modified`
    the newest of their times in seconds since the epoch. `hyperparameters` are what its settings say, by name.
    """

    run: str
    name: str | None = None
    verdict: Verdict | None = None
    confidence: float | None = None
    severity: Severity | None = None
    onset_step: int | None = None
    brief: str = ""
    why: str = ""
    rules: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    metric: str | None = None
    points: int = 0
    last_step: int | None = None
    baseline: float | None = None
    peak: float | None = None
    last: float | None = None
    last_loss: float | None = None
    nonfinite_step: int | None = None
    cause: str | None = None
    formats: tuple[str, ...] = ()
    size: int | None = None
    modified: float | None = None
    hyperparameters: Hyperparameters = ()
    failure: str | None = None
    hint: str | None = None

    @property
    def is_sick(self) -> bool:
        """Whether something is wrong with the training itself."""
        return is_sick(self.verdict, self.severity)

    @property
    def is_well(self) -> bool:
        """Whether there is nothing to look at: judged, not sick, and no warning."""
        return is_well(self.verdict, self.severity)


def by_badness(records: Sequence[Record]) -> list[Record]:
    """The worst first, and else in their order."""
    return sorted(records, key=lambda record: badness(record.verdict, record.severity, record.confidence))


def counted(records: Sequence[Record]) -> dict[Verdict | None, int]:
    """How many runs have each verdict, the worst first; None counts those that could not be read."""
    counts = Counter(record.verdict for record in records)
    return {verdict: counts[verdict] for verdict in (*Verdict, None) if counts[verdict]}
