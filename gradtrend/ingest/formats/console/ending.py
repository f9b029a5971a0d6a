"""How a console log ends: with the trainer's own word that it stopped on NaN, or with a crash."""

from __future__ import annotations

import re
from pathlib import Path

from gradtrend.ingest.files.streams import is_compressed
from gradtrend.model.runlog import Note

_END_BYTES = 16 * 1024  # a traceback with its message is a few kilobytes
# As DETR, timm and MAE ("Loss is nan, stopping training"), fairseq ("Minimum loss scale reached") and others say.
_STOPPED = re.compile(
    rb"(?:^|(?<=\r))[^\r\n]*(?:loss is (?:nan|inf|-inf)\b|non-?finite loss|nan(?:s| or infs?)? detected"
    rb"|minimum loss scale reached)[^\r\n]*",
    re.IGNORECASE | re.MULTILINE,
)
# A line that logs: training went on after what stands before it.
_LOGGED = re.compile(rb"(?:loss|norm)\W{1,4}[+-]?\d", re.IGNORECASE)
_TRACEBACK = re.compile(rb"Traceback \(most recent call last\):")
_ERROR = re.compile(rb"^[^\S\r\n]*(?:\[[^\]\r\n]*\]:?\s*)?([\w.]*(?:Error|Exception)\b[^\r\n]*)", re.MULTILINE)
_LONGEST = 200  # characters of a message that are repeated


def ending(path: Path) -> tuple[Note, ...]:
    """What the last lines of a plain text log say of its end; nothing of a compressed one."""
    with path.open("rb") as file:
        if is_compressed(file.read(8)):
            return ()
        file.seek(max(0, path.stat().st_size - _END_BYTES))
        end = file.read(_END_BYTES)
    stopped = next((m for m in reversed(list(_STOPPED.finditer(end))) if not _LOGGED.search(end, m.end())), None)
    if stopped is not None:
        return (Note("stopped-on-nan", f"{path.name} ends with: {_shown(stopped.group())}"),)
    if _TRACEBACK.search(end) is None:
        return ()
    errors = _ERROR.findall(end)
    message = _shown(errors[-1]) if errors else "a traceback"
    return (Note("crashed", f"{path.name} ends with: {message}"),)


def _shown(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").strip()[:_LONGEST]
