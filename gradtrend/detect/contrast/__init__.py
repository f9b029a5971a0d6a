"""What tells the sick runs of a sweep from the healthy ones, by what each was given."""

from gradtrend.detect.contrast.contrasts import contrasts

__all__ = ["contrasts"]
