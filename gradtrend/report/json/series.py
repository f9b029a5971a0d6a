"""What was found in a run, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from gradtrend.model.runlog import RunLog
from gradtrend.report.json.source import source_to_dict
from gradtrend.report.json.strict import Json

if TYPE_CHECKING:  # the help of all commands loads this file
    from gradtrend.model.series import LoggedSeries


def log_to_dict(log: RunLog, series: Sequence[LoggedSeries]) -> Json:
    """One run's sources and series."""
    return {
        "run": log.run,
        "name": log.name,
        "sources": [source_to_dict(source) for source in log.sources],
        "series": [asdict(one) for one in series],
        "notes": [
            {"kind": n.kind, "message": n.message, "metric": n.metric, "first_step": n.first_step} for n in log.notes
        ],
        "captures": [{"path": c.path, "kind": c.kind, "step": c.step} for c in log.captures],
    }
