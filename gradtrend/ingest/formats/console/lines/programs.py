"""Rows of programs that do not name their numbers, or name them by one letter.

Each has a pattern of its own, whose groups are called by what stands there: `epoch` and `step` are counters, any other
is a metric under the name given here. A pattern matches nothing but its program's rows.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gradtrend.ingest.formats.console.lines.places import Place
from gradtrend.ingest.formats.console.lines.plan import Field, Plan, says

_N = r"[-+]?(?:nan|inf|\d+\.?\d*(?:e[-+]?\d+)?)"


class _Program(NamedTuple):
    """A word without which no line is of the program, its rows, the names of their metrics, and whether its step begins
    again with each epoch.
    """

    word: str
    row: re.Pattern[str]
    names: tuple[tuple[str, str], ...]
    in_epoch: bool = False


_PROGRAMS = (
    # icefall: the gradient norms since the last such line; the median of the five is the norm.
    _Program(
        "quartiles",
        re.compile(rf"grad-norm quartiles {_N} {_N} (?P<norm>{_N}) {_N} {_N}, threshold", re.IGNORECASE),
        (("norm", "grad-norm"),),
    ),
    # WeSep and WeSpeaker: |Train/Val|Epoch|iter|loss|lr|
    _Program(
        "TRAIN|",
        re.compile(
            rf"\|\s*TRAIN\|\s*(?P<epoch>\d+)\|\s*(?P<step>\d+)\|\s*(?P<loss>{_N})\|\s*(?P<lr>{_N})\|", re.IGNORECASE
        ),
        (("loss", "loss"), ("lr", "lr")),
    ),
    # YOLACT: box, class, mask and segmentation loss, and their total
    _Program(
        "|| ETA:",
        re.compile(
            rf"^\[\s*(?P<epoch>\d+)\]\s+(?P<step>\d+) \|\| [^|].*\| T: (?P<total>{_N}) \|\| ETA:", re.IGNORECASE
        ),
        (("total", "loss"),),
    ),
    # Darknet: the loss of the batch, then its average, each ahead of its name
    _Program(
        " avg loss,",
        re.compile(rf"^\s*(?P<step>\d+): (?P<loss>{_N}), (?P<average>{_N}) avg loss, (?P<lr>{_N}) rate", re.IGNORECASE),
        (("loss", "loss"), ("average", "avg loss"), ("lr", "lr")),
    ),
    # MindSpore's LossMonitor
    _Program(
        ", loss is ",
        re.compile(rf"^epoch: (?P<epoch>\d+) step: (?P<step>\d+), loss is (?P<loss>{_N})", re.IGNORECASE),
        (("loss", "loss"),),
        in_epoch=True,
    ),
    # `step_78600:\tloss_-4.32`: names and numbers joined by an underscore
    _Program(
        "step_",
        re.compile(
            rf"(?:^|[\s\])>-])step_(?P<step>\d+)\s*[:,|]\s*loss_(?P<loss>{_N})(?=\s*(?:$|[,;|]))", re.IGNORECASE
        ),
        (("loss", "loss"),),
    ),
    # fastai 0.7: the bar of an epoch, with the smoothed loss behind its times
    _Program(
        "% [",
        re.compile(rf"% \[(?P<step>\d+)/\d+ [\d:]+<[\d:]+ (?P<loss>{_N})\]", re.IGNORECASE),
        (("loss", "train loss"),),
    ),
)


def program_line(text: str) -> Plan | None:
    """The plan of a line that one of the programs printed, or None."""
    for program in _PROGRAMS:
        if program.word not in text:
            continue
        match = program.row.search(text)
        if match is None:
            continue
        groups = match.re.groupindex
        fields = tuple(Field(name, says(name), *match.span(group), "") for group, name in program.names)
        epoch, step = (match.span(group) if group in groups else None for group in ("epoch", "step"))
        return Plan(fields, Place(epoch=epoch, counter=step, in_epoch=program.in_epoch))
    return None
