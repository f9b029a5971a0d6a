"""What a situation of a run is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gradtrend.detect.counsel.facts import Facts


@dataclass(frozen=True, slots=True)
class Situation:
    """What holds in it, the ids of the actions in order, and why in that order; `texts` word an action for it, where no
    finding does.
    """

    name: str
    holds: Callable[[Facts], bool]
    actions: tuple[str, ...]
    why: str
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
