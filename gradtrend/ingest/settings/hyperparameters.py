"""All that a run was given, from the mappings that its settings are read from too.

Names are the nested paths joined by `/`, spelt as they are in the file. What looks like a secret is left out: a report
is passed on.
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
from gradtrend.model.runlog import Hyperparameters, Scalar

_MOST_BITS = 64  # of a whole number; a longer one is a hash
_SAME = str.maketrans("-.", "_/")  # `model.lr` of one source is `model/lr` of another
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The last words of a name whose text nobody else is to read. A number of tokens or a sort key is another matter.
_SECRET = re.compile(
    r"(?:^|.*[^a-z0-9])(?:passw(?:or)?d|passwd|pwd|passphrase|secrets?|credentials?|token|apikey|bearer|cookie|dsn"
    r"|(?:api|access|private|secret|license|account|auth|signing|encryption|ssh|aws|wandb|comet|neptune|hf|client)"
    r"[^a-z0-9]?keys?|key[^a-z0-9]?id|(?:connection|conn)[^a-z0-9]?str(?:ing)?|authorization|webhook)"
)
# Text that is a secret whatever its name: tokens by what they begin with, and an address with a password in it.
_SECRET_TEXT = re.compile(
    r"(?:hf_|sk-|ghp_|gho_|github_pat_|glpat-|xox[abp]-|AKIA|ASIA|AIza|eyJhbGci)[\w\-.]{12,}|Bearer \S"
    r"|[a-z][a-z0-9+.\-]*://[^/\s:@]*:[^/\s@]+@|-----BEGIN"
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
        elif (
            len(name) <= LONGEST_NAME and not isinstance(scalar := _scalar(value), _Left) and not _secret(name, scalar)
        ):
            yield depth, name, scalar


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
    """Whether a text is nobody's business, by its name or by itself."""
    if not isinstance(value, str) or not value:
        return False
    return _names_secret(name) or _SECRET_TEXT.search(value) is not None


@lru_cache(maxsize=4096)  # the runs of a sweep have the same names
def _names_secret(name: str) -> bool:
    return any(_SECRET.fullmatch(_CAMEL.sub("_", part).lower()) for part in re.split(r"[/.]", name))
