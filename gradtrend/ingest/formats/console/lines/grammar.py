"""The grammar of one console line: numbers, and the words before each that name it.

Every number (or nan, inf) is a value; the text between it and the value before it is its label. `| lm loss: 1.2E+00 |`,
`loss=1.2`, `'loss': '1.2'`, `loss 1.2 (1.4)`, `loss: tensor(1.2)` and `| loss | 1.2 |` all come out as one name and one
number. Prose does not: without a `:` or `=` a name must consist of words that name metrics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from gradtrend.ingest.reading.numbers import parse_number
from gradtrend.ingest.reading.patterns import HELD_OUT_WORDS

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?(?![\d,])|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NONFINITE = r"(?:1\.\#(?:inf|ind|qnan)\d*|nan(?:\(ind\))?|inf(?:inity)?|null)(?!\w)"
_VALUE = re.compile(
    rf"(?<![\w.])(?P<text>[-+]?(?:(?P<word>{_NONFINITE})|{_NUMBER}))(?P<unit>%|[A-Za-zµ][\w/%]*)?(?![\w]|\.\d)",
    re.IGNORECASE,
)
_TOTAL = re.compile(r"\s*/\s*(\d+)(?![\w.])")
_DATE = re.compile(r"(?<![\d.])\d{2,4}[-/]\d{1,2}[-/]\d{1,4}(?:[T_]|(?!\d))|\b\d{2}-\d{2}(?= \d{2}:)")
_CLOCK = re.compile(r"(?<!\d)\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?![\d:])")
_SCALES = {"K": 1e3, "k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_UNIT_AFTER = re.compile(
    r"^\s*(?:ms|s|sec|secs|seconds|min|hours?|it/s|s/it|it/sec|iter/s|steps/s|samples/s|tok/s|tokens/s|img/s|images/s|[KMGT]i?B)(?![\w/])"
)
# A call around the value: `np.float64(0.3)`, `tensor([0.3], device=...)`.
_CALL = re.compile(
    r"(?:\b(?:np|numpy|torch|jnp|jax)\.)?\b(?:float\d*|b?float16|int\d*|tensor|array|decimal)\([\[(]*$", re.IGNORECASE
)
_SEPARATOR = re.compile(r"['\"`*]*\s*(?:=>|->|→|:=|==|:|=|\|)\s*$")
_DELIMITER = re.compile(r"[,;|│┃{}\[\]<>\"'`\t!?]|\s{2,}|\s[-–•·]+\s|:\s|=\s|\)(?=\s)|\.\s")
_EDGE = re.compile(r"^[^\w|]+|[^\w|\])]+$")
_GROUP = re.compile(r"\s*\(([^()]*)\)$")
_LEVEL = re.compile(r"^(?:\S*(?:INFO|WARN(?:ING)?|DEBUG|ERROR|NOTICE)(?:\]?:?\s+|:[\w.]+:)|train_inner\s+)")
# A layer ahead of what was measured of it: `encoder.0.weight: grad_norm=0.5`.
_OF_LAYER = re.compile(r"([A-Za-z_]\w*(?:\.\w+)+)\s*:\s+$")
_PROSE = re.compile(
    r"(?:an?|and|are|as|at|be|been|below|but|by|can|could|did|do|does|for|from|had|has|have|he|how|i|if|in|is|its|just|like"
    r"|of|on|or|our|set|should|so|than|that|the|their|then|there|they|this|to|use|used|using|was|we|were|what|when|where"
    r"|which|while|will|with|would|your?)$",
    re.IGNORECASE,
)
# Words of which a name may consist where only a space stands between it and its number.
_NAMING = re.compile(
    rf"(?:{'|'.join(HELD_OUT_WORDS)}"
    r"|actor|aux|average|avg|batch|ce|clip|cost|critic|current|disc|discriminator|encoder|ep|epoch|gen|generator"
    r"|global|grads?|gradients?|gradnorm|gnorm|it|iter|iterations?|l1|l2|learning|lm|loss|losses|lr|mean|mlm|moe|mtp|nll"
    r"|norm|num|opt|optimizer|params?|policy|rate|running|scale|smooth|steps?|total|train|training|updates?|value|weight)$"
)
# `loss (dev)`: in brackets behind a metric `dev` is no device and no developer.
_HELD_OUT = re.compile(rf"\b(?:{'|'.join((*HELD_OUT_WORDS, 'dev'))})\b", re.IGNORECASE)
_COUNTED = frozenset({"", "it", "iter", "batch", "step", "epoch"})  # units of what is counted
_WHOLE = re.compile(r"\+?\d[\d,]{0,17}(?:\.0+)?$")
_LONGEST_NAME = 6  # words; longer keys before a colon are sentences


class Token(NamedTuple):
    """Where one value of a line stands, and what the text before it says.

    `name` is "" where nothing names it, and `name_at` its offset where it stands verbatim on the line (else -1).
    `start` and `end` bound the number, `total` is where n of `i/n` stands. `bracketed` says whether `[` stands before
    the number, `after_colon` whether `: [` does (which tells counting from 0 from counting from 1).
    """

    name: str
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


def value_of(text: str, unit: str = "") -> float | None:
    """The number that a token's text stands for; None for a null."""
    value = parse_number(text.replace(",", "") if "," in text else text)
    return value if value is None or unit not in _SCALES else value * _SCALES[unit]


