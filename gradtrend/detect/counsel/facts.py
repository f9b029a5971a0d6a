"""What is known of a run that decides which action is likely to be the fix; each fact is asked for once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gradtrend.detect.curves.failure import (
    before_failure,
    failed_at,
    fails_for_good,
    rise_began,
    rows_before_failure,
)
from gradtrend.detect.curves.run import RunCurves
from gradtrend.detect.curves.terms import names_metric, speaks_of
from gradtrend.detect.frameworks import Framework, framework_of
from gradtrend.detect.rules.circumstances import kinds_of, lr_at
from gradtrend.model.finding import Finding
from gradtrend.model.words import Severity, Verdict

# A rate so low moves no weight of float32 by a digit that counts: whatever failed, this was not it.
MOVES_NOTHING = 1e-7
# Rows that a run has behind it before a failure: with fewer it never trained.
_TRAINED = 5
# Warnings of a norm or a loss that moves within what a healthy run does, or stands as that of a converged one. GT104 is
# not among them: a level that changed for good does not come back.
_COMES_BACK = frozenset({"GT105", "GT106", "GT107", "GT301", "GT302", "GT304", "GT306"})
_RISES = frozenset({"GT303", "GT307", "GT309"})  # of a loss
_LEFT = frozenset({"GT101", "GT307"})
_AT_ONCE = 2  # values of a loss of which the second is off already
_CLIMBS = 3  # rates, each above the one before
_CLIMB = 10  # rows of the learning rate that show whether it climbs
_GROUP_REWARD = r"(?:^|/)(?:reward_std|frac_reward_zero_std)$|^completions/"
_PREFERENCE = r"(?:^|/)(?:logps|logits|rewards)/(?:chosen|rejected|margins|accuracies)$"
_REWARD = r"(?i)(?<![a-z])(?:reward|return|score)s?(?![a-z])|surrogate|value_function|value_?loss|policy_?loss"


@dataclass(frozen=True)
class Facts:
    """A judged run: its curves, the verdict, and the findings."""

    run: RunCurves
    verdict: Verdict
    findings: Sequence[Finding]

    @property
    def name(self) -> str | None:
        """The name of the framework that wrote the log, as far as it is known."""
        return self.run.log.settings.framework

    @cached_property
    def framework(self) -> Framework:
        """That framework."""
        return framework_of(self.name)

    def kind(self, *kinds: str) -> bool:
        """Whether the log is of a network of one of these kinds."""
        return not kinds_of(self.run.log).isdisjoint(kinds)

    def sign(self, *names: str) -> bool:
        """Whether the log shows one of these signs."""
        return any(speaks_of(self.run.log, name) for name in names)

    def named(self, pattern: str) -> bool:
        """Whether a metric has such a name."""
        return names_metric(self.run.log, pattern)

    @cached_property
    def fired(self) -> frozenset[str]:
        """The ids of the rules that fired."""
        return frozenset(finding.rule for finding in self.findings)

    @cached_property
    def _serious(self) -> frozenset[str]:
        """The ids of the rules that warn of what is trained, not of what is logged."""
        serious = (f.rule for f in self.findings if f.severity is not Severity.INFO)
        return frozenset(rule for rule in serious if not rule.startswith("GT5"))

    @cached_property
    def alarmed(self) -> bool:
        """Whether a rule warns of what is trained."""
        return bool(self._serious)

    @cached_property
    def healthy(self) -> bool:
        """Whether the verdict says so, and no warning is of more than a norm or a loss that moves and comes back."""
        if self.verdict not in (Verdict.STABLE, Verdict.WARMUP_SPIKE):
            return False
        return self._serious <= _COMES_BACK and not self.run.nonfinite.loss_count

    @cached_property
    def went_wrong(self) -> bool:
        """Whether it failed, or a rule warns of more than what a healthy run does."""
        return (self.failed or self.alarmed) and not self.healthy

    # What is trained

    @cached_property
    def ctc(self) -> bool:
        """Whether a CTC loss is part of it."""
        return self.sign("ctc")

    @cached_property
    def detection(self) -> bool:
        """Whether boxes are regressed."""
        return self.kind("detection")

    @cached_property
    def group_rewards(self) -> bool:
        """Whether a policy learns from the spread of the rewards of a group (GRPO)."""
        return self.named(_GROUP_REWARD)

    @cached_property
    def preferences(self) -> bool:
        """Whether it learns from pairs of answers (DPO and its like)."""
        return self.named(_PREFERENCE)

    @cached_property
    def rewarded(self) -> bool:
        """Whether it is reinforcement learning."""
        return self.kind("control") or self.group_rewards or self.named(_REWARD)

    @cached_property
    def float16(self) -> bool:
        """Whether something in the log says that it trains in float16."""
        return self.sign("float16")

    # What happened

    @cached_property
    def failed(self) -> bool:
        """Whether norm or loss is NaN or inf to the end, or the trainer stopped for it."""
        if fails_for_good(self.run):
            return True
        said = self.sign("stops-on-nonfinite") or (not self.seen and self.sign("rows-of-nan"))
        return said and self.verdict is Verdict.UNDETERMINED

    @cached_property
    def seen(self) -> bool:
        """Whether a norm or a loss has a value at all."""
        return any(len(one) for one in (*self.run.norms, *self.run.losses))

    @cached_property
    def trained(self) -> bool:
        """Whether it trained before it failed."""
        return rows_before_failure(self.run) >= _TRAINED

    @cached_property
    def never_finite(self) -> bool:
        """Whether no norm, or without one no loss, was ever finite, and no loss anything but 0."""
        judged = self.run.norms or self.run.losses
        loss = self.run.loss
        lost = loss is None or not loss.finite_values.any()
        return lost and not any(one.finite.any() for one in judged)

    @cached_property
    def rose(self) -> bool:
        """Whether norm or loss rose away before the end or the failure."""
        if self.verdict in (Verdict.EXPLODING, Verdict.DIVERGING) or self.fired & _RISES:
            return True
        return rise_began(self.run) is not None

    @cached_property
    def left_at(self) -> int | None:
        """The first step at which norm or loss left its level for good, where the verdict says so."""
        if self.verdict not in (Verdict.EXPLODING, Verdict.DIVERGING):
            return None
        return min((f.first_step for f in self.findings if f.rule in _LEFT and f.first_step is not None), default=None)

    @cached_property
    def left_at_once(self) -> bool:
        """Whether a loss that diverges left its best level after its first value: no checkpoint lies before."""
        onsets = [
            seen.onset > int(loss.steps[:_AT_ONCE][-1])
            for loss in self.run.furthest
            if self.verdict is Verdict.DIVERGING and (seen := self.run.curve(loss).divergence) is not None
        ]
        return bool(onsets) and not any(onsets)

    @cached_property
    def sick(self) -> bool:
        """Whether the finite values alone say that it goes wrong, so that a step without one is not what matters."""
        return self.verdict in (Verdict.EXPLODING, Verdict.DIVERGING, Verdict.VANISHING) or bool(self.fired & _RISES)

    @cached_property
    def comes_and_goes(self) -> bool:
        """Whether values are not finite now and then, in the loss too; a last one is no more than another of them."""
        state = self.run.nonfinite
        return state.loss_count > 0 and state.came_back > 0 and state.collapse_points <= 1

    @cached_property
    def lr_climbing(self) -> float | None:
        """The learning rate, where it was still climbing when it failed or rose, or at the end."""
        values = before_failure(self.run, self.run.lr)
        onset = min(
            (f.first_step for f in self.findings if f.rule == "GT101" and f.first_step is not None), default=None
        )
        if self.run.lr is not None and onset is not None:
            values = self.run.lr.finite_values[self.run.lr.steps[self.run.lr.finite] <= max(onset, self._third_step)]
        values = values[-_CLIMB:]
        climbs = len(values) > 2 and values[-1] > values[0] > 0 and bool((np.diff(values) >= 0).all())
        return float(values[-1]) if climbs else None

    @cached_property
    def lr_below_target(self) -> float | None:
        """The learning rate where it was still climbing, also where it failed before there were rates to compare."""
        at, end = failed_at(self.run), self.run.warmup_end
        if self.lr_climbing is not None or at is None or end is None or end < at:
            return self.lr_climbing
        return lr_at(self.run.curve(None), at) or None

    @cached_property
    def rate_is_nothing(self) -> bool:
        """Whether the learning rate, where it failed, was too low to have done it: `MOVES_NOTHING`, or printed as 0."""
        rate = lr_at(self.run.curve(None), failed_at(self.run))
        return self.run.lr is not None and rate is not None and rate < MOVES_NOTHING

    @property
    def _third_step(self) -> int:
        """The step of the third learning rate: fewer do not climb."""
        lr = self.run.lr
        return 0 if lr is None or len(lr) < _CLIMBS else int(lr.steps[_CLIMBS - 1])

    @property
    def warming_up(self) -> bool:
        """Whether it was."""
        return self.lr_climbing is not None

    @cached_property
    def zero_loss(self) -> bool:
        """Whether the loss is logged as exactly 0 beside a norm that is not finite."""
        loss = self.run.loss
        if self.run.nonfinite.masked_share > 0:
            return True
        return bool(
            fails_for_good(self.run) and self.run.norms and loss is not None and len(loss) and loss.values[-1] == 0
        )

    @cached_property
    def bad_terms(self) -> tuple[str, ...]:
        """The terms of the loss that are not finite at a step at which another term is."""
        return self.run.bad_terms
