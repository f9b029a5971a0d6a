"""Trees of runs, and scans of them, in few words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

from gradtrend.model.many.record import Record
from gradtrend.model.words import Severity, Verdict
from gradtrend.pipeline.runs import AnalyzeOptions
from gradtrend.pipeline.scan.engines import Engine, here
from gradtrend.pipeline.scan.scan import Scanned, scan_all
from gradtrend.pipeline.scan.wanted import Wanted
from tests.ingest.runs.writers import KINDS, csv, fit, jsonl


def runs(root: Path, count: int, first: int = 0, points: int = 24) -> Path:
    """So many runs in nested folders, of all kinds."""
    for number in range(first, first + count):
        folder = root / f"lr-{number % 3}" / f"run-{number}"
        (csv if number % 5 == 4 else jsonl)(
            folder / ("metrics.csv" if number % 5 == 4 else "metrics.jsonl"), fit(KINDS[number % 4], number, points)
        )
        (folder / "hparams.yaml").write_text(f"learning_rate: 0.{number + 1}\n")
    return root


def scan(
    *paths: Path | str,
    state: Path | None = None,
    wanted: Wanted = Wanted(),  # noqa: B008  frozen
    options: AnalyzeOptions | None = None,
    engine: Engine | None = None,
    leave_out: Iterable[Path] = (),
) -> Scanned:
    """A scan in this process."""
    done = scan_all([*map(str, paths)], options or AnalyzeOptions(), wanted, engine or here(0), state, leave_out)
    assert len({record.run for record in done.records}) == len(done.records)
    return done


def said(scanned: Scanned) -> list[str]:
    """Records in such a form that NaN is the same as NaN."""
    return [repr(record) for record in scanned.records]


def below(records: Sequence[Record], root: Path) -> list[Record]:
    """Records as they are whatever the folder is called."""
    return [replace(record, run=record.run.removeprefix(str(root)), modified=None) for record in records]


def records() -> st.SearchStrategy[Record]:
    """Any record."""
    text = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
        ["a\n\x1b[31m", "é,\"'\\", "=1+1", "\x00"]
    )
    number = st.none() | st.floats()
    count = st.none() | st.integers(-(2**63) + 1, 2**63 - 1)
    texts = st.lists(text, max_size=3).map(tuple)
    scalar = (
        st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
    )
    return st.builds(
        Record,
        run=text,
        name=st.none() | text,
        verdict=st.none() | st.sampled_from(Verdict),
        confidence=st.none() | st.floats(0, 1).map(abs),
        severity=st.none() | st.sampled_from(Severity),
        onset_step=count,
        brief=text,
        why=text,
        rules=texts,
        next=texts,
        metric=st.none() | text,
        points=st.integers(0, 2**62),
        last_step=count,
        baseline=number,
        peak=number,
        last=number,
        last_loss=number,
        nonfinite_step=count,
        cause=st.none() | text,
        formats=texts,
        size=st.none() | st.integers(0, 2**62),
        modified=st.none() | st.floats(-2e9, 2e11).map(lambda seconds: round(seconds, 6) + 0.0),
        hyperparameters=st.dictionaries(text, scalar | text, max_size=3).map(lambda found: tuple(found.items())),
        failure=st.none() | text,
        hint=st.none() | text,
    )
