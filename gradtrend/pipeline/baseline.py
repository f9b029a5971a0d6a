"""A file of known findings: they are shown as known and do not count; what is new does.

A finding is known by its run (as every checkout of a project names it), rule, metric and layer, as often as it is
listed: neither steps nor numbers, which differ from training to training.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradtrend.errors import ConfigError
from gradtrend.model.finding import Finding

_VERSION = 1
_LARGEST = 64 << 20  # bytes: half a million findings
_MAKE_ONE = "--write-baseline FILE makes one."
_KEYS = ("run", "rule", "metric", "layer")


@dataclass(frozen=True, slots=True, order=True)
class Known:
    """What a finding is known by; empty where it has no metric or layer."""

    run: str
    rule: str
    metric: str = ""
    layer: str = ""

    def __str__(self) -> str:
        of = f" of {self.metric}" if self.metric else ""
        return f"{self.rule}{of} in {self.run}"


def known_by(run: str, finding: Finding) -> Known:
    """What a finding of the run of that name is known by."""
    return Known(run, finding.rule, finding.metric or "", finding.layer or "")


def read_baseline(file: Path) -> Counter[Known]:
    """How often each finding is known. Raises ConfigError for what is no baseline."""
    try:
        data = json.loads(_text_of(file))
    except FileNotFoundError:
        raise ConfigError(f"--baseline {file}: no such file", _MAKE_ONE) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"--baseline {file}: {getattr(error, 'strerror', None) or error}") from None
    version = data.get("gradtrend_baseline") if isinstance(data, dict) else None
    if version != _VERSION or not isinstance(data.get("findings"), list):
        raise ConfigError(f"--baseline {file}: is no baseline of version {_VERSION}", _MAKE_ONE)
    found: Counter[Known] = Counter()
    for place, entry in enumerate(data["findings"]):
        found[_entry(entry, f"--baseline {file}: findings[{place}]")] += entry.get("count", 1)
    return found


def baseline_text(known: Mapping[Known, int], names: Mapping[str, str]) -> str:
    """The file for these findings, sorted, so that two of them can be compared; `names` are those of the rules."""
    entries = [_as_table(one, known[one], names) for one in sorted(known)]
    return json.dumps({"gradtrend_baseline": _VERSION, "findings": entries}, indent=2) + "\n"


def _text_of(file: Path) -> str:
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("not a file")
        data = opened.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"larger than {_LARGEST >> 20} MiB")
    return data.decode("utf-8")


def _entry(entry: Any, where: str) -> Known:
    table = entry if isinstance(entry, dict) else {}
    values = [table.get(key) or "" for key in _KEYS]
    count = table.get("count", 1)
    if not all(isinstance(value, str) for value in values) or not (values[0] and values[1]):
        raise ConfigError(f"{where}: needs a run and a rule, and texts for metric and layer")
    if type(count) is not int or not 0 < count <= 1_000_000_000:
        raise ConfigError(f"{where}.count: must be a whole number above 0")
    return Known(*values)


def _as_table(one: Known, count: int, names: Mapping[str, str]) -> dict[str, Any]:
    table: dict[str, Any] = {"run": one.run, "rule": one.rule}
    table |= {"name": names[one.rule]} if one.rule in names else {}
    table |= {key: getattr(one, key) for key in ("metric", "layer") if getattr(one, key)}
    return table | ({"count": count} if count > 1 else {})
