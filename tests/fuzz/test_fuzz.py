"""A short run of the fuzzing that `run.py` does for long, with a fixed seed; and that it would tell what breaks."""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradtrend.ingest.formats import ADAPTERS
from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions
from tests.fuzz import execution
from tests.fuzz.forms import FORMS
from tests.fuzz.run import run

EXECUTIONS = 25  # a format: some 8 s in all


@pytest.mark.parametrize("form", FORMS)
def test_no_mutated_log_breaks_what_is_promised(tmp_path: Path, form: str) -> None:
    (tally,) = run([form], EXECUTIONS, float("inf"), 16, tmp_path).values()
    assert tally.executions == EXECUTIONS
    assert not tally.broken


def test_every_adapter_has_a_mutator() -> None:
    assert {adapter.name for adapter in ADAPTERS} == {name for form in FORMS.values() for name in form.adapters}


@pytest.mark.parametrize("form", [name for name, form in FORMS.items() if form.adapters])
def test_mutated_logs_are_still_read_as_their_format(tmp_path: Path, form: str) -> None:
    read = set()
    for number in range(12):
        place = tmp_path / str(number)
        place.mkdir()
        job = FORMS[form].write(random.Random(number), place)
        reports, _ = analyze_paths([str(job.path)], AnalyzeOptions())
        read |= {source.format for report in reports for source in report.sources}
    assert set(FORMS[form].adapters) <= read


def _beside(paths: list[str]) -> None:
    Path(paths[0]).with_name("left.tmp").write_text("")


def _changed(paths: list[str]) -> None:
    path = Path(paths[0])
    (path if path.is_file() else next(path.iterdir())).write_bytes(b"")


def _left(paths: list[str]) -> None:
    import tempfile

    tempfile.mkdtemp()


def _raises(paths: list[str]) -> None:
    raise KeyError("a bug")


def _warns(paths: list[str]) -> None:
    warnings.warn("divide by zero", RuntimeWarning, stacklevel=1)


def _prints(paths: list[str]) -> None:
    print("a word", file=sys.__stderr__, flush=True)


def _hangs(paths: list[str]) -> None:
    time.sleep(5)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (_beside, "the input was changed"),
        (_changed, "the input was changed"),
        (_left, "left among the temporary files"),
        (_raises, "KeyError"),
        (_warns, "it was warned: RuntimeWarning"),
        (_prints, "it was warned: a word"),
        (_hangs, "no end after"),
    ],
)
def test_what_breaks_a_promise_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[list[str]], None], told: str
) -> None:
    def faulty(paths: list[str], options: AnalyzeOptions) -> Any:
        fault(paths)
        return analyze_paths(paths, options)

    monkeypatch.setattr(execution, "analyze_paths", faulty)
    monkeypatch.setattr(execution, "SECONDS", 1.0)
    what = execution.Bench(tmp_path).execute("jsonl", 16, 0)
    assert what is not None
    assert told in what


def test_what_breaks_is_kept_and_can_be_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "analyze_paths", lambda paths, options: _raises(paths))
    (tally,) = run(["jsonl"], 2, float("inf"), 16, tmp_path / "work", tmp_path / "kept").values()
    assert [number for found in tally.broken.values() for number, _ in found] == [0, 1]
    kept = tmp_path / "kept" / "jsonl-16-1"
    FORMS["jsonl"].write(random.Random("16 jsonl 1"), tmp_path / "again")
    assert (kept / "input/metrics.jsonl").read_bytes() == (tmp_path / "again/metrics.jsonl").read_bytes()
    assert "KeyError" in (kept / "what.txt").read_text()
