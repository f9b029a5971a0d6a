"""The keys of a project's settings: what may stand there, and what is wrong with what does."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradtrend.detect.rules import limit_problems, load_rules
from gradtrend.errors import ConfigError
from gradtrend.model.rule import Rule
from gradtrend.pipeline.config.settings import Config, Ignore
from gradtrend.pipeline.selection import parse_fail_on, rule_ids

_SHOWN = 100  # characters of a wrong value that are repeated


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "a text": _is_text,
    "a text or a list of texts": lambda value: _is_text(value) or _are_texts(value),
    "a list of rules": lambda value: _is_text(value) or _are_texts(value),
    "a list of rules, or of tables with a rule": lambda value: isinstance(value, list),
    "a table of tables": lambda value: isinstance(value, dict) and all(isinstance(v, dict) for v in value.values()),
}
_KEYS = {
    "fail-on": "a text or a list of texts",
    "select": "a list of rules",
    "ignore": "a list of rules, or of tables with a rule",
    "metric": "a text",
    "loss": "a text",
    "lr": "a text",
    "rules": "a text or a list of texts",
    "limits": "a table of tables",
    "baseline": "a text",
}
_IGNORE = dict.fromkeys(("rule", "reason", "metric", "run"), "a text")


def config_of(file: Path, table: str, data: Mapping[str, Any]) -> Config:
    """The settings that `data`, which stand in the table of a file, are. Raises ConfigError that lists every mistake
    with the file, its key and a suggestion.
    """
    problems = [*_wrong_keys(data, _KEYS)]
    sound = {key: value for key, value in data.items() if key in _KEYS and _KINDS[_KEYS[key]](value)}
    folders = tuple(file.parent / folder for folder in _list(sound.get("rules", [])))
    rules = _rules(folders, problems)
    fail_on = ",".join(_list(sound["fail-on"])) if "fail-on" in sound else None
    if fail_on is not None:
        problems += _refused(parse_fail_on, fail_on, rules, "fail-on")
    select = tuple(_list(sound.get("select", [])))
    for word in select:
        problems += _refused(rule_ids, [word], rules, "select")
    ignore = tuple(_ignores(sound.get("ignore", []), rules, problems))
    limits = sound.get("limits", {})
    problems += [f"limits.{problem}" for problem in limit_problems(rules, limits)]
    if problems:
        lines = "\n".join(f"{file}: {table}{problem}" for problem in problems)
        raise ConfigError(
            lines, "README lists the keys; `gradtrend rule` the rules; --no-config goes without the file."
        )
    return Config(
        file,
        fail_on,
        select,
        ignore,
        metric=sound.get("metric"),
        loss=sound.get("loss"),
        lr=sound.get("lr"),
        rules=folders,
        limits=limits,
        baseline=file.parent / sound["baseline"] if "baseline" in sound else None,
    )


def _list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _rules(folders: Sequence[Path], problems: list[str]) -> tuple[Rule, ...]:
    """The rules with those of the folders; the shipped ones where these cannot be read, which is told."""
    try:
        return load_rules(folders)
    except ConfigError as error:
        problems += [f"rules: {line.removeprefix('--rules ')}" for line in error.message.split("\n")]
        return load_rules()


def _refused(check: Callable[..., object], *words: object) -> Iterator[str]:
    """What a check of words has against them, and its hint, on one line."""
    try:
        check(*words)
    except ConfigError as error:
        yield f"{error.message}{f'; {error.hint[:1].lower()}{error.hint[1:]}' if error.hint else ''}"


def _ignores(values: Sequence[Any], rules: Sequence[Rule], problems: list[str]) -> Iterator[Ignore]:
    for place, value in enumerate(values):
        where = f"ignore[{place}]"
        if not (_is_text(value) or isinstance(value, dict)):
            problems.append(f"{where}: must be a rule or a table with a rule, not {_shown(value)}")
            continue
        one = {"rule": value} if isinstance(value, str) else value
        wrong = [*_wrong_keys(one, _IGNORE, f"{where}.")]
        if "rule" not in one:
            wrong.append(f"{where}: missing key 'rule'")
        elif _is_text(one["rule"]):
            wrong += _refused(rule_ids, [one["rule"]], rules, f"{where}.rule")
        problems += wrong
        if not wrong:
            yield Ignore(**one, ids=rule_ids([one["rule"]], rules, where))


def _wrong_keys(data: Mapping[str, Any], kinds: Mapping[str, str], where: str = "") -> Iterator[str]:
    for key, value in data.items():
        if key not in kinds:
            near = difflib.get_close_matches(key.replace("_", "-").lower(), kinds, n=1)
            known = f"did you mean {near[0]}?" if near else f"it must be one of {', '.join(kinds)}"
            known = (
                "leave [tool.gradtrend] out, which pyproject.toml alone has" if key == "tool" and not where else known
            )
            yield f"{where}{key}: unknown key; {known}"
        elif not _KINDS[kinds[key]](value):
            yield f"{where}{key}: must be {kinds[key]}, not {_shown(value)}"


def _shown(value: Any) -> str:
    try:
        return repr(value)[:_SHOWN]
    except ValueError:  # Python prints no integer of more than 4300 digits
        return "a number of thousands of digits"
