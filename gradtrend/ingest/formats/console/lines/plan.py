"""Where on a console line its metrics and counters stand.

Lines of one shape (the same but for their digits) have one plan, so that a log of millions of lines is understood once
and then read by slicing.
"""

from __future__ import annotations

import itertools
import re
from functools import lru_cache
from typing import NamedTuple

from gradtrend.ingest.formats.console.lines.grammar import Token, tokens
from gradtrend.ingest.formats.console.lines.labels import without_level
from gradtrend.ingest.formats.console.lines.places import Place, is_counter, key_of, place_of
from gradtrend.ingest.reading.names import is_held_out_loss, name_metric
from gradtrend.ingest.reading.patterns import HELD_OUT_WORDS
from gradtrend.ingest.reading.rows import NOT_METRICS
from gradtrend.model.words import Role

_NOT_VALUES = frozenset({*NOT_METRICS, "train", "training", "", "eta"})
_SOURCE_FILE = re.compile(r"\.(?:py|cc|cpp|cu|rs)$|::")
# Also as a verb: `Evaluate: loss 2.1`. Kaldi and its kin call cross validation CV, Caffe has a test net.
_HELD_OUT = re.compile(
    rf"\b(?:{'|'.join(HELD_OUT_WORDS)}|validate|evaluate|cv|dev)\b[\s)\]]*(?:summary|epoch|step|iter|net\b|[-:|\[])"
    r"|\[(?:cv|dev)\]",
    re.IGNORECASE,
)
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
    """One shape of line. `checks` are digits within names that must be as they were; `held_out` says that the line is
    of data that is not trained on.
    """

    fields: tuple[Field, ...]
    place: Place
    checks: tuple[tuple[int, int, str], ...] = ()
    held_out: bool = False


@lru_cache(maxsize=4096)
def says(name: str) -> Role:
    """The role that a name alone gives a metric."""
    return name_metric(name).role


@lru_cache(maxsize=4096)
def _is_metric(name: str) -> bool:
    return key_of(name) not in _NOT_VALUES and not is_counter(name) and _SOURCE_FILE.search(name) is None


def plan_line(text: str, wanted: frozenset[str] = frozenset()) -> Plan | None:
    """The plan of a line, or None where it logs neither a loss, a gradient norm nor a wanted metric."""
    if _RUN_SUMMARY.search(text):
        return None
    found = _after_their_step(text, list(tokens(text)))
    metrics = [token for token in found if token.unit in ("", "K", "k", "M", "B", "T") and _is_metric(token.name)]
    main = [t for t in metrics if says(t.name) in (Role.GRAD_NORM, Role.LOSS) or t.name in wanted]
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
    first = next((field.start for field in fields if field.role is not Role.OTHER), len(text))
    return Plan(fields, place_of(text, found, first), checks, held_out)


def _has_digit(name: str) -> bool:
    return any(character.isdigit() for character in name)


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
