"""What lies under `debug/` of a run: captured steps and underflow/overflow reports. The front of this room.

Nothing of a captured file is imported or run here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gradtrend.model.capture import Capture, OverflowReport

if TYPE_CHECKING:  # most runs have no capture to read
    from gradtrend.model.contents import CaptureContents


def debug_evidence(run_folder: Path) -> tuple[tuple[Capture, ...], tuple[OverflowReport, ...]]:
    """The captures and the reports of a run. Their readers are loaded only where there is such a folder."""
    if not (run_folder / "debug").is_dir() and "debug" not in run_folder.resolve().parts:
        return (), ()
    from gradtrend.ingest.captures.overflow_reports import find_overflow_reports

    return find_captures(run_folder), find_overflow_reports(run_folder)


def find_captures(run: Path) -> tuple[Capture, ...]:
    """The captures of a run folder, or the one capture that `run` itself is; as `find.find_captures`."""
    from gradtrend.ingest.captures import find

    return find.find_captures(run)


def read_capture(path: Path) -> CaptureContents:
    """The contents of one capture file. Raises `InputError` for anything that is not a whole capture."""
    from gradtrend.ingest.captures import find

    return find.read_capture(path)
