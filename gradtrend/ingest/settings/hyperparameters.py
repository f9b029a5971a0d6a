"""All that a run was given, from the mappings that its settings are read from too.

Names are the nested paths joined by `/`, spelt as they are in the file. A report is passed on: the value of what looks
like a secret is left out, and its name has `LEFT_OUT` in its place, so that nobody takes it for one that was not given.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from gradtrend.ingest.limits import (
    DEEPEST_HYPERPARAMETER,
    LONGEST_HYPERPARAMETER,
    LONGEST_NAME,
    MOST_HYPERPARAMETERS,
    MOST_IN_A_LIST,
)
from gradtrend.model.runlog import LEFT_OUT, Hyperparameters, Scalar

_MOST_BITS = 64  # of a whole number; a longer one is a hash
_SAME = str.maketrans("-.", "_/")  # `model.lr` of one source is `model/lr` of another
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The last words of a name whose value nobody else is to read. A sort key or the key of a batch is another matter, and
# so is a `pass` over data: it counts alone or behind what one logs in to.
_SECRET = re.compile(
    r"(?:^|.*[^a-z0-9])(?:passw(?:or)?d|passwd|pwd|passphrase|secrets?|credentials?|apikey|bearer|cookie|dsn"
    r"|(?:api|access|private|secret|license|account|auth|signing|encryption|ssh|aws|wandb|comet|neptune|hf|client"
    r"|openai|anthropic|claude|gemini|google|gcp|azure|mistral|cohere|groq|openrouter|replicate|together|deepseek"
    r"|huggingface|hub|mlflow|clearml|langsmith|langchain|pinecone|serpapi|nvidia|ngc|github|gitlab|slack|sas|storage)"
    r"[^a-z0-9]?keys?|key[^a-z0-9]?id|(?:connection|conn)[^a-z0-9]?str(?:ing)?|authorization|webhook"
    r"|(?:auth|db|database|user|admin|root|login|smtp|mail|email|ftp|sftp|ssh|http|proxy|redis|pg|postgres|mysql|mongo"
    r"|sql|server|remote|rabbitmq|my)[^a-z0-9]?pass)"
)
# Of these the text alone: a number is a token's id, a text behind a tokenizer's own words is what it stands for.
_TOKEN = re.compile(
    r"(?:^|.*[^a-z0-9])(?<!(?:pad|bos|eos|unk|cls|sep)[^a-z0-9])(?<!(?:mask|stop)[^a-z0-9])"
    r"(?<!(?:start|image|class|audio|video)[^a-z0-9])token"
)
# Text that is a secret whatever its name: keys by what they begin with and how long they are, what signs an address
# or opens an account, and an address with a password in it, which may have a slash; digits before one are a port.
_SECRET_TEXT = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{30}|sk-(?=[\w\-]*\d)[\w\-]*[A-Za-z0-9]{16}|gh[oprsu]_[A-Za-z0-9]{30}"
    r"|github_pat_\w{30}|glpat-[\w\-]{20}|xox[abeprs]-(?=[\w\-]*\d)[\w\-]{20}|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|AIza[\w\-]{35}|nvapi-[\w\-]{40}|gsk_[A-Za-z0-9]{40}|eyJ[\w\-]{10,}\.[\w\-]{10,})"
    r"|(?<![A-Za-z0-9])Bearer \S|-----BEGIN"
    r"|(?<![A-Za-z0-9])(?i:signature|AccountKey|SharedAccessKey|SharedAccessSignature)=[^\s&;]|[?&;](?i:sig)=[^\s&;]"
    r"|[A-Za-z][A-Za-z0-9+.\-]*://[^/\s:@]*:(?!\d{1,5}/)[^\s@]+@(?!sha256:)"
)


class _Left(Enum):
    """What stands for a value that is left out: `None` is one that is kept."""

    OUT = 0


def hyperparameters_of(sources: Iterable[Mapping[str, Any]]) -> Hyperparameters:
    """The hyperparameters in some mappings, the surest first: of a name in several the first counts, under its spelling
    there. Sorted by name; of more than `MOST_HYPERPARAMETERS` the least nested.
    """
    found: dict[str, tuple[int, str, Scalar]] = {}
    for values in sources:
        for depth, name, value in _leaves(_unwrapped(values)):
            found.setdefault(name.translate(_SAME).lower(), (depth, name, value))
    kept = sorted(found.values(), key=lambda leaf: leaf[:2])[:MOST_HYPERPARAMETERS]
    return tuple(sorted((name, value) for _, name, value in kept))


def _unwrapped(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The mapping without what Weights & Biases wraps each value in: `lr: {desc: null, value: 0.1}`."""
    own = {key: one for key, one in values.items() if key != "wandb_version"}
    for one in own.values():
        if not isinstance(one, Mapping) or "value" not in one or one.keys() - {"desc", "value"}:
            return values
    return {key: one["value"] for key, one in own.items()}


