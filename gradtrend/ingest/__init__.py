"""Files -> RunLog. The front of this room; captures have a front of their own.

`find_runs` says which logs below a path are read together, `read_runs` which runs they are, `load_run` joins one. A
format knows its files and nothing of roles, joining or judging.
"""

from gradtrend.ingest.formats import SOURCES, adapters_of
from gradtrend.ingest.reading import POINTS_SCHEMA, Adapter, Reading, ReadOptions
from gradtrend.ingest.reading.columns import Column, series_of
from gradtrend.ingest.runs.find import RunFiles, find_runs
from gradtrend.ingest.runs.load import load_run
from gradtrend.ingest.runs.parts import Choice, RunParts
from gradtrend.ingest.runs.read import read_runs
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
    "RunParts",
    "adapters_of",
    "find_runs",
    "load_run",
    "read_runs",
    "series_of",
    "settings_of",
]