def tokens(line: str) -> Iterator[Token]:
    """The values of a line (dates and clock times left out), in order."""
    line = _CLOCK.sub(_blank, _DATE.sub(_blank, line))
    end = 0
    position = 0
    prefixes: list[str] = []
    nested = line.count("{") > 1
    while (match := _VALUE.search(line, position)) is not None:
        label = line[end : match.start()]
        position = match.end()
        name, explicit = _name(label)
        if match["word"] and not name and not explicit:
            continue  # `number of nan iterations: 0`: the word belongs to the label of the next value
        total = _TOTAL.match(line, position) if match["unit"] is None else None
        at = label.rfind(name) + end if name and name in label else -1
        if nested:
            _nest(prefixes, label)
            if prefixes and name:
                name, at = "/".join([*prefixes, name]), -1
        before = label.rstrip()
        bracketed = before.endswith("[")
        after_colon = bracketed and before[:-1].rstrip().endswith(":")
        span = match.span("text")
        yield Token(
            name,
            match["text"],
            match["unit"] or "",
            *span,
            at,
            total.span(1) if total else None,
            bracketed,
            after_colon,
        )
        end = position = total.end() if total else position


def _blank(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())


_OPENING = re.compile(r"([\w./ -]+?)['\"]?\s*[:=]\s*(?:\w+\()?\{|(\})|(\{)")


def _nest(prefixes: list[str], label: str) -> None:
    """Keep the names of the dicts that a value lies in: `{'grad_norm': {'encoder': 0.1}}` -> `grad_norm/encoder`."""
    for match in _OPENING.finditer(label):
        if match[1]:
            prefixes.append(match[1].strip())
        elif match[2] and prefixes:
            prefixes.pop()


@lru_cache(maxsize=65536)  # the same labels come on every line, and this is where the time goes
def _name(label: str) -> tuple[str, bool]:
    """The name in the text before a value ("" for none), and whether a `:`, `=` or `|` ties the two together."""
    text = _UNIT_AFTER.sub("", label)
    text = _CALL.sub("", text.rstrip()).rstrip(" \t\"'([{<*`")
    separator = _SEPARATOR.search(text)
    if separator is not None:
        return _tied(text[: separator.start()]), True
    return _loose(text), False


def _tied(text: str) -> str:
    text = text.rstrip()
    group = _GROUP.search(text)
    if group is not None:
        text = text[: group.start()]
    name = _last_part(_LEVEL.sub("", _last_part(text)))
    layer = _OF_LAYER.search(text.removesuffix(name)) if name else None
    if layer is not None:
        return text[layer.start() :]
    words = name.split()
    if len(words) > _LONGEST_NAME or (len(words) > 1 and any(_PROSE.match(word) for word in words)):
        return ""
    return f"val/{name}" if group is not None and name and _HELD_OUT.search(group[1]) else name


def _last_part(text: str) -> str:
    start = 0
    for match in _DELIMITER.finditer(text):
        start = match.end()
    name = _EDGE.sub("", text[start:])
    return name if any(character.isalpha() for character in name) else ""


def _loose(text: str) -> str:
    """The longest run of naming words at the end of the text; "" where a word of prose stands before it."""
    group = _GROUP.search(text)
    words = _last_part(text if group is None else text[: group.start()]).split()
    start = len(words)
    while start and _is_naming(words[start - 1]):
        start -= 1
    if start and words[start - 1].isalpha() and not words[start - 1].isupper():
        return ""
    return " ".join(words[start:])


def _is_naming(word: str) -> bool:
    parts = [part for part in re.split(r"[_/.\-]+", word.lower()) if part]
    if len(parts) > 1:  # an identifier such as loss_cls: one naming part is enough
        return any(_NAMING.match(part) for part in parts)
    return bool(parts) and _NAMING.match(parts[0]) is not None
