"""Labelled runs: folders that hold truth.jsonl, one run a line, and the runs themselves, plain or gzipped."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from gradtrend.detect.judge import judge
from gradtrend.detect.rules.load import load_rules
from gradtrend.model.report import RunReport
from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Verdict
from gradtrend.pipeline.runs import AnalyzeOptions
from gradtrend.pipeline.series import read_path
from tests.places import FIXTURES

LABELLED = tuple(FIXTURES / "labelled" / name for name in ("zoo", "shapes"))
ALARMS = frozenset({Verdict.EXPLODING, Verdict.NAN_COLLAPSE, Verdict.DIVERGING, Verdict.VANISHING})
RULES = load_rules(None)


@dataclass(frozen=True)
class Labelled:
    """One run and what is true of it. `path` is its folder or file, unpacked."""

    name: str
    path: Path
    truth: dict[str, Any]

    @property
    def accepted(self) -> frozenset[str]:
        """The verdicts that are right; several where people would disagree."""
        return frozenset(self.truth["verdict"])

    @property
    def sick(self) -> bool:
        """Whether every right verdict is an alarm."""
        return self.accepted <= ALARMS

    @property
    def healthy(self) -> bool:
        """Whether no right verdict is one."""
        return not self.accepted & ALARMS

    @cached_property
    def log(self) -> RunLog:
        """The run as read."""
        (log,), _ = read_path(str(self.path), AnalyzeOptions())
        return log

    def judged(self, until: int | None = None) -> RunReport:
        """The run's report; `until` leaves out what was logged after that step, as if it were still running."""
        if until is None:
            return judge(self.log, RULES)
        table = self.log.table.filter(pl.col("step") <= until)
        return judge(RunLog(self.log.run, table, settings=self.log.settings), RULES)


def labelled(folders: Iterable[Path], scratch: Path) -> Iterator[Labelled]:
    """The runs of the folders, gzipped ones unpacked below `scratch`."""
    for folder in folders:
        for line in (folder / "truth.jsonl").read_text().splitlines():
            truth = json.loads(line)
            name = f"{folder.name}/{truth['case']}"
            yield Labelled(name, _unpacked(folder / truth["case"], scratch / name), truth)


def _unpacked(case: Path, target: Path) -> Path:
    packed = list(case.rglob("*.gz")) if case.is_dir() else []
    for file in packed:
        plain = target / file.relative_to(case).with_suffix("")
        plain.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(file) as source, plain.open("wb") as sink:
            shutil.copyfileobj(source, sink)
    return target if packed else case
