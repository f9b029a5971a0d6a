"""The command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.processes import SOURCE

ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "COLUMNS")}
ENVIRONMENT |= {"PYTHONPATH": str(SOURCE)}


def words_of(*words: object) -> list[str]:
    """The command line of a call."""
    return [sys.executable, "-m", "gradtrend", *map(str, words)]


def gradtrend(*words: object, folder: Path | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
    """`gradtrend WORDS`, with what it printed."""
    more = {"capture_output": True} | more
    return subprocess.run(words_of(*words), cwd=folder, env=ENVIRONMENT, text=True, check=False, timeout=60, **more)
