"""What tells a trainer's last words from what it says while it trains on."""

from __future__ import annotations

import re

KINDS = ("stopped-on-nan", "crashed")  # of the notes on how a log ends
# The trainer leaves the batch out and goes on.
LEFT_OUT = re.compile(rb"\bskip|\bignor|\bretr(?:y|ies)|(?<!cannot )\bcontinu(?:e|ing)\b", re.IGNORECASE)
# A line that logs: training went on after what stands before it.
LOGGED = re.compile(rb"(?:loss|norm)\W{1,4}[+-]?\d", re.IGNORECASE)
# A number behind `exploded`: a stop at the trainer's own limit, of a finite loss; a part of other patterns.
AT_ITS_LIMIT = rb"(?: to|:| ?=| \()? ?[-+]?\d"
