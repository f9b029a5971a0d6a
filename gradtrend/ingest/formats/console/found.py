"""What a text holds in which no gradient norm was found: how much of it is numbers, and what they are called."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from gradtrend.ingest.formats.console.lines.grammar import tokens
from gradtrend.ingest.formats.console.lines.line import clean
from gradtrend.ingest.reading import NO_NORM_FOUND
from gradtrend.model.runlog import Note

_SAMPLE = 200  # lines with numbers whose names are looked at: a log repeats itself, and this is done for every log
_MOST_NAMES = 12
_LONGEST = 2000  # characters of a line; longer ones are data
_DIGIT = re.compile(rb"\d")


def what_was_found(path: Path, head: bytes, whole: bool) -> tuple[Note, ...]:
    """A note on the first bytes of a log, which are all of it or not."""
    lines = [line for line in re.split(rb"[\r\n]+", head) if line.strip()]
    numbered = [line for line in lines if _DIGIT.search(line)]
    names: Counter[str] = Counter()
    for line in numbered[:_SAMPLE]:
        if len(line) <= _LONGEST:
            names.update(dict.fromkeys((token.name for token in tokens(clean(line)) if token.name), 1))
    often = ", ".join(name for name, _ in names.most_common(_MOST_NAMES)) or "none"
    size = f"{len(lines)} lines" if whole else f"in its first {len(lines)} lines"
    message = f"{path.name}: {size}, {len(numbered)} with numbers; names: {often}"
    return (Note(NO_NORM_FOUND, message),)
