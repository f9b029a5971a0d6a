"""Files -> RunLog. The front of this room; captures have a front of their own.

`find_runs` says which logs below a path are read together, `read_runs` which runs they are, `load_run` joins one. A
format knows its files and nothing of roles, joining or judging.
"""

from gradtrend.ingest.files.regular import size_and_time
from gradtrend.ingest.formats import SOURCES, adapters_of
from gradtrend.ingest.reading import POINTS_SCHEMA, SQLITE_COMPANIONS, Adapter, Reading, ReadOptions
from gradtrend.ingest.reading.columns import Column, nulls_told_apart, series_of
from gradtrend.ingest.reading.named_columns import check_columns
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns
from gradtrend.ingest.runs.finding.addresses import is_remote, shown_address
from gradtrend.ingest.runs.finding.find import find_runs, first_runs, listed_below
from gradtrend.ingest.runs.finding.in_memory import run_of_table
from gradtrend.ingest.runs.finding.listing import Listing, listing_of, signatures
from gradtrend.ingest.runs.finding.localized import Local, localized, shown_path
from gradtrend.ingest.runs.finding.places import home_of, natural, place_of
from gradtrend.ingest.runs.finding.run_files import RunFiles
from gradtrend.ingest.runs.finding.tree import Known
from gradtrend.ingest.runs.load import load_run
from gradtrend.ingest.runs.parts import Choice, RunParts
from gradtrend.ingest.runs.read import read_runs
from gradtrend.ingest.settings.folder import is_settings_file, settings_of

__all__ = [
    "POINTS_SCHEMA",
    "SOURCES",
    "SQLITE_COMPANIONS",
    "Adapter",
    "Choice",
    "Column",
    "Known",
    "Listing",
    "Local",
    "ReadOptions",
    "Reading",
    "RunFiles",
    "RunParts",
    "StoredRun",
    "WantedRuns",
    "adapters_of",
    "check_columns",
    "find_runs",
    "first_runs",
    "home_of",
    "is_remote",
    "is_settings_file",
    "listed_below",
    "listing_of",
    "load_run",
    "localized",
    "natural",
    "nulls_told_apart",
    "place_of",
    "read_runs",
    "run_of_table",
    "series_of",
    "settings_of",
    "shown_address",
    "shown_path",
    "signatures",
    "size_and_time",
]
