"""What to do next: actions that have an id, and the list of them that a report gives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# The closed list of ids: other programs rely on them. Rules word them, nobody adds one without the contract.
ACTION_IDS = frozenset(
    {
        "nothing-to-do", "lower-lr", "raise-lr", "warm-up-longer", "smooth-lr-switch", "clip-gradients", "clip-lower",
        "raise-batch", "stabler-precision", "check-loss-scale", "check-data", "check-labels", "check-graph",
        "check-loss-term", "check-reward", "check-init", "check-normalization", "check-activation",
        "check-distributed", "upgrade-library", "resume-earlier", "re-run-to-reproduce", "locate-module",
        "capture-and-replay", "log-norm", "log-norm-before-clipping", "log-layers", "log-loss", "log-more-often",
        "split-log", "regularize-weights", "check-resume", "check-attention", "check-accumulation",
        "check-skip-limit", "shrink-adapter", "read-traceback",
    }
)  # fmt: skip
# Those that change what is logged, not what is trained.
LOGGING_IDS = frozenset(
    {"log-norm", "log-norm-before-clipping", "log-layers", "log-loss", "log-more-often", "split-log"}
)


class SoFar(StrEnum):
    """What the few points of a run that could not be judged look like."""

    HEALTHY = "healthy"
    SUSPICIOUS = "suspicious"


@dataclass(frozen=True, slots=True)
class Advice:
    """One next action of a run.

    `action` is its id (None for an action of a user's rule that has none), `rules` are the findings it comes from.
    A `conditional` one depends on what happens next; its text begins with "If".
    """

    action: str | None
    text: str
    rules: tuple[str, ...] = ()
    conditional: bool = False
