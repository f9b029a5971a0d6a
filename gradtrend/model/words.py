"""The vocabulary: roles, trends, verdicts, severities and causes."""

from enum import StrEnum


class Role(StrEnum):
    """What a logged metric is."""

    GRAD_NORM = "grad_norm"
    LOSS = "loss"
    LR = "lr"
    LOSS_SCALE = "loss_scale"
    PARAM_NORM = "param_norm"
    OTHER = "other"


class Trend(StrEnum):
    """The shape of one gradient-norm series."""

    STABLE = "stable"
    EXPLODING = "exploding"
    VANISHING = "vanishing"
    WARMUP_SPIKE = "warmup-spike"
    UNDETERMINED = "undetermined"


class Verdict(StrEnum):
    """The outcome of a run, in order of precedence."""

    EXPLODING = "exploding"
    NAN_COLLAPSE = "nan-collapse"
    DIVERGING = "diverging"
    VANISHING = "vanishing"
    WARMUP_SPIKE = "warmup-spike"
    STABLE = "stable"
    UNDETERMINED = "undetermined"


class Severity(StrEnum):
    """How bad a finding is. Compare with `rank`, never as strings."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """2 for error, 1 for warning, 0 for info."""
        return {"error": 2, "warning": 1, "info": 0}[self.value]


class Order(StrEnum):
    """Which of gradient norm and loss became non-finite first."""

    GRADIENT_FIRST = "gradient-first"
    LOSS_FIRST = "loss-first"
    SAME_STEP = "same-step"
    GRADIENT_ONLY = "gradient-only"
    LOSS_ONLY = "loss-only"


class Cause(StrEnum):
    """Why values became non-finite, as far as the log tells."""

    AFTER_EXPLOSION = "after-explosion"
    GRADIENT_FIRST = "gradient-first"
    LOSS_FIRST = "loss-first"
    SAME_STEP = "same-step"
    MASKED = "masked"
    RECOVERED = "recovered"
