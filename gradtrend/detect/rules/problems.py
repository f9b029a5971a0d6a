"""Finds the mistakes in rule files: unknown keys, values of the wrong kind, words that mean nothing."""

from __future__ import annotations

import re
import string
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from gradtrend.detect.frameworks import KINDS
from gradtrend.detect.measures import MEASURES
from gradtrend.detect.rules.circumstances import CIRCUMSTANCES
from gradtrend.detect.rules.template import TEMPLATE_NAMES
from gradtrend.model.advice import ACTION_IDS
from gradtrend.model.rule import REPLAY_CIRCUMSTANCES, REPLAY_NOTE, Missing, ReplayTopic, Rule, Scope
from gradtrend.model.runlog import SIGNS
from gradtrend.model.words import Cause, Role, Severity, Trend, Verdict


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


_LARGEST = sys.float_info.max  # TOML has NaN, inf, and integers of any length
_SHOWN = 100  # characters of a wrong value that are repeated
_FEW = 20  # words that are listed in full where none comes near a wrong one
_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "a number": lambda value: type(value) in (int, float) and -_LARGEST <= value <= _LARGEST,
    "a whole number": lambda value: type(value) is int and -_LARGEST <= value <= _LARGEST,
    "true or false": lambda value: isinstance(value, bool),
    "a list of texts": lambda value: value == [] or _are_texts(value),
    "a table": lambda value: isinstance(value, dict),
    "a table of texts": lambda value: isinstance(value, dict) and all(isinstance(v, str) for v in value.values()),
    "a list of tables": lambda value: isinstance(value, list) and all(isinstance(v, dict) for v in value),
    "a text or a list of texts": lambda value: isinstance(value, str) or _are_texts(value),
}
_TOP = {
    "id": "text", "name": "text", "severity": "text", "trend": "text", "cause": "text", "verdict": "text",
    "summary": "text", "message": "text", "help": "text", "blind": "text", "forbids_verdict": "true or false",
    "unless": "a list of texts", "select": "a table", "when": "a list of tables", "alternative": "a list of tables",
    "hold": "a table", "action": "a list of tables", "shows": "a table", "threads": "a list of texts",
}  # fmt: skip
_ID = re.compile(r"[A-Z]+[0-9]+")  # as the schema of the report promises; `--select` parts ids at commas
_REQUIRED = ("id", "name", "severity", "summary", "message")
_SELECT = {"role": "text", "scope": "text", "note": "text", "replay": "text"}
_CONDITION = {"measure": "text", "above": "a number", "below": "a number", "why": "text", "missing": "text"}
_ALTERNATIVE = {"name": "a text or a list of texts", "when": "a list of tables"}
# Older files name the alternative that a condition belongs to here.
_WHEN = {**_CONDITION, "case": "text"}
# A hold always is to the end; older files say so with `until`.
_HOLD = {"until": "text", "points": "a whole number", "fraction": "a number"}
_SHOWS = dict.fromkeys(("frameworks", "kinds", "signs", "metrics"), "a list of texts")
_ACTION = {"id": "text", "text": "text", "when": "text", "text_for": "a table of texts"}


def problems_of(data: Mapping[str, Any]) -> list[str]:
    """Everything wrong with one rule's data, each with the key it is at."""
    found = [*_wrong_keys(data, _TOP), *(f"missing key {key!r}" for key in _REQUIRED if key not in data)]
    data = _sound(data, _TOP)
    if not _ID.fullmatch(data.get("id", "GT1")):
        found.append(f"id is {_shown(data['id'])}; it must be capital letters and then digits, such as 'US1'")
    for key, words in (("severity", Severity), ("trend", Trend), ("cause", Cause)):
        found += _wrong_word(key, data, [word.value for word in words])
    found += _wrong_word("verdict", data, [Verdict.DIVERGING.value])
    select, hold = data.get("select", {}), data.get("hold", {})
    found += _select_problems(select)
    if not {"when", "alternative"} & set(data) and not {"note", "replay"} & set(select):
        found.append("needs a [[when]], an [[alternative]], select.note or select.replay: it would fire on every run")
    found += _conditions_problems("when", data, _WHEN)
    found += _shows_problems(data.get("shows", {}))
    for i, alternative in enumerate(data.get("alternative", ())):
        found += _alternative_problems(f"alternative[{i}]", alternative)
    found += _wrong_keys(hold, _HOLD, "hold.")
    found += _wrong_word("until", hold, ("end",), "hold.")
    of_replay = "replay" in select or select.get("note") == REPLAY_NOTE
    circumstances = sorted(REPLAY_CIRCUMSTANCES) if of_replay else list(CIRCUMSTANCES)
    for i, action in enumerate(data.get("action", ())):
        found += [f"action[{i}]: {problem}" for problem in _action_problems(action, circumstances)]
    return found + [f"message: {problem}" for problem in _template_problems(data.get("message", ""))]


