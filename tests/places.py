"""Where the tests find things."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "fixtures"
RUNS = FIXTURES / "runs"
LIGHTLY = RUNS / "lightly"
CAPTURES = FIXTURES / "captures"
EXPLODING = LIGHTLY / "exploding_lr_nan"  # LightlyTrain with a learning rate far too high: every logger, ends in NaN
