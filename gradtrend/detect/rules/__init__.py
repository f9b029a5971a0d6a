"""Rule files: loading, checking and evaluating them, setting their limits, and ordering their next actions."""

from gradtrend.detect.rules.limits import Limits, limit_problems, limits_of, with_limits
from gradtrend.detect.rules.load import load_rules, rule_text
from gradtrend.detect.rules.toml import parsed, text_of

__all__ = [
    "Limits",
    "limit_problems",
    "limits_of",
    "load_rules",
    "parsed",
    "rule_text",
    "text_of",
    "with_limits",
]
