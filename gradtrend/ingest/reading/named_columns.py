"""What the user calls the columns of a table that has no header."""

from __future__ import annotations

from collections.abc import Sequence

from gradtrend.errors import ConfigError
from gradtrend.ingest.reading.rows import NOT_METRICS

NO_NAME = frozenset({"", "-", "_"})  # of a column that is not wanted


def check_columns(names: Sequence[str]) -> None:
    """Raise `ConfigError` where these cannot name the columns of a table: one twice, or nothing but counters."""
    wanted = [name for name in names if name not in NO_NAME]
    twice = next((name for name in wanted if wanted.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"--columns names {twice!r} twice", "Name a column that is not wanted with a - .")
    if all(name.lower() in NOT_METRICS for name in wanted):
        raise ConfigError(
            f"--columns {','.join(names)!r} names nothing to be judged",
            "Name each column: --columns step,loss,grad_norm",
        )
