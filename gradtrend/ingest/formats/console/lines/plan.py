"""Where on a console line its metrics and counters stand.

Lines of one shape (the same but for their digits) have one plan, so that a log of millions of lines is understood once
and then read by slicing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from gradtrend.ingest.formats.console.lines.grammar import Token, tokens
from gradtrend.ingest.formats.console.lines.labels import without_level
from gradtrend.ingest.reading.names import is_held_out_loss, name_metric
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
    r"(?:(?:optimizer_|opt_|current_|completed_|learner_|env_|policy_|agent_|_)?steps?|(?:learning_)?iterations?|iters?|itr?|up(?:date)?s?|(?:mini)?batch(?:es)?"
    r"|n_?iter|timesteps?|i)$"
)
_IN_EPOCH = frozenset({"step", "iter", "batch", "iteration"})  # of `Epoch [1/90], Step [100/500]`
_OF_EPOCH = frozenset({"step_in_epoch", "batch_in_epoch", "iter_in_epoch", "iteration_in_epoch"})
_EPOCHS = frozenset({"epoch", "ep", "epochs"})
_RANKS = frozenset({"rank", "local_rank", "global_rank"})
_NOT_VALUES = frozenset({*_GLOBAL, *_EPOCHS, *_RANKS, *NOT_METRICS, "train", "training", "", "eta"})
_SOURCE_FILE = re.compile(r"\.(?:py|cc|cpp|cu|rs)$|::")
_TRAIN = re.compile(r"^(?:training|trainer|train)(?:_|$)")
_BAR = re.compile(r"%\s?\||\[[^\]]*(?:it/s|s/it)|━")
# Also as a verb: `Evaluate: loss 2.1`. Kaldi and its kin call cross validation CV, Caffe has a test net.
_HELD_OUT = re.compile(
    rf"\b(?:{'|'.join(HELD_OUT_WORDS)}|validate|evaluate|cv|dev)\b[\s)\]]*(?:summary|epoch|step|iter|net\b|[-:|\[])"
    r"|\[(?:cv|dev)\]",
    re.IGNORECASE,
)
# transformers' own lines: a dict without a step, which the bars around it must not number.
_STEPLESS = re.compile(r"\{'(?:loss|eval_loss)': '?[-\d.ni]")
_RUN_SUMMARY = re.compile(r"['\"]?train_runtime|TrainOutput\(")
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

    `short` is the unit of a counter that is printed in thousands or millions (`step:12K`). `in_epoch` says that the
    format counts within the epoch, `zero_based` that it counts epochs from 0, `bar` that it is a progress bar,
    `from_one` that this format alone counts from 1 where the run's other logs count from 0, `held_out` that the line is
    of data that is not trained on.
    """

    fields: tuple[Field, ...]
    checks: tuple[tuple[int, int, str], ...] = ()
    epoch: Span | None = None
    counter: Span | None = None
    total: Span | None = None
    rank: Span | None = None
    short: str = ""
    in_epoch: bool = False
    zero_based: bool = False
    bar: bool = False
    from_one: bool = False
    held_out: bool = False


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
    """The plan of a line, or None where it logs neither a loss nor a gradient norm."""
    if _RUN_SUMMARY.search(text):
        return None
    found = _after_their_step(text, list(tokens(text)))
    metrics = [token for token in found if token.unit in ("", "K", "k", "M", "B", "T") and _is_metric(token.name)]
    main = [token for token in metrics if says(token.name) in (Role.GRAD_NORM, Role.LOSS)]
    held_out = False
    if not main and not (metrics and _MEGATRON in text):
        if not any(is_held_out_loss(token.name) for token in metrics):
            return None
        held_out = True
    elif _HELD_OUT.search(without_level(text[: metrics[0].start])):
        metrics = [token._replace(name=f"val/{token.name}", name_at=-1) for token in metrics]
        held_out = True
    # A name with digits that is pieced together (name_at -1) never passes its check, so that such lines are read anew.
    checks = tuple((t.name_at, t.name_at + len(t.printed), t.printed) for t in metrics if _has_digit(t.name))
    fields = tuple(Field(t.name, says(t.name), t.start, t.end, t.unit) for t in metrics)
    return _place(text, found, fields)._replace(checks=checks, held_out=held_out)


def _has_digit(name: str) -> bool:
    return any(character.isdigit() for character in name)