def problems_among(rules: Mapping[str, Rule], files: Mapping[str, str]) -> Iterator[str]:
    """What shows only with all rules together, each with its file: ids that are none, replays of which a rule does not
    say more.
    """
    for rule_id, rule in rules.items():
        unknown = (other for other in rule.unless if other not in rules)
        yield from (f"{files[rule_id]}: unless names {other}, which is no rule" for other in unknown)
    for rule_id, rule in rules.items():
        if rule.note == REPLAY_NOTE and rule.replay is None:
            why = f"select.note is {REPLAY_NOTE!r}, so select.replay must say what of a replay it is for"
            yield f"{files[rule_id]}: {why}"


def _select_problems(data: Mapping[str, Any]) -> list[str]:
    found = list(_wrong_keys(data, _SELECT, "select."))
    for key, words in (("role", Role), ("scope", Scope), ("replay", ReplayTopic)):
        found += _wrong_word(key, data, [word.value for word in words], "select.")
    return found


def _shows_problems(data: Mapping[str, Any]) -> list[str]:
    found = list(_wrong_keys(data, _SHOWS, "shows."))
    data = _sound(data, _SHOWS)
    allowed = {"kinds": KINDS, "signs": SIGNS}
    if "frameworks" in data:
        from gradtrend.detect.frameworks import frameworks  # only for a file that names some

        allowed["frameworks"] = frozenset(frameworks())
    for key, words in allowed.items():
        for word in data.get(key, ()):
            found += _wrong_word(key, {key: word}, sorted(words), "shows.")
    for pattern in data.get("metrics", ()):
        try:
            re.compile(pattern)
        except re.error as error:
            found.append(f"shows.metrics: {_shown(pattern)}: {error}")
    return found


def _wrong_keys(data: Mapping[str, Any], kinds: Mapping[str, str], where: str = "") -> Iterator[str]:
    for key, value in data.items():
        if key not in kinds:
            yield f"unknown key {where + key!r}"
        elif not _KINDS[kinds[key]](value):
            yield f"{where}{key} must be {kinds[key]}, not {_shown(value)}"


def _shown(value: Any) -> str:
    try:
        return repr(value)[:_SHOWN]
    except ValueError:  # Python prints no integer of more than 4300 digits
        return "a number of thousands of digits"


def _sound(data: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    """What is of the right kind, so that a wrong one is told once."""
    return {key: value for key, value in data.items() if key in kinds and _KINDS[kinds[key]](value)}


def _wrong_word(key: str, data: Mapping[str, Any], allowed: Collection[str], where: str = "") -> list[str]:
    word = data.get(key)
    if not isinstance(word, str) or word in allowed:
        return []
    return [f"{where}{key} is {word!r}; {_better(word, allowed)}"]


def _better(word: str, allowed: Collection[str]) -> str:
    """What a wrong word should be: what comes near it, else one of a few."""
    from difflib import get_close_matches  # only for a file with a mistake in it

    near = get_close_matches(word.lower(), allowed, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if len(allowed) > _FEW:
        return f"that is none of the {len(allowed)} there are"
    return f"it must be one of {', '.join(allowed)}"


def _alternative_problems(where: str, data: Mapping[str, Any]) -> list[str]:
    found = [f"{where}: {problem}" for problem in _wrong_keys(data, _ALTERNATIVE)]
    if "name" not in data:
        found.append(f"{where}: missing key 'name'")
    if not data.get("when"):
        found.append(f"{where}: needs an [[alternative.when]]")
    return found + _conditions_problems(f"{where}.when", _sound(data, _ALTERNATIVE), _CONDITION)


def _conditions_problems(where: str, data: Mapping[str, Any], keys: Mapping[str, str]) -> list[str]:
    """What is wrong with the conditions under `when`."""
    conditions = enumerate(data.get("when", ()))
    return [f"{where}[{i}]: {problem}" for i, one in conditions for problem in _condition_problems(one, keys)]


def _condition_problems(data: Mapping[str, Any], keys: Mapping[str, str]) -> list[str]:
    found = [*_wrong_keys(data, keys), *_wrong_word("measure", data, list(MEASURES))]
    if "measure" not in data:
        found.append("missing key 'measure'")
    if ("above" in data) == ("below" in data):
        found.append("needs exactly one number, above or below")
    if not data.get("why"):
        found.append("needs a why: the reason for the limit")
    return found + _wrong_word("missing", data, [m.value for m in Missing])


def _action_problems(data: Mapping[str, Any], circumstances: Collection[str]) -> list[str]:
    found = [*_wrong_keys(data, _ACTION), *_wrong_word("when", data, circumstances)]
    found += _wrong_word("id", data, sorted(ACTION_IDS))
    if "text" not in data:
        found.append("missing key 'text'")
    sound = _sound(data, _ACTION)
    for text in (sound.get("text", ""), *sound.get("text_for", {}).values()):
        found += _template_problems(text)
    return found


def _template_problems(text: str) -> list[str]:
    """A template holds plain names: `{x:>999999999}` could make a text without end, `{x.y}` look into anything."""
    try:
        fields = [field for field in string.Formatter().parse(text) if field[1] is not None]
    except ValueError as error:
        return [f"bad template: {error}"]
    return [
        f"{{{name}}} has a format or conversion; give the name alone"
        if spec or conversion
        else f"unknown name {{{name}}}"
        for _, name, spec, conversion in fields
        if spec or conversion or (name not in TEMPLATE_NAMES and name not in MEASURES)
    ]
