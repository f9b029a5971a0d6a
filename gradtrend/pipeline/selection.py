"""Rules as a user names them: by id, by the beginning of an id (`GT5`) or by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gradtrend.errors import ConfigError
from gradtrend.model.report import RunReport
from gradtrend.model.rule import Rule


def split_list(values: Iterable[str]) -> tuple[str, ...]:
    """The words of comma lists, given once or several times."""
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip())


def rule_ids(words: Sequence[str], rules: Sequence[Rule], option: str) -> frozenset[str]:
    """The ids of the rules that `words` name. `option` stands in the message.

    Raises `ConfigError` naming every word that fits no rule, with what comes near it.
    """
    found = {word: [rule.id for rule in rules if _fits(word, rule)] for word in words}
    unknown = [word for word, ids in found.items() if not ids]
    if unknown:
        names = ", ".join(repr(word) for word in unknown)
        raise ConfigError(f"{option}: no rule {names}", near(unknown[0], rules))
    return frozenset(rule_id for ids in found.values() for rule_id in ids)


def without(run: RunReport, selected: frozenset[str], ignored: frozenset[str]) -> RunReport:
    """The run with the selected findings only (all where none is selected) less the ignored, and
    without the actions that only those advised. The verdict stays.
    """
    kept = tuple(f for f in run.findings if (not selected or f.rule in selected) and f.rule not in ignored)
    gone = {f.rule for f in run.findings} - {f.rule for f in kept}
    advice = tuple(one for one in run.next if not one.rules or not gone.issuperset(one.rules))
    return replace(run, findings=kept, next=advice)


def near(word: str, rules: Sequence[Rule], also: Sequence[str] = ()) -> str:
    """A hint with the ids, names and other accepted words that look like `word`."""
    known = {name.lower(): name for rule in rules for name in (rule.id, rule.name)}
    known |= {name.lower(): name for name in also}
    begun = [name for name in known if name.startswith(word.lower())][:3] if word else []
    close = begun or difflib.get_close_matches(word.lower(), known, n=3)
    if close:
        return f"Did you mean {' or '.join(known[name] for name in close)}?"
    return "`gradtrend rule` lists all rules."


def _fits(word: str, rule: Rule) -> bool:
    wanted = word.upper()
    if wanted in (rule.id.upper(), rule.name.upper()):
        return True
    return wanted.startswith("GT") and rule.id.upper().startswith(wanted)
