"""A rule file as a mapping, whatever stands at its path: a pipe is not waited for, and a bomb is not parsed."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LARGEST_FILE = 128 * 1024  # bytes: twenty times the largest of the shipped rules
DEEPEST_KEY = 50  # parts of a dotted key, which cost time by the square; a rule's have two
_TOO_DEEP = re.compile(rf"""(?<!["'\w-])(?:["'\w-]++[ \t]*+\.[ \t]*+){{{DEEPEST_KEY}}}""")


def text_of(file: Path, largest: int = LARGEST_FILE, kind: str = "a rule") -> str:
    """The text of a rule file, or of another `kind` that may be `largest` bytes. Raises OSError where it is no file or
    cannot be read, ValueError where it is too large, no UTF-8 or has keys too deep to be parsed in good time.
    """
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("not a file")
        data = opened.read(largest + 1)
    if len(data) > largest:
        raise ValueError(f"larger than {largest >> 10} KiB, too large for {kind}")
    text = data.decode("utf-8").replace("\r\n", "\n")
    if _TOO_DEEP.search(text):
        raise ValueError(f"a key of more than {DEEPEST_KEY} parts")
    return text


def parsed(text: str) -> Mapping[str, Any]:
    """The mapping that a text in TOML is. Raises ValueError, or RecursionError for a text nested too deep."""
    return tomllib.loads(text)
