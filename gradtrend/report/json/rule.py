"""A rule as JSON."""

from __future__ import annotations

from gradtrend.model.rule import Condition, Rule
from gradtrend.report.json.strict import Json


def rule_to_dict(rule: Rule) -> Json:
    """One rule as plain dicts and lists: the keys of a rule's file, but for `when`, which lists all conditions.

    Those of an alternative name it.
    """
    return {
        "id": rule.id,
        "name": rule.name,
        "severity": rule.severity,
        "summary": rule.summary,
        "help": rule.help,
        "message": rule.message,
        "trend": rule.trend,
        "verdict": rule.verdict,
        "cause": rule.cause,
        "select": {"role": rule.role, "scope": rule.scope, "note": rule.note, "replay": rule.replay},
        "when": [
            *(_condition_to_dict(condition, None) for condition in rule.when),
            *(_condition_to_dict(condition, one.name) for one in rule.alternatives for condition in one.when),
        ],
        "hold": {"points": rule.hold.points, "fraction": rule.hold.fraction},
        "unless": list(rule.unless),
        "forbids_verdict": rule.forbids_verdict,
        "blind": rule.blind,
        "actions": [
            {"id": action.id, "text": action.text, "when": action.when, "text_for": dict(action.text_for)}
            for action in rule.actions
        ],
        "shows": {
            "frameworks": list(rule.shows.frameworks),
            "kinds": list(rule.shows.kinds),
            "signs": list(rule.shows.signs),
            "metrics": list(rule.shows.metrics),
        },
        "threads": list(rule.threads),
    }


def _condition_to_dict(condition: Condition, alternative: str | None) -> Json:
    """A condition, and the alternative that it belongs to.

    `case` says the same: rule files once called it so, and who reads this JSON by that name finds it still.
    """
    return {
        "measure": condition.measure,
        "above": condition.above,
        "below": condition.below,
        "alternative": alternative,
        "case": alternative,
        "missing": condition.missing,
        "why": condition.why,
    }
