"""What tells the sick runs of a sweep from the healthy ones, by what each was given."""

from gradtrend.detect.contrast.compare import contrasts

__all__ = ["contrasts"]
