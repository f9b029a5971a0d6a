"""Gradtrend and five public linters on the same labelled runs: sick runs caught, false alarms on healthy ones.

    python -m tests.benchmarks.peers [FOLDER ...] [--environments FOLDER] [--write FILE]

Each peer comes from PyPI in an environment of its own. It gets each run as a file that it documents (JSON lines, for
gradsnitch CSV) with the metrics under names that all five know: step, loss, grad_norm, lr; per-layer norms as logged.
What counts as an alarm is its highest severity, the one that it makes a CI job fail for. Gradtrend reads the logs as
they were written and finds the metrics itself; an alarm is a finding of severity error.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import gradtrend
from gradtrend.model.words import Role, Severity
from tests.benchmarks.labelled import LABELLED, Labelled, labelled

PLAIN_NAMES = {Role.LOSS: "loss", Role.GRAD_NORM: "grad_norm", Role.LR: "lr"}


@dataclass(frozen=True)
class Peer:
    """A public linter: how it is called on a file (after its environment's bin folder), and how its answer is read."""

    name: str
    version: str
    level: str
    suffix: str
    command: Callable[[str], list[str]]
    alarm: Callable[[Any], bool]


# gradsnitch has no command line for logs; this is the call that its README shows.
_GRADSNITCH = "import sys, json, gradsnitch; print(json.dumps([f.severity for f in gradsnitch.lint_csv(sys.argv[1])]))"
PEERS = (
    Peer("trainproof", "0.22.0", "FAIL", ".jsonl",
         lambda file: ["trainproof", "epoch", file, "--json"],
         lambda answer: bool(answer["worst_verdict"] == "FAIL")),
    Peer("runmedic", "0.1.1", "critical", ".jsonl",
         lambda file: ["runmedic", "diagnose", file, "--json"],
         lambda answer: any(f["severity"] == "critical" for run in answer for f in run["findings"])),
    Peer("trainspotter", "0.2.6", "error", ".jsonl",
         lambda file: ["trainspotter", "analyze", file, "--output", "json"],
         lambda answer: bool(answer["summary"]["by_severity"]["error"])),
    Peer("losslint", "0.4.1", "error", ".jsonl",
         lambda file: ["losslint", "check", file, "--format", "json"],
         lambda answer: bool(answer["summary"]["error"])),
    Peer("gradsnitch", "0.1.0", "error", ".csv",
         lambda file: ["python", "-c", _GRADSNITCH, file],
         lambda answer: "error" in answer),
)  # fmt: skip


@dataclass(frozen=True)
class Score:
    """What one tool did. `unanswered` runs (it crashed, or refused the file) count as "no alarm"."""

    tool: str
    level: str
    caught: int
    sick: int
    false_alarms: int
    healthy: int
    unanswered: int


def install(peer: Peer, environments: Path) -> Path:
    """The bin folder of the peer's environment, made where it is missing."""
    folder = environments / f"{peer.name}-{peer.version}"
    bin_folder = folder / "bin"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [bin_folder / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, f"{peer.name}=={peer.version}"], check=True)
        (folder / "installed").touch()
    return bin_folder


