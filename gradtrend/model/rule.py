"""A rule as data. The files in `rules/` are read into these types; the measures they name are code in `detect`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gradtrend.model.words import Cause, Role, Severity, Trend, Verdict


class Scope(StrEnum):
    """What a rule is evaluated on: each total, each per-layer norm, the run as a whole, or the losses that are logged
    to the end of the run.
    """

    RUN = "run"
    LAYER = "layer"
    ONCE = "once"
    FURTHEST = "furthest"


class Missing(StrEnum):
    """What happens where a measure cannot be taken: the rule is not checked, or the condition is passed over."""

    SKIP = "skip"
    PASS = "pass"


@dataclass(frozen=True, slots=True)
class Condition:
    """One measure and the limit it must be above or below; exactly one of the two is set. `why` gives the reason for
    the limit, `meaning` what the measure is, in words and with its unit.
    """

    measure: str
    why: str
    above: float | None = None
    below: float | None = None
    missing: Missing = Missing.SKIP
    meaning: str = ""

    @property
    def limit(self) -> float:
        """The number compared with."""
        limit = self.above if self.above is not None else self.below
        assert limit is not None
        return limit

    def holds(self, observed: float) -> bool:
        """Whether an observed value is on the firing side of the limit."""
        return observed > self.limit if self.above is not None else observed < self.limit


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of several ways for a rule to fire: what must hold beside the conditions that always must."""

    name: str
    when: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """For how long the change must have lasted: so many points, or such a share of the run; None is no demand."""

    points: int | None = None
    fraction: float | None = None


# The circumstances of a run that are evidence for an action. Names only: who prints a rule knows no run to ask them of.
EVIDENCE = frozenset(
    ["lr_warming_up", "lr_just_switched", "low_precision", "clipping_off", "has_capture", "has_overflow_report"]
)

# Those of a replay, for the actions of rules on replayed steps.
REPLAY_CIRCUMSTANCES = frozenset(
    ["sample_named", "hidden_in_forward", "layer_stands_out", "left_behind", "not_deterministic", "on_a_gpu",
     "precision_unknown", "failure_expected", "nothing_expected", "other_ranks", "may_be_run"]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Action:
    """A next step for the user.

    `id` is one of `ACTION_IDS`; None in files of users that are older than those. `when` names a circumstance of the
    run: the action is dropped where it does not hold, and comes first where it is one of `EVIDENCE`.
    `text_for` holds the wording for a framework (`lightly-train` ...) in place of `text`. Both are templates over the
    run's values.
    """

    text: str
    when: str | None = None
    text_for: Mapping[str, str] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Shows:
    """Where a known cause can show at all: in logs of these frameworks or kinds of them, with one of these signs in
    what they say, with a metric whose name one of these patterns finds. What is empty asks for nothing.
    """

    frameworks: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


# The note that rules on a replayed step select: no log holds it, only a replay brings findings of them.
REPLAY_NOTE = "replay"


class ReplayTopic(StrEnum):
    """What of a replay a rule is for: the cause of a confirmed step, or another outcome, in the words of a replay.

    The words of `ReplayCause` and `Outcome` in `model.replay` again: an enumeration cannot take over the members of
    others, and rules are read on every call, which loads nothing of replays. A test holds them together.
    """

    DATA = "data"
    PRECISION_RANGE = "precision-range"
    LOSS_SCALE = "loss-scale"
    FORWARD_OPERATOR = "forward-operator"
    BACKWARD_OPERATOR = "backward-operator"
    BAD_STATE = "bad-state"
    OTHER_RANK = "other-rank"
    EXPLOSION = "explosion"
    NORM_OVERFLOW = "norm-overflow"
    FLAKY = "flaky"
    NOT_REPRODUCED = "not-reproduced"
    CANNOT_RUN = "cannot-run"
    INSPECTED = "inspected"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    `role` and `scope`, or `note` (an observation made while reading) or `replay` say what it is applied to. It fires
    where all conditions of `when`, and all of one alternative if there are any, hold. `unless` lists ids that silence
    it. A `trend`, `cause` or `verdict` is what it says of the series, the collapse or the run; a rule that
    `forbids_verdict` makes the trend undetermined. `blind` says what it does not see. A known cause (GT7xx) has
    the public `threads` that it comes from, and `shows` where it can be.
    """

    id: str
    name: str
    severity: Severity
    summary: str
    message: str
    help: str = ""
    blind: str = ""
    role: Role = Role.GRAD_NORM
    scope: Scope = Scope.RUN
    note: str | None = None
    replay: ReplayTopic | None = None
    trend: Trend | None = None
    verdict: Verdict | None = None
    cause: Cause | None = None
    forbids_verdict: bool = False
    when: tuple[Condition, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    hold: Hold = Hold()
    unless: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    shows: Shows = Shows()
    threads: tuple[str, ...] = ()
