"""One entry a format: how a mutated input of it is written.

A format is added by a function `(chance, folder) -> Job` that writes an input below the folder, and its line in
`FORMS`; `adapters` names the adapters of `gradtrend.ingest.formats` that then read it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fuzz import stores
from tests.fuzz.beside import capture, overflow, rules, settings
from tests.fuzz.lines import bent_json_line, bent_row, mutated_lines
from tests.fuzz.logs import (
    PACKABLE,
    Job,
    console,
    csv,
    document,
    download,
    events,
    jsonl,
    packed,
    put,
    seeds,
    wandb,
)  # fmt: skip
from tests.places import EXPLODING, LIGHTLY, RUNS

Write = Callable[[random.Random, Path], Job]


@dataclass(frozen=True, slots=True)
class Form:
    """A format. `share` is how often it is tried, beside the others: the slow ones less."""

    write: Write
    adapters: tuple[str, ...] = ()
    share: float = 1.0


def _named(name: str, make: Callable[[random.Random], bytes]) -> Write:
    def write(chance: random.Random, folder: Path) -> Job:
        path = put(folder, name, make(chance))
        return Job(path if chance.random() < 0.5 else folder)

    return write


def _bare(chance: random.Random, folder: Path) -> Job:
    rows = b"".join(f"{at} {2.5 / (at + 1)} {1e-3 * at} 0\n".encode() for at in range(80))
    mark = chance.choice((b" ", b",", b"\t"))
    data = mutated_lines([rows.replace(b" ", mark)], chance, bent_row)
    columns = chance.choice(
        ("step,loss,grad_norm,-", "loss,grad_norm", "step,loss", "-,loss,-,lr", "step,\x1b[31m,loss,lr")
    )
    return Job(put(folder, "numbers.txt", data), {"columns": columns} if chance.random() < 0.8 else {})


def _put_tree(folder: Path, tree: stores.Tree) -> None:
    for name, data in tree.items():
        with suppress(OSError, ValueError):  # a name that is a folder already, or that the file system does not take
            put(folder, name, data)


@cache
def _tree(folder: Path) -> stores.Tree:
    return stores.tree_of(folder)


def _dvclive(chance: random.Random, folder: Path) -> Job:
    tree = stores.mutated_tree(_tree(RUNS / "dvclive/one_table_a_metric"), chance)
    bent = {
        name: mutated_lines([data or b"\n"], chance, bent_row) if name.endswith(".tsv") else data
        for name, data in tree.items()
    }
    _put_tree(folder / "run", bent)
    return Job(folder / "run")


def _mlruns(chance: random.Random, folder: Path) -> Job:
    _put_tree(folder / "mlruns", stores.mutated_tree(_tree(LIGHTLY / "mlflow_filestore_nan/mlruns"), chance))
    return Job(folder / "mlruns")


def _mlflow(chance: random.Random, folder: Path) -> Job:
    path = folder / chance.choice(("mlflow.db", "store.sqlite"))
    tables = ("metrics", "metrics", "runs", "params", "tags", "experiments")
    stores.mutated_database(path, (EXPLODING / "mlflow.db").read_bytes(), tables, chance)
    return Job(path)


def _trackio(chance: random.Random, folder: Path) -> Job:
    (folder / "trackio").mkdir(parents=True)
    path = folder / "trackio/toy.db"
    stores.mutated_database(
        path, seeds("runs/trackio/two_runs/trackio/toy.db")[0], ("metrics", "metrics", "configs"), chance
    )
    return Job(path if chance.random() < 0.5 else folder)


def _folder(chance: random.Random, folder: Path) -> Job:
    """Logs of several formats that lie together: one run, or several."""
    makers = (*PACKABLE.items(), ("run.wandb", wandb), ("more/train.log", console), ("rank1/metrics.jsonl", jsonl))
    for name, make in chance.sample(makers, chance.choice((2, 2, 3, 5))):
        put(folder, name, make(chance))
    return Job(folder)


def _mmengine(chance: random.Random) -> bytes:
    return mutated_lines(seeds("runs/mmengine/*/*.json"), chance, bent_json_line)


_state = document("runs/trainer-state/*/trainer_state.json")

FORMS: Mapping[str, Form] = {
    "jsonl": Form(_named("metrics.jsonl", jsonl), ("jsonl",)),
    "csv": Form(_named("metrics.csv", csv), ("csv",)),
    "bare": Form(_bare, share=1.5),
    "trainer-state": Form(_named("trainer_state.json", _state), ("trainer-state",)),
    "mmengine": Form(_named("20260101_100000/vis_data/scalars.json", _mmengine), ("mmengine",)),
    "tensorboard-json": Form(_named("run-tag-grad_norm.json", download), ("tensorboard-json",), 1.5),
    "dvclive": Form(_dvclive, ("dvclive",)),
    "console": Form(_named("train.log", console), ("console",)),
    "tensorboard": Form(_named("events.out.tfevents.1700000000.host.1.0", events), ("tensorboard",)),
    "wandb": Form(_named("wandb/run-20260101_000000-fixture0/run-fixture0.wandb", wandb), ("wandb",)),
    "mlflow": Form(_mlflow, ("mlflow",), 0.7),
    "mlruns": Form(_mlruns, ("mlflow",), 0.7),
    "trackio": Form(_trackio, ("trackio",)),
    "packed": Form(packed, share=1.2),
    "overflow": Form(overflow, share=0.8),
    "captures": Form(capture),
    "settings": Form(settings),
    "rules": Form(rules, share=1.8),
    "folder": Form(_folder, share=0.7),
}
