"""Files -> RunLog. The front of this room; captures have a front of their own.

`find_runs` says which logs below a path are one run, `load_runs` reads and joins them. A format knows its files and
nothing of roles, joining or judging.
"""

from gradtrend.ingest.formats import SOURCES, adapters_of
from gradtrend.ingest.reading import POINTS_SCHEMA, Adapter, Reading, ReadOptions
from gradtrend.ingest.reading.columns import Column, series_of
from gradtrend.ingest.reading.named_columns import check_columns
from gradtrend.ingest.runs.find import RunFiles, find_runs
from gradtrend.ingest.runs.load import Choice, load_runs
from gradtrend.ingest.settings.folder import settings_of

__all__ = [
    "POINTS_SCHEMA",
    "SOURCES",
    "Adapter",
    "Choice",
    "Column",
    "ReadOptions",
    "Reading",
    "RunFiles",
    "adapters_of",
    "check_columns",
    "find_runs",
    "load_runs",
    "series_of",
    "settings_of",
]
