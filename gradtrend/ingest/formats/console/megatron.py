"""Megatron leaves the loss out of a line where it is NaN: it prints an average only if that is above zero."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gradtrend.ingest.formats.console.lines.line import ConsoleLine
from gradtrend.ingest.formats.console.rows import ConsoleRows
from gradtrend.model.words import Role

_COUNTS = re.compile(rb"number of skipped iterations:\s*(\d+) \| number of nan iterations:\s*(\d+)")


@dataclass(slots=True)
class MegatronLosses:
    """Watches for lines without the loss that the others have."""

    losses: dict[str, int] = field(default_factory=dict)
    without: list[int] = field(default_factory=list)

    def watch(self, number: int, raw: bytes, logged: ConsoleLine) -> None:
        """Look at the line of that number."""
        counts = _COUNTS.search(raw)
        if counts is None:
            return
        losses = [field.name for field in logged.plan.fields if field.role is Role.LOSS]
        for name in losses:
            self.losses[name] = self.losses.get(name, 0) + 1
        skipped, undefined = int(counts[1]), int(counts[2])
        # Iterations that the loss scaler skipped have no loss; without any, only NaN keeps it from being printed.
        if not losses and (undefined or not skipped):
            self.without.append(number)

    def fill(self, rows: ConsoleRows) -> None:
        """Add a NaN for each loss left out; nothing where the log prints no loss at all."""
        if self.losses:
            name = max(self.losses, key=lambda key: self.losses[key])
            for number in self.without:
                rows.add_missing(name, number)
