"""The grammar of one console line: numbers, and the words before each that name it.

Every number (or nan, inf) is a value; the text between it and the value before it is its label. `| lm loss: 1.2E+00 |`,
`loss=1.2`, `'loss': '1.2'`, `loss 1.2 (1.4)`, `loss: tensor(1.2)` and `| loss | 1.2 |` all come out as one name and one
number. Prose does not: without a `:` or `=` a name must consist of words that name metrics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gradtrend.ingest.formats.console.lines.groups import Groups
from gradtrend.ingest.formats.console.lines.labels import name_before
from gradtrend.ingest.reading.numbers import parse_number

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?(?![\d,])|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NONFINITE = (
    r"(?:1\.\#(?:inf|ind|qnan)\d*|nan(?:\(ind\))?|inf(?:inity)?|null)(?:(?!\w)|(?<=nan)(?-i:(?=x+\b|[A-Z][a-z]+\b)))"
)
_VALUE = re.compile(
    rf"(?<![\w.])(?P<text>[-+]?(?:(?P<word>{_NONFINITE})|{_NUMBER}))(?P<unit>%|[A-Za-zµ][\w/%]*)?(?![\w]|\.\d)",
    re.IGNORECASE,
)
_TOTAL = re.compile(r"\s*/\s*(\d+)(?![\w.])")
_DATE = re.compile(r"(?<![\d.])\d{2,4}[-/]\d{1,2}[-/]\d{1,4}(?:[T_]|(?!\d))|\b\d{2}-\d{2}(?= \d{2}:)")
_CLOCK = re.compile(r"(?<!\d)\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?![\d:])")
_DEVICE = re.compile(r"device='?\w+:\d+'?")  # of a tensor that was printed
_SCALES = {"K": 1e3, "k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_SHORT = frozenset({"K", "k", "M"})
_COUNTED = frozenset({"", "it", "iter", "batch", "step", "epoch"})  # units of what is counted
_WHOLE = re.compile(r"\+?\d[\d,]{0,17}(?:\.0+)?$")
# Characters ahead of a value that are looked through again after words that turned out to be of its label: a name is
# shorter, and a line of nothing but such words must not cost time by its square.
_LOOKED_BACK = 120


class Token(NamedTuple):
    """Where one value of a line stands, and what the text before it says.

    `name` is "" where nothing names it; `printed` is the part of it that stands before the value, `name_at` where that
    stands verbatim on the line (else -1). `start` and `end` bound the number, `total` is where n of `i/n` stands.
    `bracketed` says whether `[` stands before the number, `after_colon` whether `: [` does (which tells counting from 0
    from counting from 1).
    """

    name: str
    printed: str
    text: str
    unit: str
    start: int
    end: int
    name_at: int
    total: tuple[int, int] | None
    bracketed: bool
    after_colon: bool

    @property
    def is_count(self) -> bool:
        """Whether it is a whole number: `12`, `1,200`, `9.000`, tqdm's `12it`, `100batch`."""
        return self.unit in _COUNTED and _WHOLE.match(self.text) is not None

    @property
    def is_short_count(self) -> bool:
        """Whether it may be a count in thousands or millions: `12K`, `1.5M`."""
        return self.unit in _SHORT


def value_of(text: str, unit: str = "") -> float | None:
    """The number that a token's text stands for; None for a null."""
    value = parse_number(text.replace(",", "") if "," in text else text)
    return value if value is None or unit not in _SCALES else value * _SCALES[unit]


def tokens(line: str) -> Iterator[Token]:
    """The values of a line (dates and clock times left out), in order."""
    line = _CLOCK.sub(_blank, _DATE.sub(_blank, line))
    if "device=" in line:
        line = _DEVICE.sub(_blank, line)
    end = 0
    position = 0
    start = 0  # of the label: `end`, unless that lies far behind
    groups = Groups(line)
    while (match := _VALUE.search(line, position)) is not None:
        label = line[start : match.start()]
        # `nanxxx`, `nanBatch 8`: the word behind is none of its unit.
        unit = "" if match["word"] and (match["unit"] or "")[:1].isalpha() else match["unit"] or ""
        position = match.end() if unit else match.end("text")
        name, explicit = name_before(groups.read(label))
        if match["word"] and not name and not explicit and label.strip():
            start = max(end, match.end() - _LOOKED_BACK)
            continue  # `number of nan iterations: 0`: the word belongs to the label of the next value
        total = _TOTAL.match(line, position) if match["unit"] is None else None
        at = label.rfind(name) + start if name and name in label else -1
        full = groups.name(name) if name else ""
        before = label.rstrip()
        bracketed = before.endswith("[")
        after_colon = bracketed and before[:-1].rstrip().endswith(":")
        span = match.span("text")
        yield Token(
            full,
            name,
            match["text"],
            unit,
            *span,
            at,
            total.span(1) if total else None,
            bracketed,
            after_colon,
        )
        start = end = position = total.end() if total else position


def _blank(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())
