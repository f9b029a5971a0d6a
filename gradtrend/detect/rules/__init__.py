"""Rule files: loading, checking and evaluating them, and ordering their next actions."""

from gradtrend.detect.rules.load import load_rules, rule_text

__all__ = ["load_rules", "rule_text"]
