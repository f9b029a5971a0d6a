"""What the first and the last lines of a text log say beside its metrics: the framework, and what is at work."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gradtrend.ingest.files.regular import buffered
from gradtrend.ingest.files.streams import decoded_head, is_compressed
from gradtrend.ingest.reading import HEAD_BYTES, Reading
from gradtrend.ingest.reading.last_words import AT_ITS_LIMIT, LEFT_OUT, LOGGED
from gradtrend.ingest.settings.frameworks import framework_of_lines
from gradtrend.ingest.settings.names import merge_settings
from gradtrend.model.runlog import Note, Settings

# A run says at its start what it is and at its end why it stopped; between lie its rows, which readers read.
PART_BYTES = 8 * 1024
# Not "fp16=False" and the like.
_ON = r"(?!['\"]?\s*[=:]\s*['\"]?(?:false|none|null|no|off|0)\b)"
# Megatron prints `loss scale: 1.0` where there is no scaler.
_NOT_1 = r"(?!\w{1,3}['\"]?\W{1,4}1(?:\.0*)?(?![\d.e]))"
# A trainer that stops says so at the very end; the same words earlier, or with `LEFT_OUT`, are of a batch.
_STOPS, _LAST_WORDS = "stops-on-nonfinite", 2048
_FINITE = re.compile(rb"exploded" + AT_ITS_LIMIT)
# In lines in lower case: any of these words, each a sign by itself, or only where the pattern below finds it.
_WORDS: Mapping[str, tuple[bytes, ...]] = {
    "float16": (
        b"fp16", b"apex", b"amp", b"gradscaler", b"loss scal", b"t overflow", b"d overflow", b"float16", b"mixed",
        b"optimization level o",
    ),
    "norm-not-finite": (b"norm is nan", b"norm is inf", b"norm is not finite", b"gradient is -nan", b"gradient is nan"),
    "scale-at-minimum": (
        b"minimum loss scale", b"scale is too small", b"scale already at", b"scale is small", b"scale to",
    ),
    "blames-the-rate": (b"try lowering the learning rate",),
    "attention-warning": (b"sdpa",),
    "ctc": (b"ctc",),
    "stops-on-nonfinite": (
        b"invalid loss, terminating", b"loss became infinite", b"loss became nan", b"loss is inf", b"loss is nan",
        b"losstensor is inf", b"nan loss", b"loss exploded", b"loss has exploded", b"nanlossduringtraining",
        b"checknumerics", b"gradient is bad", b"gradient is -nan", b"gradient is nan", b"found in the loss",
        b"tensor had nan values", b"loss is not finite", b"nonfinite loss", b"non-finite loss", b"contain inf",
        b"contain nan", b"gradient exploded", b"gradients exploded", b"elements of std >= 0",
        b"training has diverged", b"grad_scale is too small",
    ),
}  # fmt: skip
_ONLY: Mapping[str, str] = {
    "float16": rf"\bfp16\b{_ON}|\bapex\b|(?<![\w-])amp(?:_(?!\w*loss)|{_ON}[:= ])|gradscaler|loss scal{_NOT_1}"
    rf"|grad(?:ient)? overflow|\bfloat16\b{_ON}|mixed[- _]precision{_ON}|optimization level o[12]",
    "scale-at-minimum": r"scale (?:reached|is too small|already at|is small)|scale to:? (?:\d\.\d+e-|0\.0)",
    "attention-warning": r"sdpa[^\n]{0,80}(?:stride|warn|backward)",
    "ctc": r"(?<![a-z])ctc(?![a-z])|attctc|ctcloss|warpctc",
}
# Of a log of which no row could be read: that its rows are of NaN.
_ROWS_OF_NAN = (
    r"(?:loss|cost|ppl|xent|norm|param\|)\w{0,60}[\]\s:='\"|]{1,6}-?(?:nan|inf)\b|\|\s{1,60}-?nan\s*\||\bnan +nan\b"
)
# `total_loss: 6.65 (inf)`: the value of now, and of the run so far an average that is not finite.
# (Names are bounded: a line of nothing but letters must not cost time by its square.)
_AVERAGE = r"(?<![\w/.])([\w/.]{0,60}?loss[\w/.]{0,60})[:=]? +-?\d[\d.e+-]{0,30} +\((?:inf|nan)\)"


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
    unread = not reading.series
    said = said_by(reading.path, unread) if text is None else said_in(text, unread, to_end=len(text) < HEAD_BYTES)
    stops = frozenset({_STOPS} if reading.goes_on else ())
    return replace(
        reading,
        settings=merge_settings(reading.settings, Settings(framework=said.framework)),
        signs=reading.signs | (said.signs - stops),
        notes=(*reading.notes, *said.notes),
    )


def said_in(text: bytes, unread: bool = False, to_end: bool = True) -> Said:
    """What a piece of a text log says; `unread` where no row of it could be read, `to_end` where the log ends there."""
    lower = text.lower()
    signs = {name for name, words in _WORDS.items() if any(word in lower for word in words)}
    signs = {name for name in signs if name not in _ONLY or re.search(_ONLY[name].encode(), lower)}
    if not to_end or not _says_stop(lower[-_LAST_WORDS:]):
        signs.discard(_STOPS)
    if unread and re.search(_ROWS_OF_NAN.encode(), lower):
        signs.add("rows-of-nan")
    return Said(framework_of_lines(lower), frozenset(signs), _average_note(text))


def _says_stop(last: bytes) -> bool:
    """Whether a line behind the last row says that the trainer stops, and not that it leaves a batch out."""
    for line in reversed(last.splitlines()):
        if any(word in line for word in _WORDS[_STOPS]) and not (LEFT_OUT.search(line) or _FINITE.search(line)):
            return True
        if LOGGED.search(line):
            return False
    return False


def said_by(path: Path, unread: bool = False) -> Said:
    """What the first and the last lines of a text file say; nothing where it cannot be read."""
    try:
        if not path.is_file():
            return Said()
        with buffered(path) as file:
            text = file.read(PART_BYTES)
            if is_compressed(text[:8]):
                return said_in(decoded_head(text), unread, to_end=len(text) < PART_BYTES)
            file.seek(max(len(text), path.stat().st_size - PART_BYTES))
            return said_in(text + file.read(PART_BYTES), unread)
    except OSError:
        return Said()


def _average_note(text: bytes) -> tuple[Note, ...]:
    """A note on terms of the loss that are finite now and whose average over the run is not: one was not, before."""
    if b"(inf)" not in text and b"(nan)" not in text:
        return ()
    terms = list(dict.fromkeys(re.findall(_AVERAGE, text.decode("utf-8", errors="replace"))))
    if not terms:
        return ()
    own = [term for term in terms if not re.search(r"^(?:total|train|sum|avg)?[/_.]?loss$", term)] or terms
    names = ", ".join(own[:3])
    return (
        Note("average-nonfinite", f"the running average of {names} is not finite, its present value is", details=names),
    )
