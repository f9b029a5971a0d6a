"""Where on a console line its metrics and counters stand.

Lines of one shape (the same but for their digits) have one plan, so that a log of millions of lines is understood once
and then read by slicing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from gradtrend.ingest.formats.console.lines.grammar import Token, tokens
from gradtrend.ingest.reading.names import name_metric
from gradtrend.ingest.reading.patterns import HELD_OUT_WORDS
from gradtrend.ingest.reading.rows import NOT_METRICS
from gradtrend.model.words import Role

Span = tuple[int, int]

# What a line's own counter is called, without `train`; best first where a line has several.
_GLOBAL = (
    "global_step", "global_steps", "global_step_max_steps", "num_updates", "n_updates", "total_timesteps",
    "num_timesteps", "current_steps",
)  # fmt: skip
_COUNTERS = re.compile(
    r"(?:(?:optimizer_|opt_|current_|completed_|_)?steps?|(?:learning_)?iterations?|iters?|itr?|updates?|(?:mini)?batch(?:es)?"
    r"|n_?iter|timesteps?|i)$"
)
_IN_EPOCH = frozenset({"step", "iter", "batch", "iteration"})  # of `Epoch [1/90], Step [100/500]`
_EPOCHS = frozenset({"epoch", "ep", "epochs"})
_RANKS = frozenset({"rank", "local_rank", "global_rank"})
_NOT_VALUES = frozenset({*_GLOBAL, *_EPOCHS, *_RANKS, *NOT_METRICS, "train", "training", "", "eta"})
_SOURCE_FILE = re.compile(r"\.(?:py|cc|cpp|cu|rs)$|::")
_TRAIN = re.compile(r"^(?:training|trainer|train)(?:_|$)")
_BAR = re.compile(r"%\s?\||\[[^\]]*(?:it/s|s/it)|━")
# Also as a verb: `Evaluate: loss 2.1`.
_HELD_OUT = re.compile(
    rf"\b(?:{'|'.join(HELD_OUT_WORDS)}|validate|evaluate)\b[\s)\]]*(?:summary|epoch|step|iter|[-:|\[])",
    re.IGNORECASE,
)
# transformers' own lines: a dict without a step, which the bars around it must not number.
_STEPLESS = re.compile(r"\{'(?:loss|eval_loss)': '?[-\d.ni]")
_RUN_SUMMARY = re.compile(r"['\"]?train_runtime")
_MEGATRON = "number of nan iterations"


class Field(NamedTuple):
    """One metric of a line: its name, its role by name, where its number stands and the number's unit."""

    name: str
    role: Role
    start: int
    end: int
    unit: str


class Plan(NamedTuple):
    """One shape of line. Spans are None where not given; `checks` are digits within names that must be as they were.

    `in_epoch` says that the format counts within the epoch, `zero_based` that it counts epochs from 0, `bar` that it is
    a progress bar, `from_one` that this format alone counts from 1 where the run's other logs count from 0.
    """

    fields: tuple[Field, ...]
    checks: tuple[tuple[int, int, str], ...] = ()
    epoch: Span | None = None
    counter: Span | None = None
    total: Span | None = None
    rank: Span | None = None
    in_epoch: bool = False
    zero_based: bool = False
    bar: bool = False
    from_one: bool = False


@lru_cache(maxsize=4096)
def says(name: str) -> Role:
    """The role that a name alone gives a metric."""
    return name_metric(name).role


@lru_cache(maxsize=4096)
def _key(name: str) -> str:
    return _TRAIN.sub("", re.sub(r"[\s/.\-]+", "_", name.strip().lower()))


@lru_cache(maxsize=4096)
def _is_metric(name: str) -> bool:
    key = _key(name)
    return key not in _NOT_VALUES and not _COUNTERS.match(key) and _SOURCE_FILE.search(name) is None


