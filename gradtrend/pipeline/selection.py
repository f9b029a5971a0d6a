"""Rules as a user names them: by id, by the beginning of an id (`GT5`) or by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gradtrend.errors import ConfigError
from gradtrend.model.finding import Finding
from gradtrend.model.report import RunReport
from gradtrend.model.rule import Rule
from gradtrend.model.words import Severity

_NEVER = "never"
_SICK = "sick"
# What `sick` stands for: an explosion, a collapse to NaN, a divergence or a vanishing gradient, of the run or a layer.
SICK_RULES = frozenset({"GT101", "GT102", "GT201", "GT203", "GT307", "GT401", "GT402"})


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


def parse_fail_on(
    text: str, rules: Sequence[Rule], option: str = "--fail-on"
) -> tuple[Severity | None, frozenset[str]]:
    """`--fail-on`: a severity, `never`, `sick`, or a comma list of rule ids and names (severities and `sick` may stand
    among them). `option` stands in the message.

    Raises `ConfigError` for an unknown word, with what comes near it.
    """
    words = split_list([text])
    levels = [Severity(word.lower()) for word in words if word.lower() in set(Severity)]
    names = [word for word in words if word.lower() not in {*Severity, _NEVER, _SICK}]
    if not words or (len(words) > 1 and _NEVER in map(str.lower, words)):
        raise ConfigError(f"{option}: give a severity, sick, rule ids and names, or never alone")
    try:
        ids = rule_ids(names, rules, option)
    except ConfigError as error:
        unknown = next(name for name in names if repr(name) in error.message)
        raise ConfigError(error.message, near(unknown, rules, (*Severity, _NEVER, _SICK))) from None
    sick = SICK_RULES if _SICK in map(str.lower, words) else frozenset()
    return min(levels, key=lambda level: level.rank, default=None), ids | sick


def without(run: RunReport, selected: frozenset[str], ignored: frozenset[str]) -> RunReport:
    """The run with the selected findings only (all where none is selected) less the ignored. The verdict stays."""
    return keeping(run, [f for f in run.findings if (not selected or f.rule in selected) and f.rule not in ignored])


def keeping(run: RunReport, kept: Sequence[Finding]) -> RunReport:
    """The run with these of its findings, and without the actions that only the others advised. The verdict stays."""
    gone = {f.rule for f in run.findings} - {f.rule for f in kept}
    advice = tuple(one for one in run.next if not one.rules or not gone.issuperset(one.rules))
    return replace(run, findings=tuple(kept), next=advice)


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
