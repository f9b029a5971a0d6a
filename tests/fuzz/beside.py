"""Mutated files that are no logs: captures, overflow reports, settings beside a log, rules of the user's own."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from tests.fuzz import captured
from tests.fuzz.lines import bent_console, bent_document, mutated_lines
from tests.fuzz.logs import Job, put, seeds
from tests.fuzz.values import NAMES, NUMBERS, bent_text, encoded, nested
from tests.places import CAPTURES, FIXTURES, ROOT


def overflow(chance: random.Random, folder: Path) -> Job:
    report = mutated_lines(seeds("runs/lightly/broken_uo/debug/*.log"), chance, bent_console)
    if chance.random() < 0.3:  # printed to the console
        return Job(put(folder, "train.log", chance.choice(seeds("runs/console/*/*.log")) + report))
    rank = chance.choice(("0", "1", "00", "-1", "9" * 18, "9" * 30, "x", "٣"))
    put(folder, f"debug/underflow_overflow_rank{rank}.log", report)
    put(folder, "train.log", b"".join(seeds("runs/lightly/broken_uo/train.log")[0].splitlines(True)[:90]))
    return Job(folder)


@cache
def _captures() -> list[captured.Members]:
    large = captured.members_of(next(CAPTURES.rglob("nan_capture.pt")).read_bytes())
    finite = captured.small_capture(
        loss=2.5, gradient_norm=9e9, bad_parameters=[], outside={"ema": captured.Tensor("3", 4)}
    )
    return [captured.small_capture()] * 12 + [finite] * 6 + [large]


def capture(chance: random.Random, folder: Path) -> Job:
    data = captured.mutated_capture(_captures(), chance)
    name = chance.choice(("debug/nan_capture/rank0/nan_capture.pt", "debug/step_7.gradtrend.pt"))
    path = put(folder, name, data)
    put(folder, "metrics.jsonl", seeds("rules/GT101/quiet/*/metrics.jsonl")[0])
    return Job(folder if chance.random() < 0.7 else path, replay=True)


_SETTINGS = (
    "hparams.yaml", "hparams.yaml", "hparams.json", "training_args.json", "args.yaml", ".hydra/config.yaml",
    ".hydra/overrides.yaml", "params.json", "ds_config.json", "opt.yaml",
)  # fmt: skip
_YAML = (
    b"a: &a [*a, *a]\n", b"a: &a {b: *a}\n", b"? [1, 2]\n: 3\n", b"!!python/object/apply:os.system [ls]\n", b"- " * 300,
    b"lr: 1e400\n", b"lr: 0x" + b"f" * 300 + b"\n", b"lr: 2001-01-01\n", b"lr: 1:60:60\n", b"<<: {lr: 1}\n",
    b"%YAML 9.9\n---\n",
    b"lr: !!float nan\n", b"lr: !!int '1_000'\n", b"lr: !!binary ////\n", b"{" * 400, b"lr: .nan\n", b"lr: |\n  1\n",
    b"\t- x\n",
)  # fmt: skip


def settings(chance: random.Random, folder: Path) -> Job:
    name = chance.choice(_SETTINGS)
    found = seeds("runs/lightly/*/hparams.yaml", "captures/*/hparams.yaml")
    if name.endswith(".json"):
        plain = (
            b'{"lr": 0.001, "max_grad_norm": 1.0, "bf16": true, "optimizer": {"name": "adamw", "params": {"lr": 1e-4}}}'
        )
        data = bent_document(plain, chance)
    else:
        lines = mutated_lines(found, chance, bent_text)
        at = chance.randrange(len(lines) + 1)
        data = lines if chance.random() < 0.6 else lines[:at] + chance.choice(_YAML) + lines[at:]
    put(folder, name, data)
    log = chance.choice(("metrics.jsonl", "result.json"))
    put(folder, log, b"".join(chance.choice(seeds("rules/GT1*/*/*/metrics.jsonl")).splitlines(True)[:60]))
    return Job(folder)


@cache
def _rule_files() -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "rules").rglob("*.toml"))]


def rules(chance: random.Random, folder: Path) -> Job:
    """A rule file of the user's own, and a run on which it is tried."""
    data = mutated_lines(_rule_files(), chance, _bent_toml)
    put(folder, "rules/GT101-mine.toml", data)
    runs = sorted((FIXTURES / "rules").glob("*/fires/*/metrics.jsonl"))
    path = put(folder, "metrics.jsonl", b"".join(chance.choice(runs).read_bytes().splitlines(True)[:80]))
    return Job(path, {"rules_dir": folder / "rules"})


def _bent_toml(line: bytes, chance: random.Random) -> bytes:
    match chance.randrange(6):
        case 0:
            name, mark, _ = line.partition(b"=")
            texts = (
                *NUMBERS,
                '"{level}"',
                '"{x.__class__}"',
                '"{0!r:>9999999}"',
                "[]",
                "{}",
                "1979-05-27",
                '"""',
                nested(chance),
            )
            return name + mark + b" " + encoded(chance.choice(texts)) + b"\n"
        case 1:
            return b"[" + encoded(chance.choice(NAMES)) + b"]\n" + line
        case 2:
            return b".".join([b"a"] * chance.choice((2, 40, 400))) + b" = 1\n"
        case _:
            return bent_text(line, chance)