def _place(text: str, found: Sequence[Token], fields: tuple[Field, ...]) -> Plan:
    epoch = next((t for t in found if (_key(t.name) in _EPOCHS or t.unit == "epoch") and t.text.isdigit()), None)
    rank = next((t for t in found if t.name.lower() in _RANKS and t.is_count), None)
    plan = Plan(
        fields,
        epoch=_span(epoch),
        rank=_span(rank),
        bar=_BAR.search(text) is not None,
        zero_based=bool(epoch and epoch.after_colon and epoch.total is None),
    )
    places = _places(text, found, next((f.start for f in fields if f.role is not Role.OTHER), len(text)))
    own = _own_counter(found)
    if own is not None:
        if rank is None and places and places[0].total is None:
            plan = plan._replace(rank=_span(places[0]))  # `3: step 10 loss 2.1`, as srun --label prints
        return plan._replace(
            counter=_span(own),
            total=own.total,
            short=own.unit if own.is_short_count else "",
            in_epoch=bool(epoch and (_key(own.name) in _OF_EPOCH or _is_boxed(epoch, own))),
            from_one=own.name == "Train Step" and own.total is not None and "Profiling [" in text,
        )
    if _STEPLESS.search(text) or not places:
        return plan
    if epoch is None and len(places) >= 2 and not plan.bar:
        plan = plan._replace(epoch=_span(places[0]), zero_based=places[0].after_colon)
    place = places[-1]
    inside = plan.epoch is not None and place.total is not None and not plan.bar
    return plan._replace(counter=_span(place), total=place.total, in_epoch=inside)


def _is_boxed(epoch: Token, counter: Token) -> bool:
    """Whether the two stand as `Epoch [1/90], Step [100/500]`."""
    return epoch.bracketed and counter.bracketed and _key(counter.name) in _IN_EPOCH


def _after_their_step(text: str, found: list[Token]) -> list[Token]:
    """The values of a line, where a metric's step stands between its name and its value: `Train loss 250 0.41`."""
    for index, (first, second) in enumerate(itertools.pairwise(found)):
        between = text[first.end : second.start]
        if (
            first.name
            and first.is_count
            and not first.unit
            and first.total is None
            and not second.name
            and not second.is_count
            and re.fullmatch(r"\s*:?\s+", between)
            and (says(first.name) in (Role.GRAD_NORM, Role.LOSS) or is_held_out_loss(first.name))
            and text[: first.start].endswith(f"{first.printed} ")
        ):
            value = second._replace(name=first.name, printed=first.printed, name_at=first.name_at)
            return [*found[:index], first._replace(name="step", printed="step"), value, *found[index + 2 :]]
    return found


def _span(token: Token | None) -> Span | None:
    return None if token is None else (token.start, token.end)


def _own_counter(found: Sequence[Token]) -> Token | None:
    """The counter that the line names, a global one before others."""
    named: dict[str, Token] = {}
    for token in found:
        if token.name and (token.is_count or token.is_short_count):
            named.setdefault(_key(token.name), token)
    for key in (*_GLOBAL, *_OF_EPOCH):
        if key in named:
            return named[key]
    return next((token for key, token in named.items() if _COUNTERS.match(key)), None)


def _epoch_before(text: str, found: Sequence[Token], place: Token) -> Token | None:
    """The number that stands with a place in one bracket, `[3: 20/500]`."""
    before = [
        t for t in found if t.end <= place.start and t.bracketed and not t.name and t.total is None and t.is_count
    ]
    return before[-1] if before and re.fullmatch(r"\s*:\s+", text[before[-1].end : place.start]) else None


def _places(text: str, found: Sequence[Token], before: int) -> list[Token]:
    """The nameless counters ahead of the metrics: `[3][20/500]`, `692/9500`, `[  12]`, a progress bar's `5/60 [`."""
    ahead = [t for t in found if t.is_count and t.start < before]
    places = [t for t in ahead if t.total is not None and _key(t.name) not in _EPOCHS]
    if not places and _BAR.search(text):
        # A bar behind the metrics: `Loss: 2.3:  10%|█ | 12/100 [`
        places = [t for t in found if t.total is not None and text[t.total[1] :].startswith(" [")]
    if len(places) == 1 and (epoch := _epoch_before(text, found, places[0])) is not None:
        return [epoch, *places]
    if places:
        train = [t for t in ahead if t.start < places[0].start and t.name.lower() in {"train", "training"}]
        return [*train[:1], *places] if len(places) == 1 else places
    leading = ahead[0] if ahead else None
    if leading is not None and not leading.name and not text[: leading.start].strip(" [("):
        # Two numbers ahead of everything are epoch and step.
        return [token for token in ahead[:2] if not token.name and not text[leading.end : token.start].strip()]
    counted = [token for token in ahead if token.unit in ("it", "iter", "batch", "step")]
    # `logging_writer.py:48] [100] loss=2.3`: a number in brackets right before the first metric.
    boxed = [t for t in ahead[-1:] if t.bracketed and not t.name and text[t.end :].lstrip().startswith("]")]
    return counted[:1] or boxed
