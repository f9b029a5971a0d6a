"""Limits of rules that a user sets beside the files of the rules.

A limit is named by its measure (`rise_over_noise`), in a table of the way to fire where the ways differ
(`later.decades_above_baseline`), in a table of its side where a measure has limits on both (`{ above = 1.0 }`), and
`hold.points` or `hold.fraction` for how long it must last.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradtrend.errors import ConfigError
from gradtrend.model.rule import Condition, Rule

# A rule's id or name, and its limits as TOML has them.
Limits = Mapping[str, Mapping[str, Any]]
_EVERYWHERE = None  # in place of a way to fire
_LARGEST = sys.float_info.max  # TOML has integers of any length
_SHOWN_WAYS = 3
_ALWAYS = ""  # the way of conditions that hold for each


def with_limits(rules: Sequence[Rule], limits: Limits, origin: str = "the configuration") -> tuple[Rule, ...]:
    """The rules with these limits in place of their own; `origin` stands in their reasons.

    Raises ConfigError that lists every limit that cannot be set.
    """
    changed = {rule.id: rule for rule in rules}
    problems: list[str] = []
    for word, table in limits.items():
        rule = _named(word, rules)
        if rule is None:
            problems.append(f"{word}: no such rule{_better(word, [name for r in rules for name in (r.id, r.name)])}")
            continue
        for key, value in table.items():
            changed[rule.id], wrong = _set(changed[rule.id], key, value, origin)
            problems += [f"{word}.{problem}" for problem in wrong]
    if problems:
        raise ConfigError("\n".join(problems), "`gradtrend rule GT101` shows the limits of a rule.")
    return tuple(changed[rule.id] for rule in rules)


def limit_problems(rules: Sequence[Rule], limits: Limits) -> list[str]:
    """Every limit that cannot be set, and why."""
    try:
        with_limits(rules, limits)
    except ConfigError as error:
        return error.message.split("\n")
    return []


def limits_of(rule: Rule) -> list[str]:
    """The names of a rule's limits, as they can be set."""
    found = []
    for measure in dict.fromkeys(condition.measure for _, condition in _conditions(rule)):
        ways = _values(rule, measure)
        several = len({value for way in ways.values() for value in way.items()}) > 1
        for way in ways if several else ():
            found.append(f"{_quoted(way)}.{measure}" if way != _ALWAYS else measure)
        found += [] if several else [measure]
    found += [f"hold.{key}" for key in ("points", "fraction") if getattr(rule.hold, key) is not None]
    return found


def _named(word: str, rules: Sequence[Rule]) -> Rule | None:
    return next((rule for rule in rules if word.upper() in (rule.id.upper(), rule.name.upper())), None)


def _conditions(rule: Rule) -> Iterator[tuple[str, Condition]]:
    """The conditions of a rule, each with the way to fire that it is of."""
    yield from ((_ALWAYS, condition) for condition in rule.when)
    yield from ((one.name, condition) for one in rule.alternatives for condition in one.when)


def _values(rule: Rule, measure: str) -> dict[str, dict[str, float]]:
    """The limits of a measure by way to fire and side; of several on one side the strictest, which decides."""
    found: dict[str, dict[str, float]] = {}
    for way, condition in _conditions(rule):
        if condition.measure == measure:
            side = _side(condition)
            sides = found.setdefault(way, {})
            strictest = max if side == "above" else min
            sides[side] = strictest(sides.get(side, condition.limit), condition.limit)
    return found


def _side(condition: Condition) -> str:
    return "above" if condition.above is not None else "below"


def _set(rule: Rule, key: str, value: Any, origin: str) -> tuple[Rule, list[str]]:
    """The rule with what one key of its table says, and what is wrong with it."""
    if key == "hold":
        return _held(rule, value)
    ways = {one.name for one in rule.alternatives}
    if key in ways and isinstance(value, dict):
        problems: list[str] = []
        for measure, one in value.items():
            rule, wrong = _measured(rule, key, measure, one, origin)
            problems += [f"{_quoted(key)}.{problem}" for problem in wrong]
        return rule, problems
    if key in ways:
        return rule, [f"{_quoted(key)}: must be a table of limits, not {_shown(value)}"]
    return _measured(rule, _EVERYWHERE, key, value, origin)


