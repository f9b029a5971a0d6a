"""A project's settings as types, and as a list for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from gradtrend.detect.rules import Limits
from gradtrend.model.finding import Finding

FAIL_ON = "error"  # where nobody says otherwise


@dataclass(frozen=True, slots=True)
class Ignore:
    """Findings to be left out: those of `rule` (an id, the beginning of one, or a name), which `ids` are, of the
    metrics and the runs that the patterns match (`*`, `?`, `[...]`, upper and lower case apart), and why.
    """

    rule: str
    ids: frozenset[str]
    reason: str | None = None
    metric: str | None = None
    run: str | None = None

    def matches(self, finding: Finding, runs: Sequence[str]) -> bool:
        """Whether it leaves a finding out of the run of these names."""
        if finding.rule not in self.ids:
            return False
        if self.metric is not None and not fnmatchcase(finding.metric or "", self.metric):
            return False
        return self.run is None or any(fnmatchcase(name, self.run) for name in runs)

    def __str__(self) -> str:
        of = (f"{what} {pattern}" for what, pattern in (("metric", self.metric), ("run", self.run)) if pattern)
        parts = ", ".join(of)
        return f"{self.rule}{f' ({parts})' if parts else ''}"


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of a project; None and empty where a key is not there. Paths are absolute. `file` is where they
    stand, None where there are none.
    """

    file: Path | None = None
    fail_on: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[Ignore, ...] = ()
    metric: str | None = None
    loss: str | None = None
    lr: str | None = None
    rules: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=dict)
    baseline: Path | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in force: its key, its value as JSON has it, and the file that it comes from (None: the default)."""

    key: str
    value: Any
    origin: str | None


def settings_in_force(config: Config) -> list[Setting]:
    """Every setting of a call without options, in the order of the documentation."""
    values: Mapping[str, tuple[Any, Any]] = {
        "fail-on": (config.fail_on, FAIL_ON),
        "select": (list(config.select), []),
        "ignore": ([_as_table(one) for one in config.ignore], []),
        "metric": (config.metric, None),
        "loss": (config.loss, None),
        "lr": (config.lr, None),
        "rules": ([str(folder) for folder in config.rules], []),
        "baseline": (None if config.baseline is None else str(config.baseline), None),
    }
    found = [
        Setting(key, value or default, str(config.file) if value else None) for key, (value, default) in values.items()
    ]
    limits = [Setting(f"limits.{key}", value, str(config.file)) for key, value in _flat(config.limits)]
    return found + limits


def _as_table(ignore: Ignore) -> dict[str, str]:
    keys = ("rule", "reason", "metric", "run")
    return {key: getattr(ignore, key) for key in keys if getattr(ignore, key) is not None}


def _flat(table: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in table.items():
        name = f"{before}{key}"
        found += _flat(value, f"{name}.") if isinstance(value, Mapping) else [(name, value)]
    return found
