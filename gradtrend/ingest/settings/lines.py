"""What the first and the last lines of a text log say beside its metrics: the framework, and what is at work."""

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
# Not "fp16=False" and the like.
_ON = r"(?!['\"]?\s*[=:]\s*['\"]?(?:false|none|null|no|off|0)\b)"


def _any_of(*patterns: str) -> re.Pattern[bytes]:
    return re.compile("|".join(patterns).encode())


# Lines in lower case.
_SIGNS: Mapping[str, re.Pattern[bytes]] = {
    "float16": _any_of(
        rf"\bfp16\b{_ON}",
        r"\bapex\b",
        rf"(?<![\w-])amp{_ON}[:=_ ]",
        "gradscaler",
        "loss scal",
        "grad(?:ient)? overflow",
        rf"\bfloat16\b{_ON}",
        rf"mixed[- _]precision{_ON}",
        "optimization level o[12]",
    ),
    "bfloat16": _any_of(rf"\bbf16\b{_ON}", r"\bbfloat16\b"),
    "updates-skipped": _any_of(
        "skipping (?:step|update|updating|batch|the update)", r"\boverflow! ", "gradient overflow", "overflow detected"
    ),
    "norm-not-finite": _any_of(
        "grad(?:ient)?[ _]norm is (?:nan|inf|not finite)", "magnitude of (?:the )?gradient is -?(?:nan|inf)"
    ),
    "scale-at-minimum": _any_of(
        "minimum loss scale reached",
        "grad_scale is too small",
        "loss scale already at minimum",
        "grad scale is small",
        r"loss scale to:? (?:\d\.\d+e-|0\.0)",
    ),
    "blames-the-rate": _any_of("try lowering the learning rate"),
    "attention-warning": _any_of(r"sdpa[^\n]{0,80}(?:stride|warn|backward)"),
    "deepspeed": _any_of("deepspeed", r"\bzero[_-]?(?:stage|[123])\b", "overlap_comm", r"\bstage3\.py"),
    "ctc": _any_of("(?<![a-z])ctc(?![a-z])"),
    "checkpointing": _any_of(rf"gradient[_ ]checkpointing{_ON}", "use_reentrant"),
    "stops-on-nonfinite": _any_of(
        "invalid loss, terminating",
        "loss became (?:infinite|nan)",
        "loss(?:tensor)? is (?:inf|nan)",
        "nan loss",
        "loss (?:has )?exploded",
        r"gradient norm[^\n]{0,20} is -?(?:nan|inf)[^\n]{0,20}(?:stop|abort|exit)",
        "nanlossduringtraining",
        "checknumerics",
        "magnitude of (?:the )?gradient is -?(?:nan|inf)",
        "(?:nan|inf) found in (?:the )?loss",
        "tensor had nan values",
        "loss is not finite",
        "contain (?:inf/nan|nan/inf|nan|inf)",
        "magnitude of (?:the )?gradient is bad",
        "gradients? exploded",
        r"all elements of std >= 0",
        "training has diverged",
        "grad_scale is too small",
        "non-?finite loss",
    ),
    "rows-of-nan": _any_of(
        r"(?:loss|cost|ppl|xent|norm|param\|)\w*[\]\s:='\"|]{1,6}-?(?:nan|inf)\b", r"\|\s+-?nan\s*\|", r"\bnan +nan\b"
    ),
}
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
    return (
        Note("average-nonfinite", f"the running average of {names} is not finite, its present value is", details=names),
    )
