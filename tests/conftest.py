"""Property tests are not timed: a busy machine is no fault of the code."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
os.environ.pop("COLUMNS", None)  # which processes of pytest-xdist have, and no user has said
