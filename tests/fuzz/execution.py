"""One execution: a mutated input is judged as a caller would, and whatever may never happen is looked for.

Only the product's own errors come out; it ends; the JSON report is strict and fits its schema; the text report moves
no cursor; nothing is printed or warned; the input is as before, with nothing beside it and nothing left among the
temporary files; and the memory of the process stays bounded.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import tempfile
import traceback
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import jsonschema

import gradtrend
from gradtrend.model.report import Report
from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import options_from
from gradtrend.report import REPORTERS, Style
from gradtrend.report.json.replay import replays_to_dict
from gradtrend.report.json.report import schema
from gradtrend.report.json.strict import strict_json
from gradtrend.report.text.replay import render_replays
from tests.fuzz.forms import FORMS
from tests.fuzz.logs import Job

SECONDS = 20.0  # for an input of some ten kB, which takes some ms
MOST_MEMORY = 1500 << 20  # bytes: torch is never loaded, and the seeds are small
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_OPTIONS: dict[str, Any] = {
    "metric": None, "loss": None, "lr": None, "source": "auto", "run_id": None, "experiment": None, "newest": False,
    "columns": (), "rules_dir": None, "select": (), "ignore": (),
}  # fmt: skip
_STYLES = (Style(), Style(verbose=True), Style(unicode=False, width=40), Style(verbose=True, width=200))


class Hang(BaseException):
    """An execution that did not end. No `Exception`, or a reader could take it for damage."""


class BrokenError(AssertionError):
    """What was promised and did not hold."""


@dataclass(slots=True)
class Bench:
    """Where executions take place: a folder of inputs and one of temporary files, and what is known of the process."""

    folder: Path
    temporary: Path = field(init=False)
    validator: Any = field(init=False)
    memory: int = MOST_MEMORY

    def __post_init__(self) -> None:
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir(parents=True, exist_ok=True)
        self.validator = jsonschema.Draft202012Validator(schema())

    def execute(self, form: str, seed: int, number: int) -> str | None:
        """What one execution broke, None where nothing; its input then lies in the folder `input`."""
        place = self.folder / "input"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        chance = random.Random(f"{seed} {form} {number}")
        job = FORMS[form].write(chance, place)
        before = state_of(place)
        try:
            with _watched(self.temporary) as warned:
                self._judged(job, chance)
            self._unchanged(before, place, warned)
        except Hang:
            return f"no end after {SECONDS:.0f} s\n{traceback.format_exc()}"
        except BrokenError as error:
            return str(error)
        except Exception:
            return traceback.format_exc()
        return None

    def _judged(self, job: Job, chance: random.Random) -> None:
        """Judge and render it in every way, and check what comes out."""
        options = _OPTIONS | dict(job.options)
        try:
            reports, failures = analyze_paths([str(job.path)], replace(options_from(**options), replay=job.replay))
        except gradtrend.ConfigError:
            return
        for failure in failures:
            if failure.bug:
                raise BrokenError(failure.bug)
        report = Report(0, tuple(reports), tuple(failures))
        self._is_strict(REPORTERS["json"](report, Style()))
        _is_tame(REPORTERS["text"](report, chance.choice(_STYLES)))
        if chance.random() < 0.1:
            _by_the_library(job)
        if job.replay:
            _inspected(job)

    def _is_strict(self, text: str) -> None:
        if not text.isascii():
            raise BrokenError("the JSON report is not ASCII")
        found = json.loads(text, parse_constant=_refuse)
        for error in self.validator.iter_errors(found):
            raise BrokenError(
                f"the JSON report does not fit its schema at {list(error.absolute_path)}: {error.message[:300]}"
            )

    def _unchanged(self, before: dict[str, tuple[int, int, str]], place: Path, warned: list[str]) -> None:
        after = state_of(place)
        if after != before:
            changed = sorted({name for name in {*before, *after} if before.get(name) != after.get(name)})
            raise BrokenError(f"the input was changed: {changed}")
        if warned:
            raise BrokenError("it was warned: " + "; ".join(warned[:3]))
        left = list(self.temporary.iterdir())
        if left:
            for path in left:
                shutil.rmtree(path, ignore_errors=True)
            raise BrokenError(f"left among the temporary files: {[path.name for path in left]}")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if memory > self.memory:
            self.memory = 2 * memory  # said once for so much
            raise BrokenError(f"the process has taken {memory >> 20} MiB")


def state_of(folder: Path) -> dict[str, tuple[int, int, str]]:
    """What lies in a folder: for each file its mode, the time of its last change and its checksum."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(root, name)  # noqa: PTH118 (a few thousand times a second)
            state = os.stat(path)  # noqa: PTH116
            digest = ""
            if name in files:
                with open(path, "rb") as file:  # noqa: PTH123
                    digest = hashlib.blake2b(file.read()).hexdigest()
            found[path] = (state.st_mode, state.st_mtime_ns, digest)
    return found


def _refuse(token: str) -> NoReturn:
    raise BrokenError(f"the JSON report holds {token}")


def _is_tame(text: str) -> None:
    for char in text:
        if not (char.isascii() and char.isprintable()) and char != "\n" and unicodedata.category(char) in _UNSAFE:
            raise BrokenError(f"the text report holds {char!r}: {text[max(0, text.index(char) - 80) :][:200]!r}")


def _by_the_library(job: Job) -> None:
    """The functions of the package: their errors are the product's, a bug is a RuntimeError."""
    for function in (gradtrend.analyze, lambda path, **options: list(gradtrend.analyze_all(path, **options))):
        try:
            function(job.path, **job.options)
        except gradtrend.GradtrendError:
            continue


def _inspected(job: Job) -> None:
    try:
        replays = gradtrend.replay(job.path)
    except gradtrend.GradtrendError:
        return
    json.loads(strict_json(replays_to_dict(replays, 0)), parse_constant=_refuse)
    _is_tame(render_replays(replays, Style()))


@contextmanager
def _watched(temporary: Path) -> Iterator[list[str]]:
    """Within, temporary files are made in a folder of their own, what does not end is stopped, and what is warned, or
    written to standard error, is kept.
    """
    kept: list[str] = []
    own, tempfile.tempdir = tempfile.tempdir, str(temporary)
    before = signal.signal(signal.SIGALRM, _stop)
    real = os.dup(2)
    with tempfile.TemporaryFile(dir=temporary.parent) as printed, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        os.dup2(printed.fileno(), 2)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            yield kept
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            os.dup2(real, 2)
            os.close(real)
            tempfile.tempdir = own
            printed.seek(0)
            kept += [f"{one.category.__name__}: {one.message} ({one.filename}:{one.lineno})" for one in warned or ()]
            kept += [line.decode("utf-8", "replace") for line in printed.read(2000).splitlines()]


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Hang