def write_plain(run: Labelled, folder: Path) -> None:
    """The run as `<name>.jsonl` and `<name>.csv` with plain names for total norm, loss and learning rate.

    The loss is the one that reaches furthest; of the other metrics only layers are written, since the peers take what
    they do not know for losses. A single NaN that ends a series is left out: it is the last row of a table, which has
    other things to say, and five tools would fail on it.
    """
    table = pl.concat(map(_without_last_nan, run.log.table.partition_by("series", maintain_order=True)))
    table = table.filter(pl.col("role").is_in([role.value for role in PLAIN_NAMES]))
    rows: dict[int, dict[str, Any]] = {}
    totals = {
        role: _furthest(table.filter(pl.col("role") == role.value, pl.col("layer").is_null())) for role in PLAIN_NAMES
    }
    for series, role, layer, step, value in table.select("series", "role", "layer", "step", "value").iter_rows():
        if layer is None and series not in totals.values():
            continue
        name = PLAIN_NAMES[Role(role)] if layer is None else series
        rows.setdefault(step, {"step": step})[name] = value
    path = folder / run.name.replace("/", "-")
    ordered = [rows[step] for step in sorted(rows)]
    path.with_name(f"{path.name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ordered))
    names = list(dict.fromkeys(name for row in ordered for name in row))
    with path.with_name(f"{path.name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(ordered)


def _without_last_nan(rows: pl.DataFrame) -> pl.DataFrame:
    values = rows["value"]
    single = len(values) > 1 and values[-1] is not None and not math.isfinite(values[-1]) and math.isfinite(values[-2])
    return rows.head(-1) if single else rows


def _furthest(rows: pl.DataFrame) -> str | None:
    """The series with the last step, and of those the one with most points."""
    if not len(rows):
        return None
    reach = rows.group_by("series", maintain_order=True).agg(pl.col("step").max(), pl.len())
    return str(reach.sort("step", "len", descending=True, maintain_order=True)["series"][0])


def ask(peer: Peer, bin_folder: Path, file: Path) -> bool | None:
    """Whether the peer raises an alarm on the file; None where it gives no answer."""
    command = peer.command(str(file))
    done = subprocess.run([bin_folder / command[0], *command[1:]], capture_output=True, text=True, check=False)
    try:
        return peer.alarm(json.loads(done.stdout))
    except (ValueError, KeyError, TypeError):
        return None


def score(tool: str, level: str, runs: Sequence[Labelled], alarms: Sequence[bool | None]) -> Score:
    """Counts of one tool's answers, in the order of the runs."""
    sick = [alarm for run, alarm in zip(runs, alarms, strict=True) if run.sick]
    healthy = [alarm for run, alarm in zip(runs, alarms, strict=True) if run.healthy]
    return Score(tool, level, sick.count(True), len(sick), healthy.count(True), len(healthy), alarms.count(None))


def compare(runs: Sequence[Labelled], environments: Path, scratch: Path) -> list[Score]:
    """Gradtrend's score and the peers'."""
    ours = [any(f.severity is Severity.ERROR for f in run.judged().findings) for run in runs]
    scores = [score(f"gradtrend {gradtrend.__version__}", "error", runs, ours)]
    for run in runs:
        write_plain(run, scratch)
    for peer in PEERS:
        bin_folder = install(peer, environments)
        files = [scratch / (run.name.replace("/", "-") + peer.suffix) for run in runs]
        with ThreadPoolExecutor(2) as pool:
            alarms = list(pool.map(lambda file, p=peer, b=bin_folder: ask(p, b, file), files))
        scores.append(score(f"{peer.name} {peer.version}", peer.level, runs, alarms))
    return scores


def as_markdown(scores: Sequence[Score]) -> str:
    """The table of the README."""
    lines = ["| tool, level | sick runs caught | false alarms on healthy runs |", "|---|---|---|"]
    lines += [f"| {s.tool}, {s.level} | {s.caught}/{s.sick} | {s.false_alarms}/{s.healthy} |" for s in scores]
    return "\n".join(lines)


def main() -> None:
    """Print the table, and write it with the date where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=LABELLED)
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "gradtrend-peers")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the table to this file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = list(labelled(args.folders, Path(folder) / "runs"))
        plain = Path(folder) / "plain"
        plain.mkdir()
        scores = compare(runs, args.environments, plain)
    text = f"{datetime.date.today()}, {len(runs)} runs\n\n{as_markdown(scores)}\n"
    print(text, end="")
    for s in scores:
        if s.unanswered:
            print(f"{s.tool}: no answer on {s.unanswered} runs")
    if args.write:
        args.write.write_text(text)


if __name__ == "__main__":
    main()
