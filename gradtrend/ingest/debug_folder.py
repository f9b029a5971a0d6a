"""What lies under `debug/` of a run: captures and underflow/overflow reports."""

from __future__ import annotations

from pathlib import Path

from gradtrend.model.capture import Capture, OverflowReport


def debug_evidence(run_folder: Path) -> tuple[tuple[Capture, ...], tuple[OverflowReport, ...]]:
    """The captures and the reports of a run. Their readers are loaded only where there is such a folder."""
    if not (run_folder / "debug").is_dir() and "debug" not in run_folder.resolve().parts:
        return (), ()
    from gradtrend.ingest.captures import find_captures
    from gradtrend.ingest.overflow_reports import find_overflow_reports

    return find_captures(run_folder), find_overflow_reports(run_folder)
