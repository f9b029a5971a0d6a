"""Python in a process of its own, which finds the gradtrend that is tested."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import gradtrend

SOURCE = Path(gradtrend.__file__).parents[1]


def python(
    *words: object, folder: Path | None = None, finds: Sequence[Path] = (SOURCE,)
) -> subprocess.CompletedProcess[str]:
    """`python WORDS` in a folder, with what it printed; `finds` are the folders that it imports from."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, finds))}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
