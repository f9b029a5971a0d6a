"""Python in a process of its own, which finds the gradtrend that is tested."""

from __future__ import annotations

import ctypes
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


def without_override(*words: object) -> subprocess.CompletedProcess[str]:
    """`python WORDS` as somebody to whom permissions apply: root without the two capabilities to pass them over."""
    command = [sys.executable, *map(str, words)]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    drop = _drop_override if sys.platform == "linux" and not os.geteuid() else None
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, preexec_fn=drop)


def _drop_override() -> None:
    dac_override, dac_read_search, drop_from_bounding_set = 1, 2, 24  # linux/capability.h, linux/prctl.h
    library = ctypes.CDLL(None, use_errno=True)
    for capability in (dac_override, dac_read_search):
        if library.prctl(drop_from_bounding_set, capability, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
