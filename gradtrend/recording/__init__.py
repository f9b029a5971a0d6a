"""Captures from a live loop: one training step, kept so that `gradtrend replay` can run it again.

`capture_step` watches a step and keeps it where it goes wrong; `save_capture` keeps one that the caller has judged.
Importing this package imports torch.
"""

from __future__ import annotations

from gradtrend.recording.capture import save_capture
from gradtrend.recording.random_states import snapshot_random_states
from gradtrend.recording.step import StepWatch, capture_step

__all__ = ["StepWatch", "capture_step", "save_capture", "snapshot_random_states"]