def plan_line(text: str) -> Plan | None:
    """The plan of a line, or None where it logs neither a loss nor a gradient norm of the training."""
    if _RUN_SUMMARY.search(text):
        return None
    found = list(tokens(text))
    metrics = [token for token in found if token.unit in ("", "K", "k", "M", "B", "T") and _is_metric(token.name)]
    main = [token for token in metrics if says(token.name) in (Role.GRAD_NORM, Role.LOSS)]
    if not main and not (metrics and _MEGATRON in text):
        return None
    if _HELD_OUT.search(text[: metrics[0].start]):
        return None
    # A name with digits that is pieced together (name_at -1) never passes its check, so that such lines are read anew.
    checks = tuple((t.name_at, t.name_at + len(t.name), t.name) for t in metrics if any(c.isdigit() for c in t.name))
    fields = tuple(Field(t.name, says(t.name), t.start, t.end, t.unit) for t in metrics)
    return _place(text, found, fields)._replace(checks=checks)


def _place(text: str, found: Sequence[Token], fields: tuple[Field, ...]) -> Plan:
    epoch = next((t for t in found if (_key(t.name) in _EPOCHS or t.unit == "epoch") and t.text.isdigit()), None)
    rank = next((t for t in found if t.name.lower() in _RANKS and t.is_count), None)
    plan = Plan(
        fields,
        epoch=_span(epoch),
        rank=_span(rank),
        bar=_BAR.search(text) is not None,
        zero_based=bool(epoch and epoch.after_colon),
    )
    places = _places(text, found, next((f.start for f in fields if f.role is not Role.OTHER), len(text)))
    own = _own_counter(found)
    if own is not None:
        if rank is None and places and places[0].total is None:
            plan = plan._replace(rank=_span(places[0]))  # `3: step 10 loss 2.1`, as srun --label prints
        return plan._replace(
            counter=_span(own),
            total=own.total,
            in_epoch=bool(epoch and epoch.bracketed and own.bracketed and _key(own.name) in _IN_EPOCH),
            from_one=own.name == "Train Step" and own.total is not None and "Profiling [" in text,
        )
    if _STEPLESS.search(text) or not places:
        return plan
    if epoch is None and len(places) >= 2 and not plan.bar:
        plan = plan._replace(epoch=_span(places[0]), zero_based=places[0].after_colon)
    place = places[-1]
    inside = plan.epoch is not None and place.total is not None and not plan.bar
    return plan._replace(counter=_span(place), total=place.total, in_epoch=inside)


def _span(token: Token | None) -> Span | None:
    return None if token is None else (token.start, token.end)


def _own_counter(found: Sequence[Token]) -> Token | None:
    """The counter that the line names, a global one before others."""
    named: dict[str, Token] = {}
    for token in found:
        if token.name and token.is_count:
            named.setdefault(_key(token.name), token)
    for key in _GLOBAL:
        if key in named:
            return named[key]
    return next((token for key, token in named.items() if _COUNTERS.match(key)), None)


def _places(text: str, found: Sequence[Token], before: int) -> list[Token]:
    """The nameless counters ahead of the metrics: `[3][20/500]`, `692/9500`, `[  12]`, a progress bar's `5/60 [`."""
    ahead = [t for t in found if t.is_count and t.start < before]
    places = [t for t in ahead if t.total is not None and _key(t.name) not in _EPOCHS]
    if places:
        train = [t for t in ahead if t.start < places[0].start and t.name.lower() in {"train", "training"}]
        return [*train[:1], *places] if len(places) == 1 else places
    leading = ahead[0] if ahead else None
    if leading is not None and not leading.name and not text[: leading.start].strip(" [("):
        return [leading]
    counted = [token for token in ahead if token.unit in ("it", "iter", "batch", "step")]
    # `logging_writer.py:48] [100] loss=2.3`: a number in brackets right before the first metric.
    boxed = [t for t in ahead[-1:] if t.bracketed and not t.name and text[t.end :].lstrip().startswith("]")]
    return counted[:1] or boxed
