"""Lines that a trainer prints instead of logging: an update that it skips, a loss scale that it lowers, a loss that it
sets to zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from gradtrend.ingest.formats.console.lines.line import ConsoleLine, clean, take_rank
from gradtrend.ingest.formats.console.rows import ConsoleRows
from gradtrend.ingest.reading.counters import UNKNOWN
from gradtrend.ingest.reading.names import SKIPPED_NORM
from gradtrend.ingest.reading.numbers import parse_number
from gradtrend.model.runlog import Note
from gradtrend.model.words import Role

# ESPnet, FunASR, WeNet: "The grad norm is nan. Skipping updating the model."; chainer: "grad norm is nan. Do not update
# model."
_NORM_NOT_FINITE = re.compile(
    r"(?:grad(?:ient)?s?[ _]?norm|norm of (?:the )?gradients?)\s*(?:is|was|=|:)?\s*(?P<value>-?nan|-?inf(?:inity)?)\b"
    r".{0,20}?(?:skip|(?:do(?:es)? )?not updat|ignor)",
    re.IGNORECASE,
)
# apex, DeepSpeed, fairseq, Megatron, ColossalAI, Lightning and loops of one's own.
_SKIPPED = re.compile(
    r"gradient overflow|overflow!|overflow detected"
    r"|\b(?:overflow|(?:non-?|not )finite|nan|inf)\b.{0,60}?\bskip(?:ping|ped)?\b"
    r"|\bskip(?:ping|ped)\b.{0,80}?\b(?:overflow|(?:non-?|not )finite|nan|inf)\b"
    r"|found (?:nan|inf)s? (?:or (?:nan|inf)s? )?in (?:the )?grad",
    re.IGNORECASE,
)
# NVIDIA's FP16_Optimizer names the scale of the update that it skips, and not the next one.
_ATTEMPTED = re.compile(r"attempted (?:loss|grad)[ _-]?scale\s*[:=]\s*(?P<scale>\d[\d.]*(?:e[+-]?\d+)?)", re.IGNORECASE)
_NEW_SCALE = re.compile(
    r"(?:reduc(?:ing|ed)|decreas(?:ing|ed)|lower(?:ing|ed)|setting|set|new)\s+(?:the\s+)?"
    r"(?:(?:loss|grad)[ _-]?scale\s+)?(?:to|is|=|:)[\s:]*(?P<scale>\d[\d.]*(?:e[+-]?\d+)?)",
    re.IGNORECASE,
)
# deepspeech.pytorch: "WARNING: received a nan loss, setting loss value to 0".
_LOSS_ZEROED = re.compile(
    r"(?:nan|inf(?:inite)?|non-?finite)\W+loss\b.{0,60}?\b(?:set|setting|replac\w*)\b.{0,30}?\b(?:0|zero)\b",
    re.IGNORECASE,
)
_BAR = re.compile(r"(\d{1,12})/(\d{1,12}) \[[\d:?]")
_LONGEST = 1000  # characters; a warning is a sentence, and patterns with gaps must not meet a line of megabytes
_SCALE_NAME = "loss scale"
_QUOTED = 120


@dataclass(slots=True)
class Warnings:
    """What the trainer's warnings said, while a log is read."""

    skipped: int = 0
    zeroed: int = 0
    first_line: int = 0
    rank: int = UNKNOWN
    said: str = ""
    zero_pending: bool = field(default=False)

    def take(self, number: int, raw: bytes, rows: ConsoleRows) -> bool:
        """Adds what a line that logs nothing warns of; whether it did."""
        if len(raw) > _LONGEST:
            return False
        rank, text = take_rank(clean(raw))
        if rank not in (UNKNOWN, self.rank) and self.rank != UNKNOWN:
            return False  # every rank prints it
        if _LOSS_ZEROED.search(text):
            self.zeroed += 1
            self.zero_pending = True
            return True
        norm = _NORM_NOT_FINITE.search(text)
        said = norm or _SKIPPED.search(text)
        if said is None:
            return False
        values = [] if norm is None else [(SKIPPED_NORM, norm["value"], parse_number(norm["value"]) or math.nan)]
        scale = _NEW_SCALE.search(text) or _ATTEMPTED.search(text)
        if scale is not None and (number_ := parse_number(scale["scale"].rstrip("."))) is not None:
            values.append((_SCALE_NAME, scale["scale"], number_))
        self.rank = rank
        if not self.skipped:
            self.first_line, self.said = number, text[said.start() :][:_QUOTED]
        self.skipped += 1
        if values:
            bar = _BAR.search(text)
            rows.add_row(number, UNKNOWN, int(bar[1]) if bar else UNKNOWN, values)
        return True

    def unmask(self, logged: ConsoleLine) -> ConsoleLine:
        """The line with NaN for a loss of 0 that the warning before it speaks of."""
        self.zero_pending = False
        fields = logged.plan.fields
        text = logged.text
        for one in fields:
            if one.role is Role.LOSS and parse_number(text[one.start : one.end]) == 0:
                # Of the same length, since the plan says where the numbers stand.
                text = text[: one.start] + "nan".ljust(one.end - one.start) + text[one.end :]
        return logged._replace(text=text)

    def notes(self, series: Mapping[str, pl.DataFrame]) -> tuple[Note, ...]:
        """What was said, as notes of the reading that has these series."""
        notes = []
        if self.skipped:
            updates = "1 update" if self.skipped == 1 else f"{self.skipped} updates"
            share = _share_of_steps(self.skipped, series)
            notes.append(
                Note(
                    "skipped-updates",
                    f"the trainer skipped {updates} (line {self.first_line}: {self.said})",
                    SKIPPED_NORM if SKIPPED_NORM in series else None,
                    measures=(
                        ("skipped_updates", float(self.skipped)),
                        *([] if share is None else [("skipped_share", share)]),
                    ),
                )
            )
        if self.zeroed:
            losses = "1 loss" if self.zeroed == 1 else f"{self.zeroed} losses"
            message = f"the trainer set {losses} to 0 that were not finite, by its own warnings"
            notes.append(Note("loss-zeroed", message, measures=(("zeroed_losses", float(self.zeroed)),)))
        return tuple(notes)


def _share_of_steps(count: int, series: Mapping[str, pl.DataFrame]) -> float | None:
    """Which share of the steps that a log covers `count` are; None where it gives no steps."""
    steps = [points["step"].drop_nulls() for points in series.values()]
    known = [one for one in steps if len(one)]
    if not known:
        return None
    longest = max(known, key=len).to_numpy()
    apart = np.diff(longest)
    pace = float(np.median(apart[apart > 0])) if (apart > 0).any() else 1.0
    covered = float(longest.max() - longest.min()) + pace
    return min(1.0, count / covered)
