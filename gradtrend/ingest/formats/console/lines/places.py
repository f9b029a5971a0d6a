"""Where in the run a console line stands: its epoch, its step and the rank that printed it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from gradtrend.ingest.formats.console.lines.grammar import Token

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
_TRAIN = re.compile(r"^(?:training|trainer|train)(?:_|$)")
_BAR = re.compile(r"%\s?\||\[[^\[\]]*(?:it/s|s/it)|━")
# `003 epoch, 06000 iter, loss 2.1`: each number ahead of its word.
_BEFORE_WORDS = re.compile(
    r"(?<![\w.,/:=])(\d{1,9}) epochs?\b[\s,|;]{1,3}(\d{1,15})"
    r" (?:iter(?:ation)?s?|steps?|(?:mini)?batch(?:es)?)\b(?!\s*[:=(])",
    re.IGNORECASE,
)
# transformers' own lines: a dict without a step, which the bars around it must not number.
_STEPLESS = re.compile(r"\{'(?:loss|eval_loss)': '?[-\d.ni]")


class Place(NamedTuple):
    """Where the counters of a line stand; spans are None where not given.

    `short` is the unit of a counter that is printed in thousands or millions (`step:12K`). `in_epoch` says that the
    format counts within the epoch, `zero_based` that it counts epochs from 0, `from_one` that this format alone counts
    from 1 where the run's other logs count from 0, `bar` that the line is a progress bar.
    """

    epoch: Span | None = None
    counter: Span | None = None
    total: Span | None = None
    rank: Span | None = None
    short: str = ""
    in_epoch: bool = False
    zero_based: bool = False
    from_one: bool = False
    bar: bool = False


@lru_cache(maxsize=4096)
def key_of(name: str) -> str:
    """A name as the tables of counters have it: lower case, words joined by `_`, without `train`."""
    return _TRAIN.sub("", re.sub(r"[\s/.\-]+", "_", name.strip().lower()))


def is_counter(name: str) -> bool:
    """Whether a name is that of a step, an epoch or a rank."""
    key = key_of(name)
    return key in _GLOBAL or key in _EPOCHS or key in _RANKS or _COUNTERS.match(key) is not None


def place_of(text: str, found: Sequence[Token], metrics_at: int) -> Place:
    """Where a line stands, by its values; the first metric begins at `metrics_at`."""
    epoch = next((t for t in found if (key_of(t.name) in _EPOCHS or t.unit == "epoch") and t.text.isdigit()), None)
    rank = next((t for t in found if t.name.lower() in _RANKS and t.is_count), None)
    place = Place(
        epoch=_span(epoch),
        rank=_span(rank),
        bar=_BAR.search(text) is not None,
        zero_based=bool(epoch and epoch.after_colon and epoch.total is None),
    )
    places = _places(text, found, metrics_at)
    own = _own_counter(found)
    if own is not None:
        if rank is None and places and places[0].total is None and text[places[0].end :].lstrip().startswith(":"):
            place = place._replace(rank=_span(places[0]))  # `3: step 10 loss 2.1`, as srun --label prints
        return place._replace(
            counter=_span(own),
            total=own.total,
            short=own.unit if own.is_short_count else "",
            in_epoch=bool(epoch and (key_of(own.name) in _OF_EPOCH or _is_boxed(epoch, own))),
            from_one=own.name == "Train Step" and own.total is not None and "Profiling [" in text,
        )
    counted = _BEFORE_WORDS.search(text, 0, max(0, metrics_at))
    if counted is not None and epoch is None:
        return place._replace(epoch=counted.span(1), counter=counted.span(2))
    if _STEPLESS.search(text) or not places:
        return place
    if epoch is None and len(places) >= 2 and not place.bar:
        place = place._replace(epoch=_span(places[0]), zero_based=places[0].after_colon)
    last = places[-1]
    inside = place.epoch is not None and last.total is not None and not place.bar
    return place._replace(counter=_span(last), total=last.total, in_epoch=inside)


def _is_boxed(epoch: Token, counter: Token) -> bool:
    """Whether the two stand as `Epoch [1/90], Step [100/500]`."""
    return epoch.bracketed and counter.bracketed and key_of(counter.name) in _IN_EPOCH


def _span(token: Token | None) -> Span | None:
    return None if token is None else (token.start, token.end)


def _own_counter(found: Sequence[Token]) -> Token | None:
    """The counter that the line names, a global one before others."""
    named: dict[str, Token] = {}
    for token in found:
        if token.name and (token.is_count or token.is_short_count):
            named.setdefault(key_of(token.name), token)
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
    places = [t for t in ahead if t.total is not None and key_of(t.name) not in _EPOCHS]
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
