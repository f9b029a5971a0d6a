"""Which actions a run's own log speaks against: what it does already, what cannot be, what another one contradicts."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gradtrend.detect.counsel.facts import Facts
from gradtrend.model.advice import LOGGING_IDS
from gradtrend.model.many.badness import SICK

# Notes on a norm that is logged, and so that it should be logged otherwise.
_NORM_OF_LITTLE_USE = frozenset({"GT502", "GT505", "GT506", "GT507", "GT521", "GT522"})
# Of each pair the second says what contradicts the first, or the same once more.
_RIVALS = (
    ("resume-earlier", "re-run-to-reproduce"),
    ("re-run-to-reproduce", "resume-earlier"),
    ("lower-lr", "raise-lr"),
    ("raise-lr", "lower-lr"),
    ("clip-gradients", "clip-lower"),
)


def denied(facts: Facts, ids: Collection[str | None], known: Collection[str | None]) -> frozenset[str]:
    """The ids that must not be advised. `ids` are those proposed, best first; `known` come from known causes."""
    return frozenset(_by_the_log(facts, ids, known)) | frozenset(_by_others(list(ids)))


def _by_the_log(facts: Facts, ids: Collection[str | None], known: Collection[str | None]) -> Iterator[str]:
    run, settings = facts.run, facts.run.log.settings
    if settings.gradient_clip:
        yield "clip-gradients"
    if settings.gradient_clip == 0:
        yield "clip-lower"
    if run.norms and not facts.fired & _NORM_OF_LITTLE_USE:
        yield "log-norm"
    if facts.kind("old") and not facts.float16:
        yield "stabler-precision"
    if not facts.float16 and (settings.precision or "").startswith(("32", "bf16", "float32", "bfloat16")):
        yield "stabler-precision"
    if facts.failed and facts.rate_is_nothing and not facts.trained:
        yield "lower-lr"
    if facts.failed and not facts.trained:
        yield "resume-earlier"
    if facts.left_at_once:
        yield "resume-earlier"
    changes = [one for one in ids if one is not None and one not in LOGGING_IDS and one != "nothing-to-do"]
    sick = facts.verdict in SICK or facts.failed or (facts.alarmed and changes and not facts.healthy)
    if sick and "nothing-to-do" not in known:
        yield "nothing-to-do"


def _by_others(ids: list[str | None]) -> Iterator[str]:
    for one, other in _RIVALS:
        if one in ids and other in ids and ids.index(one) < ids.index(other):
            yield other
