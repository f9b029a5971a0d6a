"""A log that was read, as JSON."""

from __future__ import annotations

from gradtrend.model.runlog import Source
from gradtrend.report.json.strict import Json


def source_to_dict(source: Source) -> Json:
    """One log that was read, with what was skipped in it."""
    return {
        "format": source.format,
        "path": source.path,
        "series": source.series,
        "points": source.points,
        "skipped": [{"line": s.line, "offset": s.offset, "reason": s.reason} for s in source.skipped],
        "skipped_count": source.skipped_count,
    }
