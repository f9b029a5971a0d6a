"""What the first and the last lines of a text log say beside its metrics: the framework, and signs of what is at work."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gradtrend.ingest.files.streams import decoded_head, is_compressed
from gradtrend.ingest.reading import Reading
from gradtrend.ingest.settings.frameworks import framework_of_lines
from gradtrend.ingest.settings.names import merge_settings
from gradtrend.model.runlog import Note, Settings

# A run says at its start what it is and at its end why it stopped; between lie its rows, which readers read.
PART_BYTES = 16 * 1024
_NOT_OFF = rb"(?!['\"]?\s*[=:]\s*['\"]?(?:false|none|null|no|off|0)\b)"
# Lines in lower case.
_SIGNS: Mapping[str, re.Pattern[bytes]] = {
    "float16": re.compile(
        rb"\bfp16\b" + _NOT_OFF + rb"|\bapex\b|(?<![\w-])amp" + _NOT_OFF + rb"[:=_ ]|gradscaler|loss scal|grad(?:ient)? overflow"
        rb"|\bfloat16\b|mixed[- _]precision" + _NOT_OFF + rb"|optimization level o[12]"
    ),
    "bfloat16": re.compile(rb"\bbf16\b" + _NOT_OFF + rb"|\bbfloat16\b"),
    "updates-skipped": re.compile(
        rb"skipping (?:step|update|updating|batch|the update)|\boverflow! |gradient overflow|overflow detected"
    ),
    "norm-not-finite": re.compile(rb"grad(?:ient)?[ _]norm is (?:nan|inf|not finite)|magnitude of (?:the )?gradient is -?(?:nan|inf)"),
    "scale-at-minimum": re.compile(
        rb"minimum loss scale reached|grad_scale is too small|loss scale already at minimum|grad scale is small"
    ),
    "blames-the-rate": re.compile(rb"try lowering the learning rate"),
    "attention-warning": re.compile(rb"sdpa[^\n]*(?:stride|warn|backward)|(?:warn|stride)[^\n]*(?:sdpa|flash.?att)"),
    "deepspeed": re.compile(rb"deepspeed|\bzero[_-]?(?:stage|[123])\b|overlap_comm|\bstage3\.py|stage_1_and_2\.py"),
    "ctc": re.compile(rb"(?<![a-z])ctc(?![a-z])"),
    "checkpointing": re.compile(rb"gradient[_ ]checkpointing" + _NOT_OFF + rb"|use_reentrant"),
    "stops-on-nonfinite": re.compile(
        rb"invalid loss, terminating|loss became (?:infinite|nan)|loss(?:tensor)? is (?:inf|nan)|nan loss|loss (?:has )?exploded"
        rb"|(?:gradient|grad norm|norm of the gradient)[^\n]{0,40} is -?(?:nan|inf)[^\n]{0,20}(?:stop|abort|exit)|nanlossduringtraining"
        rb"|model diverged with loss = nan|checknumerics|magnitude of (?:the )?gradient is -?(?:nan|inf)"
        rb"|nan or inf found in (?:the )?loss|tensor had nan values|loss is not finite|non-?finite loss"
    ),
    "rows-of-nan": re.compile(rb"(?:loss|cost|ppl|xent|norm|param\|)\w*[\]\s:='\"|]{1,6}-?(?:nan|inf)\b|\|\s+-?nan\s*\||\bnan +nan\b"),
}  # fmt: skip
# `total_loss: 6.65 (inf)`: the value of now, and of the run so far an average that is not finite.
_AVERAGE = re.compile(r"([\w/.]*loss[\w/.]*)[:=]? +-?\d[\d.e+-]* +\((inf|nan)\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Said:
    """What the lines say: the framework, the signs by name, and notes."""

    framework: str | None = None
    signs: frozenset[str] = frozenset()
    notes: tuple[Note, ...] = ()


def with_lines(reading: Reading, text: bytes | None = None) -> Reading:
    """The reading of a console log with what its lines say beside the metrics; `text` are its first lines where they
    cannot be read again, as those of a pipe.
    """
    if reading.format != "console":
        return reading
    said = said_by(reading.path) if text is None else said_in(text)
    return replace(
        reading,
        settings=merge_settings(reading.settings, Settings(framework=said.framework)),
        signs=reading.signs | said.signs,
        notes=(*reading.notes, *said.notes),
    )


def said_in(text: bytes) -> Said:
    """What a piece of a text log says."""
    lower = text.lower()
    signs = frozenset(name for name, sign in _SIGNS.items() if sign.search(lower))
    return Said(framework_of_lines(lower), signs, _average_note(text.decode("utf-8", errors="replace")))


def said_by(path: Path) -> Said:
    """What the first and the last lines of a text file say; nothing where it cannot be read."""
    try:
        if not path.is_file():
            return Said()
        with path.open("rb") as file:
            text = file.read(PART_BYTES)
            if is_compressed(text[:8]):
                return said_in(decoded_head(text))
            file.seek(max(len(text), path.stat().st_size - PART_BYTES))
            return said_in(text + file.read(PART_BYTES))
    except OSError:
        return Said()


def _average_note(text: str) -> tuple[Note, ...]:
    """A note on terms of the loss that are finite now and whose average over the run is not: one was not, before."""
    if "(inf)" not in text and "(nan)" not in text:
        return ()
    terms = list(dict.fromkeys(match[1] for match in _AVERAGE.finditer(text)))
    if not terms:
        return ()
    own = [term for term in terms if not re.search(r"^(?:total|train|sum|avg)?[/_.]?loss$", term)] or terms
    names = ", ".join(own[:3])
    return (Note("average-nonfinite", f"the running average of {names} is not finite, its present value is", details=names),)
