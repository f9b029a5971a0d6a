"""Speed of whole processes beside what users would take instead, each ratio within one run.

    python -m tests.benchmarks.speed [--only NAME ...] [--environments FOLDER] [--inputs FOLDER] [--tries N]

Each peer comes from PyPI in an environment of its own, which is made where it is missing. The inputs are made by
`inputs.py` in the folder given, some 250 MB, and kept; `--only long` makes one of 2 GB more. Tools take turns, and the
least of the tries counts: elapsed time, the processor time of the process and its children, which tells more on a
machine that others use too, and the most memory that one process held.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks import inputs

PEERS = {
    "trainproof": "trainproof==0.22.0",
    "runmedic": "runmedic==0.1.1",
    "losslint": "losslint==0.4.1",
    "trainspotter": "trainspotter==0.2.6",
    "tbparse": "tbparse==0.0.9",
    "mlflow": "mlflow==3.17.2",
    "pandas": "pandas==3.1.1",
}
_TBPARSE = "import sys, tbparse; tbparse.SummaryReader(sys.argv[1]).scalars"
_ACCUMULATOR = (
    "import sys; from tensorboard.backend.event_processing.event_accumulator import EventAccumulator as A\n"
    "a = A(sys.argv[1], {'scalars': 0}); a.Reload(); [a.Scalars(tag) for tag in a.Tags()['scalars']]"
)
_PANDAS = "import sys, pandas; pandas.read_json(sys.argv[1], lines=True)"
_MLFLOW = (
    "import sys; from mlflow import MlflowClient; c = MlflowClient(sys.argv[1])\n"
    "(run,) = c.search_runs([e.experiment_id for e in c.search_experiments()])\n"
    "assert len(c.get_metric_history(run.info.run_id, 'grad_norm')) == 20_000"
)
_IMPORTS = "import polars, numpy, click"
_FASTER = "12 times as fast as tbparse, 3.5 times as the linters"
LONG = "long"  # made and measured only where it is asked for


@dataclass(frozen=True)
class Tool:
    """One command; `peer` names the environment whose bin folder it lies in, None is gradtrend's own."""

    name: str
    command: tuple[str, ...]
    peer: str | None = None


@dataclass(frozen=True)
class Work:
    """What is measured on one input, gradtrend's command first, and how many times as fast it must be as each tool."""

    name: str
    input: str
    tools: tuple[Tool, ...]
    reach: str


def gradtrend(*words: str) -> Tool:
    return Tool("gradtrend analyze", ("python", "-m", "gradtrend", "analyze", "--fail-on", "never", *words))


def code(name: str, text: str, argument: str, peer: str | None = None) -> Tool:
    return Tool(name, ("python", "-c", text, argument), peer)


def event_readers(events: str) -> tuple[Tool, ...]:
    return (
        gradtrend(events),
        Tool("trainproof", ("trainproof", "doctor", events), "trainproof"),
        Tool("runmedic", ("runmedic", "diagnose", events), "runmedic"),
        code("tbparse", _TBPARSE, events, "tbparse"),
        code("EventAccumulator", _ACCUMULATOR, events, "tbparse"),
    )


def works(folder: Path) -> tuple[Work, ...]:
    """All that is measured."""
    events, lightly, parts, rows, layers, runs, small, long, database, store = (
        str(folder / name)
        for name in (
            inputs.EVENTS, inputs.LIGHTLY, inputs.PARTS, inputs.ROWS, inputs.LAYERS, inputs.RUNS, inputs.SMALL,
            inputs.LONG, "mlflow.db", "mlruns",
        )
    )  # fmt: skip
    linters = (
        Tool("losslint", ("losslint", "check", rows), "losslint"),
        Tool("trainproof", ("trainproof", "doctor", rows), "trainproof"),
        Tool("runmedic", ("runmedic", "diagnose", rows), "runmedic"),
    )
    return (
        Work("tensorboard", events, event_readers(events), _FASTER),
        Work("tensorboard, tags of LightlyTrain", lightly, event_readers(lightly), _FASTER),
        Work("tensorboard, 1,000 files", parts, (gradtrend(parts),), "3 s"),
        Work("jsonl", rows, (
            gradtrend(rows), *linters,
            Tool("trainspotter", ("trainspotter", "analyze", rows), "trainspotter"),
            code("pandas, reading alone", _PANDAS, rows, "pandas"),
        ), "3 times as fast as the linters"),
        Work("mlflow sqlite", database, (
            gradtrend(database), code("mlflow client", _MLFLOW, f"sqlite:///{database}", "mlflow"),
        ), "5 times as fast"),
        Work("mlflow files", store, (
            gradtrend(store), code("mlflow client", _MLFLOW, f"file://{store}", "mlflow"),
        ), "5 times as fast"),
        Work("start", small, (gradtrend(small), code(_IMPORTS, _IMPORTS, "")), "at least 0.71 times as fast"),
        Work("layers", layers, (gradtrend(layers),), "2 s"),
        Work("runs", runs, (gradtrend(runs),), "8.3 s on 2 cores: 120 runs a second"),
        Work(LONG, long, (gradtrend(long),), "1 GB of memory and what the columns take"),
    )  # fmt: skip


