"""What to do next: one ordered list for a run, from its findings and from what else is known of it."""

from gradtrend.detect.counsel.facts import Facts
from gradtrend.detect.counsel.next import next_actions
from gradtrend.detect.counsel.so_far import so_far

__all__ = ["Facts", "next_actions", "so_far"]
