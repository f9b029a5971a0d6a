"""What a package is written with that brings formats or reports of its own.

docs/plugins.md says how it makes them known.

A format is an `Adapter` under the entry point group `gradtrend.formats`: its `read` gives each part of a run as a
`Reading`, whose tables `series_of` makes of `Column`s. A report is a function of a `Report` and a `Style` that returns
text, under `gradtrend.reports`. The name of the entry point is the adapter's `name`, or that of the report, and what
`--source` or `--format` takes. What a `Report` holds, and the errors that `read` may raise (`InputError`), are in
`gradtrend`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradtrend.ingest import POINTS_SCHEMA, Adapter, Column, Reading, ReadOptions, StoredRun, WantedRuns, series_of
    from gradtrend.model.report import Failure, Report
    from gradtrend.model.runlog import Note, Settings, Skipped
    from gradtrend.report import Style

__all__ = [
    "POINTS_SCHEMA",
    "Adapter",
    "Column",
    "Failure",
    "Note",
    "ReadOptions",
    "Reading",
    "Report",
    "Settings",
    "Skipped",
    "StoredRun",
    "Style",
    "WantedRuns",
    "series_of",
]

# Where each name is, so that a report does not load what reads logs (polars), nor `import gradtrend.plugins` anything.
_PLACES = {
    "gradtrend.ingest": (
        "POINTS_SCHEMA",
        "Adapter",
        "Column",
        "ReadOptions",
        "Reading",
        "StoredRun",
        "WantedRuns",
        "series_of",
    ),
    "gradtrend.model.report": ("Failure", "Report"),
    "gradtrend.model.runlog": ("Note", "Settings", "Skipped"),
    "gradtrend.report": ("Style",),
}


if not TYPE_CHECKING:  # where every misspelt name would be of any type

    def __getattr__(name: str) -> Any:
        """The object of that name, when it is first asked for."""
        from importlib import import_module

        for place, names in _PLACES.items():
            if name in names:
                return getattr(import_module(place), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