def bin_folder(peer: str | None, environments: Path) -> Path:
    """Where the commands of a peer lie; its environment is made where it is missing."""
    if peer is None:
        return Path(sys.executable).parent
    folder = environments / PEERS[peer].replace("==", "-")
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, PEERS[peer]], check=True)
        (folder / "installed").touch()
    return folder / "bin"


def prepare(folder: Path, environments: Path, names: Sequence[str]) -> None:
    """Make the inputs that are missing; MLflow's are written by MLflow."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs.make_missing(folder, long=LONG in names)
    for name, address in (
        ("mlflow.db", f"sqlite:///{folder / 'mlflow.db'}"),
        ("mlruns", f"file://{folder / 'mlruns'}"),
    ):
        if not (folder / name).exists() and any(name.startswith("mlflow") for name in names):
            python = bin_folder("mlflow", environments) / "python"
            subprocess.run([python, "-c", inputs.WRITE_MLFLOW, address], check=True, env=ENVIRONMENT)


# The client refuses stores of files unless told otherwise, and would report to its makers. All that was installed is
# compiled; gradtrend from a checkout must be allowed to keep what it compiles.
ENVIRONMENT = os.environ | {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)


class Cost(NamedTuple):
    """What one call took: seconds elapsed, seconds of processor time, and the most memory, in MB."""

    elapsed: float
    processor: float
    memory: float


def cost(tool: Tool, environments: Path) -> Cost:
    """Call a tool once."""
    program, *words = tool.command
    command = [bin_folder(tool.peer, environments) / program, *words]
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=ENVIRONMENT)
        _, _, used = os.wait4(process.pid, 0)
        elapsed = time.perf_counter() - start
        errors.seek(0)
        said = errors.read().decode()
    if "Traceback" in said:
        raise SystemExit(f"{tool.name} failed:\n{said}")
    return Cost(elapsed, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)


def measure(work: Work, environments: Path, tries: int) -> list[Cost]:
    """The least elapsed time, processor time and memory of each tool."""
    rounds = [[cost(tool, environments) for tool in work.tools] for _ in range(tries)]
    return [Cost(*map(min, zip(*costs, strict=True))) for costs in zip(*rounds, strict=True)]


def main() -> None:
    """Print a table a work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    scratch = Path(tempfile.gettempdir())
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="the beginnings of what is measured")
    parser.add_argument("--environments", type=Path, default=scratch / "gradtrend-peers")
    parser.add_argument("--inputs", type=Path, default=scratch / "gradtrend-speed")
    parser.add_argument("--tries", type=int, default=3)
    args = parser.parse_args()
    named = tuple(args.only)
    chosen = [w for w in works(args.inputs) if (w.name.startswith(named) if named else w.name != LONG)]
    prepare(args.inputs, args.environments, [work.name for work in chosen])
    for work in chosen:
        costs = measure(work, args.environments, args.tries)
        print(f"\n{work.name} (reach: {work.reach})\n{'':24}  elapsed   times    processor   times    memory")
        for tool, (elapsed, processor, memory) in zip(work.tools, costs, strict=True):
            times = f"{elapsed / costs[0].elapsed:7.2f}", f"{processor / costs[0].processor:8.2f}"
            version = f"{tool.name} {PEERS[tool.peer].split('==')[1]}" if tool.peer else tool.name
            print(f"{version:28}{elapsed:7.2f} s{times[0]} {processor:10.2f} s{times[1]} {memory:6.0f} MB", flush=True)


if __name__ == "__main__":
    main()
