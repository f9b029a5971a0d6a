"""What a replay found: frozen types that a report can print and serialise."""

from __future__ import annotations

# How a step can be computed. "float32" is no autocast (the parameters' own type); "-scaled" is with loss scaling;
# "-true" has the parameters themselves in that type.
PRECISIONS = (
    "float32", "bfloat16", "float16", "float16-scaled", "float64", "float32-tf32", "bfloat16-true", "float16-true",
)  # fmt: skip
