"""Reads rule files. All mistakes of all files are reported at once."""

from __future__ import annotations

import dataclasses
import string
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from gradtrend.detect.facts import FACTS, TEMPLATE_NAMES
from gradtrend.detect.measures import MEASURES
from gradtrend.errors import ConfigError
from gradtrend.model.rule import Action, Condition, Hold, Rule
from gradtrend.model.words import Role, Severity, Trend

_PACKAGE = Path(__file__).resolve().parent.parent
_SCOPES = ("run", "layer", "once")
_TOP_KEYS = {f.name for f in dataclasses.fields(Rule)} - {"role", "scope", "note", "actions"} | {"select", "action"}
_REQUIRED = ("id", "name", "severity", "summary", "message")


def builtin_folder() -> Path:
    """Where the shipped rules are: package data in a wheel, the top-level folder in a checkout."""
    inside = _PACKAGE / "rules"
    return inside if inside.is_dir() else _PACKAGE.parent / "rules"


def load_rules(extra: Path | None = None) -> tuple[Rule, ...]:
    """The shipped rules, with those of `extra` added or put in place of the ones with the same id; in order of id.

    Raises ConfigError that lists every mistake in every file.
    """
    problems: list[str] = []
    rules = {rule.id: rule for rule in _read_folder(builtin_folder(), problems)}
    if extra is not None:
        if not extra.is_dir():
            raise ConfigError(f"--rules {extra}: no such folder")
        rules |= {rule.id: rule for rule in _read_folder(extra, problems)}
    problems += [
        f"{rule.id}: unless names {other}, which is no rule"
        for rule in rules.values()
        for other in rule.unless
        if other not in rules
    ]
    if problems:
        raise ConfigError("\n".join(problems), "`gradtrend rule` lists the shipped rules; their files show the keys.")
    return tuple(rules[rule_id] for rule_id in sorted(rules))


def _read_folder(folder: Path, problems: list[str]) -> list[Rule]:
    rules = []
    for file in sorted(folder.glob("*.toml")):
        try:
            data = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            problems.append(f"{file.name}: {error}")
            continue
        found = _problems(data)
        problems += [f"{file.name}: {problem}" for problem in found]
        if not found:
            rules.append(_rule(data))
    return rules


def _problems(data: Mapping[str, Any]) -> list[str]:
    """Everything wrong with one rule's data."""
    found = [f"unknown key {key!r}" for key in data if key not in _TOP_KEYS]
    found += [f"missing key {key!r}" for key in _REQUIRED if not isinstance(data.get(key), str)]
    found += _wrong_word("severity", data.get("severity"), [s.value for s in Severity])
    if "trend" in data:
        found += _wrong_word("trend", data["trend"], [t.value for t in Trend])
    select = data.get("select", {})
    found += [f"unknown key select.{key}" for key in select if key not in ("role", "scope", "note")]
    found += _wrong_word("select.role", select.get("role", "grad_norm"), [r.value for r in Role])
    found += _wrong_word("select.scope", select.get("scope", "run"), _SCOPES)
    for i, condition in enumerate(data.get("when", ())):
        found += [f"when[{i}]: {problem}" for problem in _condition_problems(condition)]
    found += _hold_problems(data.get("hold", {}))
    texts = [("message", str(data.get("message", "")))]
    for i, action in enumerate(data.get("action", ())):
        found += [f"action[{i}]: unknown key {key!r}" for key in action if key not in ("text", "when", "text_for")]
        if "when" in action:
            found += _wrong_word(f"action[{i}].when", action["when"], list(FACTS))
        texts += [(f"action[{i}]", text) for text in (action.get("text", ""), *action.get("text_for", {}).values())]
    return found + [f"{where}: {problem}" for where, text in texts for problem in _template_problems(text)]


def _wrong_word(key: str, value: object, allowed: Collection[str]) -> list[str]:
    return [] if value in allowed else [f"{key} is {value!r}; it must be one of {', '.join(allowed)}"]


def _condition_problems(data: Mapping[str, Any]) -> list[str]:
    allowed = {f.name for f in dataclasses.fields(Condition)}
    found = [f"unknown key {key!r}" for key in data if key not in allowed]
    found += _wrong_word("measure", data.get("measure"), list(MEASURES))
    limits = [data[key] for key in ("above", "below") if key in data]
    if len(limits) != 1 or isinstance(limits[0], bool) or not isinstance(limits[0], (int, float)):
        found.append("needs exactly one number, above or below")
    if not data.get("why"):
        found.append("needs a why: the reason for the limit")
    return found + _wrong_word("missing", data.get("missing", "skip"), ("skip", "pass"))


def _hold_problems(data: Mapping[str, Any]) -> list[str]:
    found = [f"unknown key hold.{key}" for key in data if key not in ("until", "points", "fraction")]
    if data.get("until", "end") != "end":
        found.append("hold.until must be 'end'")
    return found


def _template_problems(text: str) -> list[str]:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        return [f"bad template: {error}"]
    return [f"unknown name {{{name}}}" for name in names if name not in TEMPLATE_NAMES and name not in MEASURES]


def _rule(data: Mapping[str, Any]) -> Rule:
    select, hold = data.get("select", {}), data.get("hold", {})
    as_is = ("id", "name", "summary", "message", "help", "blind", "forbids_verdict")
    plain = {key: data[key] for key in as_is if key in data}
    return Rule(
        **plain,
        severity=Severity(data["severity"]),
        role=select.get("role", "grad_norm"),
        scope=select.get("scope", "run"),
        note=select.get("note"),
        trend=Trend(data["trend"]) if "trend" in data else None,
        when=tuple(Condition(**condition) for condition in data.get("when", ())),
        hold=Hold(hold.get("points"), hold.get("fraction")),
        unless=tuple(data.get("unless", ())),
        actions=tuple(Action(**action) for action in data.get("action", ())),
    )
