"""The colours of the picture, which is on white paper."""

from __future__ import annotations

from collections.abc import Mapping

# Colour and opacity.
LOOKS: Mapping[str, tuple[str, float]] = {
    "ink": ("#16191d", 1.0),
    "quiet": ("#59626d", 1.0),
    "grid": ("#e3e6ea", 1.0),
    "line": ("#1d4f9e", 1.0),
    "band": ("#1e6edc", 0.12),
    "unseen": ("#8a939d", 0.18),
    "wash": ("#c8141e", 0.13),
    "bad": ("#b8141f", 1.0),
    "fair": ("#8a5a00", 1.0),
    "good": ("#14713a", 1.0),
    "onset": ("#a03c00", 1.0),
}
