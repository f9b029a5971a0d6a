"""Underflow/overflow reports: LightlyTrain's `debug/underflow_overflow_rank{R}.log` and what Hugging Face's
`DebugUnderflowOverflow` prints to the console. Both have the same grammar:

    Detected inf/nan during batch_number=0
    Last 21 forward frames:
    abs min  abs max  metadata
                      layer1.conv2 Conv2d
    4.15e-06 2.70e-01 weight
    0.00e+00      inf output

The last frame is the culprit. A traced batch has frames under `*** Starting batch number=N ***` and no "Detected".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.files.regular import read_regular
from gradtrend.model.capture import Frame, OverflowReport

_FILE_PATTERN = "underflow_overflow_rank*.log"
_INDENT = 18  # spaces before a module name; the root module's name is empty, so its class stands one further right
_MAX_BYTES = 64 * 1024 * 1024  # a report has some hundred lines
_BLANK_LINES_AT_END = 3  # a finished report ends with three; a batch header within the frames has two before it

_RANK = re.compile(r"rank(\d{1,18})(?!\d)")
_LAUNCHER_PREFIX = re.compile(r"^\[(?:rank|default)\d+\]: ?")  # torchrun puts it before each console line
_DETECTED = re.compile(r"Detected inf/nan during batch_number=(\d{1,18})(?!\d)")
_STARTING = re.compile(r"\*\*\* Starting batch number=(\d{1,18}) \*\*\*")
_NUMBER = r"(nan|inf|\d\.\d+e[+-]\d+)"
_MAGNITUDES = re.compile(rf"^\s*{_NUMBER}\s+{_NUMBER}\s+(\S.*)$")
_NO_TENSOR = re.compile(r"^\s*(?:None|not a tensor) +\S+$")
_NOISE = re.compile(r"^(?:abs min +abs max +metadata|Last \d+ forward frames:|\S.* has (?:nans|infs))$")
_MODULE = re.compile(r"^ {2,}\S")
_WITHIN = (_MAGNITUDES, _NO_TENSOR, _NOISE, _MODULE)


@dataclass(slots=True)
class _Module:
    name: str
    class_name: str
    frames: list[Frame] = field(default_factory=list)

    @property
    def is_finite(self) -> bool:
        return all(math.isfinite(frame.abs_max) and math.isfinite(frame.abs_min) for frame in self.frames)


@dataclass(slots=True)
class _Draft:
    batch: int
    detected: bool
    modules: list[_Module] = field(default_factory=list)
    last_header: int | None = None


def find_overflow_reports(run_folder: Path) -> tuple[OverflowReport, ...]:
    """The reports in the debug folder of a run, by rank, in the order written.

    A file that cannot be read is left out: reports are further evidence, and the run's logs can be judged without it.
    """
    files = sorted((run_folder / "debug").glob(_FILE_PATTERN), key=lambda path: (_rank_of(path) or 0, path.name))
    reports: list[OverflowReport] = []
    for path in files:
        try:
            reports += read_overflow_reports(path, path.relative_to(run_folder).as_posix())
        except InputError:
            continue
    return tuple(reports)


def read_overflow_reports(path: Path, shown_as: str) -> tuple[OverflowReport, ...]:
    """The reports in one file; `shown_as` becomes their path. Raises InputError where it cannot be read."""
    try:
        text = read_regular(path, _MAX_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    return parse_overflow_reports(text, shown_as, _rank_of(path))


def _rank_of(path: Path) -> int | None:
    """The rank in a file name such as `underflow_overflow_rank3.log`."""
    match = _RANK.search(path.name)
    return int(match[1]) if match else None


def parse_overflow_reports(text: str, shown_as: str, rank: int | None = None) -> tuple[OverflowReport, ...]:
    """The reports in a text; lines that belong to none (a console log's own) are passed over."""
    return tuple(_finished(draft, shown_as, rank) for draft in _drafts(text.splitlines()))


def _drafts(lines: list[str]) -> Iterator[_Draft]:
    """The reports that the lines are."""
    draft: _Draft | None = None
    blank = 0
    for raw in lines:
        line = _LAUNCHER_PREFIX.sub("", raw).rstrip()
        blank = blank + 1 if not line else 0
        opened = _next_draft(line, draft)
        if opened is None and blank < _BLANK_LINES_AT_END and _stands_within(line):
            if draft is not None:
                _take_in(line, draft)
            continue
        if draft is not None:
            yield draft
        draft = opened
    if draft is not None:
        yield draft


def _next_draft(line: str, current: _Draft | None) -> _Draft | None:
    """The report that a line opens, None where it opens none."""
    detected = _DETECTED.search(line)
    if detected:
        return _Draft(int(detected[1]), detected=True)
    starting = _STARTING.search(line)
    if starting and (current is None or (not current.detected and current.modules)):
        return _Draft(int(starting[1]), detected=False)
    return None


def _stands_within(line: str) -> bool:
    """Whether a line that opens no report is one that reports consist of."""
    return not line or _STARTING.search(line) is not None or any(kind.match(line) for kind in _WITHIN)


def _take_in(line: str, draft: _Draft) -> None:
    """Add what a line of a report says to the open one."""
    magnitudes = _MAGNITUDES.match(line)
    starting = _STARTING.search(line)
    if magnitudes:
        low, high, tensor = magnitudes.groups()
        if draft.modules:  # else the report was cut at its head
            draft.modules[-1].frames.append(Frame(tensor, float(low), float(high)))
    elif starting:
        draft.last_header = int(starting[1])
    elif _MODULE.match(line) and not _NO_TENSOR.match(line):
        draft.modules.append(_module_from(line))


def _module_from(line: str) -> _Module:
    """The module that a line `name Class` names, the name verbatim."""
    label = line[_INDENT:] if line[:_INDENT].isspace() else line.lstrip()
    name, _, class_name = label.rpartition(" ")
    return _Module(name, class_name)


def _batch_of(draft: _Draft, culprit: _Module) -> int:
    """The batch of a report. Hugging Face counts on before it looks at the root module, the last of a batch; the
    header among the frames has the right number, where it is among those kept.
    """
    if not draft.detected or culprit.name:
        return draft.batch
    return draft.last_header if draft.last_header is not None else max(0, draft.batch - 1)


def _finished(draft: _Draft, shown_as: str, rank: int | None) -> OverflowReport:
    """The report that a draft amounts to.

    In a detected one the last frame is the culprit, unless the file was cut before it. In a trace it is the first
    non-finite one: tracing does not stop there, and that batch counts as detected too.
    """
    bad = [index for index, module in enumerate(draft.modules) if not module.is_finite]
    if not bad:
        return OverflowReport(shown_as, draft.batch, draft.detected, rank)
    culprit = draft.modules[bad[-1] if draft.detected else bad[0]]
    before = draft.modules[: draft.modules.index(culprit)]
    finite = [frame.abs_max for module in before for frame in module.frames if math.isfinite(frame.abs_max)]
    return OverflowReport(
        path=shown_as,
        batch=_batch_of(draft, culprit),
        detected=True,
        rank=rank,
        module=culprit.name,
        module_class=culprit.class_name,
        frames=tuple(culprit.frames),
        largest_before=max(finite, default=None),
    )
