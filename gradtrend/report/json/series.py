"""What was found in a run, as JSON."""

from __future__ import annotations

from collections.abc import Callable

from gradtrend.model.runlog import RunLog
from gradtrend.report.json.source import source_to_dict
from gradtrend.report.json.strict import Json
from gradtrend.report.wording.series_rows import series_rows


def log_to_dict(log: RunLog, explain: Callable[[str], str]) -> Json:
    """One run's sources and series. `explain` says why a metric has its role."""
    return {
        "run": log.run,
        "sources": [source_to_dict(source) for source in log.sources],
        "series": [row | {"why": explain(row["metric"])} for row in series_rows(log)],
        "notes": [
            {"kind": n.kind, "message": n.message, "metric": n.metric, "first_step": n.first_step} for n in log.notes
        ],
        "captures": [{"path": c.path, "kind": c.kind, "step": c.step} for c in log.captures],
    }
