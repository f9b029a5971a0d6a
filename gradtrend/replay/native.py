"""Where captures of a loop's own are written: the address that training code imports; the code is in `recording`."""

from __future__ import annotations

from gradtrend.recording import StepWatch, capture_step, save_capture, snapshot_random_states

__all__ = ["StepWatch", "capture_step", "save_capture", "snapshot_random_states"]