def _measured(rule: Rule, way: str | None, measure: str, value: Any, origin: str) -> tuple[Rule, list[str]]:
    """The rule with a limit of a measure, in one way to fire or in all that have it. Pages of rules show a measure's
    name in words.
    """
    measure = measure.replace(" ", "_")
    found = {w: sides for w, sides in _values(rule, measure).items() if way in (_EVERYWHERE, w)}
    if not found:
        return rule, [f"{measure}: no limit of {rule.id}{_better(measure, _names(rule, way))}"]
    several = len({tuple(sorted(sides.items())) for sides in found.values()}) > 1
    if several and _ALWAYS in found:  # what holds for each way is named by the measure alone
        found, several = {_ALWAYS: found[_ALWAYS]}, False
    sides = {side for values in found.values() for side in values}
    wanted = value if isinstance(value, dict) else dict.fromkeys(sides, value)
    there = " and ".join(sorted(sides))
    problems = [f"{measure}.{side}: no side of this limit; it has {there}" for side in wanted if side not in sides]
    wrong = [one for one in wanted.values() if not _is_number(one)]
    problems += [f"{measure}: must be a finite number, not {_shown(one)}" for one in wrong]
    if not isinstance(value, dict) and len(sides) > 1:
        problems.append(f"{measure}: has a limit on both sides; give {{ above = ... }} or {{ below = ... }}")
    if not wanted:
        problems.append(f"{measure}: must be a number, not an empty table")
    if several:
        ways = [f"{_quoted(w)}.{measure}" for w in found if w != _ALWAYS]
        more = " ..." if len(ways) > _SHOWN_WAYS else ""
        problems.append(
            f"{measure}: has several limits in {rule.id}; name one: {' or '.join(ways[:_SHOWN_WAYS])}{more}"
        )
    if problems:
        return rule, problems

    def fits(of: str, condition: Condition) -> bool:
        return condition.measure == measure and of in found and _side(condition) in wanted

    return _changed(rule, fits, lambda condition: _with(condition, float(wanted[_side(condition)]), origin)), []


def _changed(rule: Rule, fits: Callable[[str, Condition], bool], change: Callable[[Condition], Condition]) -> Rule:
    def each(way: str, conditions: Sequence[Condition]) -> tuple[Condition, ...]:
        return tuple(change(one) if fits(way, one) else one for one in conditions)

    alternatives = tuple(replace(one, when=each(one.name, one.when)) for one in rule.alternatives)
    return replace(rule, when=each(_ALWAYS, rule.when), alternatives=alternatives)


def _with(condition: Condition, limit: float, origin: str) -> Condition:
    why = f"Set in {origin} (the rule's own limit is {condition.limit:g}). {condition.why.strip()}"
    if condition.above is not None:
        return replace(condition, why=why, above=limit)
    return replace(condition, why=why, below=limit)


def _held(rule: Rule, value: Any) -> tuple[Rule, list[str]]:
    if not isinstance(value, dict):
        return rule, [f"hold: must be a table, not {_shown(value)}"]
    problems = []
    holds = [name for name in limits_of(rule) if name.startswith("hold.")]
    for key, number in value.items():
        if key not in ("points", "fraction") or getattr(rule.hold, key) is None:
            problems.append(f"hold.{key}: no limit of {rule.id}{_better(f'hold.{key}', holds)}")
        elif key == "points" and not (type(number) is int and number > 0):
            problems.append(f"hold.points: must be a whole number above 0, not {_shown(number)}")
        elif key == "fraction" and not (_is_number(number) and 0 <= number <= 1):
            problems.append(f"hold.fraction: must be a number from 0 to 1, not {_shown(number)}")
    return rule if problems else replace(rule, hold=replace(rule.hold, **value)), problems


def _names(rule: Rule, way: str | None) -> list[str]:
    if way is _EVERYWHERE:
        return limits_of(rule)
    return list(dict.fromkeys(condition.measure for of, condition in _conditions(rule) if of == way))


def _is_number(value: Any) -> bool:
    return (type(value) is float and math.isfinite(value)) or (type(value) is int and abs(value) < _LARGEST)


def _better(word: str, names: Sequence[str]) -> str:
    """What a wrong name should be, or the names there are where these are few."""
    from difflib import get_close_matches  # only for a mistake

    near = get_close_matches(word, names, n=3)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; it has {', '.join(names)}" if 0 < len(names) <= 12 else ""


def _quoted(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() else f'"{name}"'


def _shown(value: Any) -> str:
    try:
        return repr(value)[:100]
    except ValueError:  # Python prints no integer of more than 4300 digits
        return "a number of thousands of digits"
