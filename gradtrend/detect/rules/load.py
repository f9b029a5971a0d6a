"""Reads rule files. All mistakes of all files are reported at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from gradtrend.detect.measures import MEASURES
from gradtrend.detect.rules.problems import problems_among, problems_of
from gradtrend.detect.rules.toml import parsed, text_of
from gradtrend.errors import ConfigError
from gradtrend.model.rule import (
    REPLAY_NOTE,
    Action,
    Alternative,
    Condition,
    Hold,
    Missing,
    ReplayTopic,
    Rule,
    Scope,
    Shows,
)
from gradtrend.model.words import Cause, Role, Severity, Trend, Verdict

_PACKAGE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class _Folder:
    """The rules of a folder by id, the names of their files, and the mistakes in it."""

    rules: Mapping[str, Rule]
    files: Mapping[str, str]
    problems: Sequence[str]


def builtin_folder() -> Path:
    """Where the shipped rules are: package data in a wheel, the top-level folder in a checkout."""
    inside = _PACKAGE / "rules"
    return inside if inside.is_dir() else _PACKAGE.parent / "rules"


def load_rules(extra: Path | Sequence[Path] | None = None) -> tuple[Rule, ...]:
    """The shipped rules, with those of `extra`, one folder or several of which a later one wins, added or put in place
    of the ones with the same id; in order of id.

    Raises ConfigError that lists every mistake in every file.
    """
    shipped = _shipped(builtin_folder())
    rules, files, problems = dict(shipped.rules), dict(shipped.files), list(shipped.problems)
    for folder in _folders(extra):
        _check_folder(folder)
        own = _read_folder(folder)
        rules |= {rule_id: _in_place_of(shipped.rules.get(rule_id), rule) for rule_id, rule in own.rules.items()}
        files |= own.files
        problems += own.problems
    problems += problems_among(rules, files)
    if problems:
        raise ConfigError("\n".join(problems), "`gradtrend rule` lists the shipped rules; their files show the keys.")
    return tuple(rules[rule_id] for rule_id in sorted(rules))


def _folders(extra: Path | Sequence[Path] | None) -> list[Path]:
    return [extra] if isinstance(extra, Path) else list(extra or ())


def _check_folder(folder: Path) -> None:
    """Raise ConfigError for what is no folder, or may not be looked into: a folder without rules is one, too."""
    try:
        if not folder.is_dir():
            raise ConfigError(f"--rules {folder}: no such folder")
        next(folder.iterdir(), None)
    except OSError as error:
        raise ConfigError(f"--rules {folder}: {error.strerror or error}") from None


def _in_place_of(shipped: Rule | None, own: Rule) -> Rule:
    """A user's rule, for what the shipped one with its id is for where its file, an older one, does not say."""
    if shipped is None:
        return own
    replay = own.replay or (shipped.replay if own.note == REPLAY_NOTE else None)
    return replace(own, cause=own.cause or shipped.cause, replay=replay)


@lru_cache(maxsize=1)
def _shipped(folder: Path) -> _Folder:
    """The shipped rules, read once a process: parsing takes longer than judging a run. That there is no mistake in them
    is held by a test, not found out on every call.
    """
    return _read_folder(folder, checked=True)


def rule_text(rule_id: str, extra: Path | Sequence[Path] | None = None) -> str:
    """The file that defines a rule, as it stands, with the folders as `load_rules` takes them. Raises ConfigError where
    none does.
    """
    for folder in (*reversed(_folders(extra)), builtin_folder()):
        for file in _files(folder):
            text = text_of(file)
            if parsed(text).get("id") == rule_id:
                return text
    raise ConfigError(f"no file defines the rule {rule_id}")


def _files(folder: Path) -> list[Path]:
    """The rule files of a folder, those of known causes in its folder `known` last."""
    return [*sorted(folder.glob("*.toml")), *sorted(folder.glob("known/*.toml"))]


def _read_folder(folder: Path, checked: bool = False) -> _Folder:
    """The rules of a folder; `checked` says that its files are known to have no mistakes."""
    rules: dict[str, Rule] = {}
    files: dict[str, str] = {}
    problems: list[str] = []
    for file in _files(folder):
        if not file.is_file():  # a pipe would be waited for
            problems.append(f"{file.name}: not a file")
            continue
        try:
            data = parsed(text_of(file))
        except (OSError, ValueError, RecursionError) as error:  # no TOML, no UTF-8, a number of thousands of digits
            problems.append(f"{file.name}: {error}")
            continue
        found = [] if checked else problems_of(data)
        problems += [f"{file.name}: {problem}" for problem in found]
        if not found and data["id"] in rules:
            problems.append(f"{file.name}: id {data['id']} is that of {files[data['id']]}")
        elif not found:
            rules[data["id"]], files[data["id"]] = _rule(data), file.name
    return _Folder(rules, files, problems)


def _rule(data: Mapping[str, Any]) -> Rule:
    select, hold = data.get("select", {}), data.get("hold", {})
    as_is = ("id", "name", "summary", "message", "help", "blind", "forbids_verdict")
    plain = {key: data[key] for key in as_is if key in data}
    return Rule(
        **plain,
        severity=Severity(data["severity"]),
        role=Role(select.get("role", Role.GRAD_NORM)),
        scope=Scope(select.get("scope", Scope.RUN)),
        note=select.get("note", REPLAY_NOTE if "replay" in select else None),
        replay=ReplayTopic(select["replay"]) if "replay" in select else None,
        trend=Trend(data["trend"]) if "trend" in data else None,
        verdict=Verdict(data["verdict"]) if "verdict" in data else None,
        cause=Cause(data["cause"]) if "cause" in data else None,
        when=tuple(_condition(condition) for condition in data.get("when", ()) if "case" not in condition),
        alternatives=tuple(_alternatives(data)),
        hold=Hold(hold.get("points"), hold.get("fraction")),
        unless=tuple(data.get("unless", ())),
        actions=tuple(Action(**action) for action in data.get("action", ())),
        shows=Shows(**{key: tuple(values) for key, values in data.get("shows", {}).items()}),
        threads=tuple(data.get("threads", ())),
    )


def _alternatives(data: Mapping[str, Any]) -> Iterator[Alternative]:
    """The alternatives in the order in which they are first named; older files name them as a condition's `case`."""
    tables = [(one["case"], [one]) for one in data.get("when", ()) if "case" in one]
    tables += [(one["name"], one["when"]) for one in data.get("alternative", ())]
    found: dict[str, list[Condition]] = {}
    for names, conditions in tables:
        for name in [names] if isinstance(names, str) else names:
            found.setdefault(name, []).extend(map(_condition, conditions))
    for name, all_of_it in found.items():
        yield Alternative(name, tuple(all_of_it))


def _condition(data: Mapping[str, Any]) -> Condition:
    plain = {key: data[key] for key in ("measure", "why", "above", "below") if key in data}
    missing = Missing(data.get("missing", Missing.SKIP))
    return Condition(**plain, missing=missing, meaning=MEASURES[data["measure"]].meaning)