def _leaves(values: Mapping[Any, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[int, str, Scalar]]:
    """Depth, name and value of each hyperparameter in a mapping; what is no short value or too deep is left out."""
    for key, value in values.items():
        part = str(key)
        if not part or part.startswith("_"):  # what a logger or a library keeps there for itself
            continue
        name = prefix + part
        if isinstance(value, Mapping):
            if depth < DEEPEST_HYPERPARAMETER:
                yield from _leaves(value, f"{name}/", depth + 1)
        elif len(name) <= LONGEST_NAME and not isinstance(kept := _kept(name, value), _Left):
            yield depth, name, kept


def _kept(name: str, value: Any) -> Scalar | _Left:
    """The value as it is kept, `LEFT_OUT` for a secret, be it too long to be kept."""
    scalar = _scalar(value)
    if isinstance(scalar, _Left):
        return LEFT_OUT if any(_names_secret(name)) else scalar
    return LEFT_OUT if _secret(name, scalar) else scalar


def _scalar(value: Any) -> Scalar | _Left:
    """The value as it is kept, a list as its JSON text; `_Left` for what is none.

    Non-finite numbers are words: nothing that is read from a hyperparameter is then no JSON.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if len(value) <= LONGEST_HYPERPARAMETER else _Left.OUT  # cut, two that differ may be the same
    if isinstance(value, int):
        return value if value.bit_length() <= _MOST_BITS else _Left.OUT
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return _list_text(value)
    return _Left.OUT


def _list_text(values: list[Any] | tuple[Any, ...]) -> str | _Left:
    if len(values) > MOST_IN_A_LIST or not all(isinstance(one, bool | int | float | str | None) for one in values):
        return _Left.OUT
    kept = [_scalar(one) for one in values]
    if any(isinstance(one, _Left) for one in kept):
        return _Left.OUT
    text = json.dumps(kept, ensure_ascii=False)
    return text if len(text) <= LONGEST_HYPERPARAMETER else _Left.OUT


def _secret(name: str, value: Scalar) -> bool:
    """Whether a value is nobody's business, by its name or by itself; a switch tells nothing, and neither does ""."""
    if value is None or value == "" or isinstance(value, bool):
        return False
    strictly, as_text = _names_secret(name)
    return strictly or (isinstance(value, str) and (as_text or _SECRET_TEXT.search(value) is not None))


@lru_cache(maxsize=4096)  # the runs of a sweep have the same names
def _names_secret(name: str) -> tuple[bool, bool]:
    """Whether any value of that name is a secret, and whether a text is."""
    parts = [_CAMEL.sub("_", part).lower() for part in re.split(r"[/.]", name)]
    strictly = parts[-1] == "pass" or any(_SECRET.fullmatch(part) for part in parts)
    return strictly, any(_TOKEN.fullmatch(part) for part in parts)
