"""The text before a value of a console line -> the name that it gives the value.

`lm loss:`, `loss=`, `'loss': '`, `loss`, `loss: tensor(` and `| loss |` all come out as one name. Prose does not:
without a `:` or `=` a name must consist of words that name metrics.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gradtrend.ingest.reading.patterns import HELD_OUT_WORDS

_UNIT_AFTER = re.compile(
    r"^\s*(?:ms|s|sec|secs|seconds|min|hours?|it/s|s/it|it/sec|iter/s|steps/s|samples/s|tok/s|tokens/s|img/s|images/s|[KMGT]i?B)(?![\w/])"
)
# A call around the value: `np.float64(0.3)`, `tensor([0.3], device=...)`.
_CALL = re.compile(
    r"(?:\b(?:np|numpy|torch|jnp|jax)\.)?\b(?:float\d*|b?float16|int\d*|tensor|array|decimal)\([\[(]*$", re.IGNORECASE
)
_SEPARATOR = re.compile(r"(?:=>|->|→|:=|==|:|=|\|)$")
_QUOTES = "'\"`* \t"  # around a name, ahead of what ties it to its value
_DELIMITER = re.compile(r"[,;|│┃{}\[\]<>\"'`\t!?]|\s{2,}|\s[-–•·]+\s|:\s|=\s|\)(?=\s)|\.\s")
_EDGE = re.compile(r"^[^\w|]+|(?<=[\w|\])])[^\w|\])]+$")
_GROUP = re.compile(r"\s*\(([^()]*)\)$")
_LEVEL = re.compile(r"^(?:\S*(?:INFO|WARN(?:ING)?|DEBUG|ERROR|NOTICE)(?:\]?:?\s+|:[\w.-]+:)|train_inner\s+)")
# A norm in bars: `|Param|: 879.7, |GParam|: 22.0`.
_IN_BARS = re.compile(r"\|(\w+)\|$")
# A loss ahead of its parts: `loss: total: 80.5, xy: 3.4`.
_HEADING = re.compile(r"\b(loss(?:es)?)\s*:\s+([A-Za-z_]\w*)$", re.IGNORECASE)
# `I0912 11:42:51.97 1397 model_lib_v2.py:652] `
_ABSL = re.compile(r"^[IWE]\d{4} [^\]]{1,80}:\d+\] ")
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
    r"|global|grads?|gradients?|gradnorm|gnorm|gn|it|iter|iterations?|l1|l2|learning|lm|loss|losses|lr|mean|mlm|moe|mtp|nll"
    r"|norm|num|opt|optimizer|params?|policy|rate|running|scale|smooth|steps?|total|train|training|up|updates?|value|weight)$"
)
# `loss (dev)`: in brackets behind a metric `dev` is no device and no developer.
_HELD_OUT = re.compile(rf"\b(?:{'|'.join((*HELD_OUT_WORDS, 'dev'))})\b", re.IGNORECASE)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_LONGEST_NAME = 6  # words; longer keys before a colon are sentences
_LONGEST_LABEL = 1000  # characters: what names a value stands right before it


@lru_cache(maxsize=65536)  # the same labels come on every line, and this is where the time goes
def name_before(label: str) -> tuple[str, bool]:
    """The name in the text before a value ("" for none), and whether a `:`, `=` or `|` ties the two together."""
    text = _UNIT_AFTER.sub("", label[-_LONGEST_LABEL:])
    text = _CALL.sub("", text.rstrip()).rstrip(" \t\"'([{<*`")
    separator = _SEPARATOR.search(text)
    if separator is not None:
        return _tied(text[: separator.start()].rstrip(_QUOTES)), True
    return _loose(text), False


def without_level(text: str) -> str:
    """A line without what logging prints ahead of its message: time, file and level."""
    return _LEVEL.sub("", _ABSL.sub("", text))


def _tied(text: str) -> str:
    text = text.rstrip()
    group = _GROUP.search(text)
    if group is not None:
        text = text[: group.start()]
    barred = _IN_BARS.search(text)
    if barred is not None:
        return barred[1]
    heading = _HEADING.search(text)
    if heading is not None:
        return f"{heading[1]}/{heading[2]}"
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
    words = _last_part(_LEVEL.sub("", text if group is None else text[: group.start()])).split()
    start = len(words)
    while start and _is_naming(words[start - 1]):
        start -= 1
    if start and words[start - 1].isalpha() and not words[start - 1].isupper():
        return ""
    return " ".join(words[start:])


def _is_naming(word: str) -> bool:
    parts = [part for part in re.split(r"[_/.\-]+", _HUMP.sub("_", word).lower()) if part]
    if len(parts) > 1:  # an identifier such as loss_cls: one naming part is enough
        return any(_NAMING.match(part) for part in parts)
    return bool(parts) and _NAMING.match(parts[0]) is not None
