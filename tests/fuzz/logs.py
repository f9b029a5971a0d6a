"""Mutated logs of one file, from the fixtures, and compressed ones."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import zstandard

from tests.fuzz.lines import bent_console, bent_document, bent_json_line, bent_row, mutated_lines
from tests.fuzz.messages import chunk_file, chunk_records, event_file, event_records, mutated_records
from tests.fuzz.values import bent_bytes, bent_text
from tests.places import FIXTURES


@dataclass(frozen=True, slots=True)
class Job:
    """What is judged: a path, with options of `gradtrend.analyze`, and whether captures there are inspected."""

    path: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    replay: bool = False


@cache
def seeds(*patterns: str) -> list[bytes]:
    found = [path.read_bytes() for pattern in patterns for path in sorted(FIXTURES.glob(pattern)) if path.is_file()]
    assert found, patterns
    return found


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def jsonl(chance: random.Random) -> bytes:
    return mutated_lines(
        seeds("runs/jsonl/*/*.json*", "runs/lightly/*/*.jsonl", "rules/*/*/*/*.jsonl"), chance, bent_json_line
    )


def csv(chance: random.Random) -> bytes:
    patterns = ("runs/csv/*/*.csv", "runs/csv/*/*.log", "runs/csv/*/lightning_logs/*/*.csv", "runs/jsonl/*/*.csv")
    return mutated_lines(seeds(*patterns), chance, bent_row)


def console(chance: random.Random) -> bytes:
    patterns = ("runs/console/*/*.log", "runs/console/*/*.out", "runs/console/*/*.txt", "runs/lightly/*/train.log")
    return mutated_lines(seeds(*patterns, "runs/trainer-state/*/console.log"), chance, bent_console)


def events(chance: random.Random) -> bytes:
    found = seeds("runs/tensorboard/*/events*", "runs/lightly/*/events*", "runs/csv/*/tb_logs/*/events*")
    data = event_file(mutated_records(found, chance, event_records), chance)
    return bent_bytes(data, chance) if chance.random() < 0.05 else data


def wandb(chance: random.Random) -> bytes:
    found = seeds("runs/wandb/*/wandb/*/*.wandb")
    records = mutated_records(found, chance, chunk_records)
    for at, record in enumerate(records):  # JSON within the messages
        if b'"' in record and chance.random() < 0.01:
            records[at] = bent_text(record, chance)
    data = chunk_file(records, chance, found[0])
    return bent_bytes(data, chance) if chance.random() < 0.05 else data


def document(*patterns: str) -> Callable[[random.Random], bytes]:
    def make(chance: random.Random) -> bytes:
        data = chance.choice(seeds(*patterns))
        bent = bent_document(data, chance)
        return (
            bent
            if chance.random() < 0.8
            else bent_bytes(bent, chance)
            if chance.random() < 0.5
            else bent_text(data, chance)
        )

    return make


def download(chance: random.Random) -> bytes:
    rows = ", ".join(f"[17000000{at:02}.5, {at * 10}, {2.5 / (at + 1)}]" for at in range(60))
    data = f"[{rows}]".encode()
    return bent_document(data, chance) if chance.random() < 0.7 else bent_text(data, chance)


_PACKED: Mapping[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, 1),
    ".bz2": lambda data: bz2.compress(data, 1),
    ".xz": lambda data: lzma.compress(data, preset=0),
    ".zst": zstandard.ZstdCompressor(level=1).compress,
}
PACKABLE: Mapping[str, Callable[[random.Random], bytes]] = {
    "metrics.jsonl": jsonl, "metrics.csv": csv, "train.log": console, "events.out.tfevents.1.a": events,
    "trainer_state.json": document("runs/trainer-state/*/trainer_state.json"),
}  # fmt: skip


def packed(chance: random.Random, folder: Path) -> Job:
    """A compressed log: in several members, cut, bent, twice compressed, with a foreign tail or ending."""
    name = chance.choice(list(PACKABLE))
    data = PACKABLE[name](chance) * (1 if chance.random() < 0.95 else 40)
    ending = chance.choice(list(_PACKED))
    pack = _PACKED[ending]
    half = chance.randrange(len(data) + 1)
    match chance.randrange(9):
        case 0:
            piece = pack(data[:half]) + pack(data[half:])
        case 1:
            piece = pack(data)
            piece = piece[: chance.randrange(len(piece) + 1)]
        case 2 | 3:
            piece = bent_bytes(pack(data), chance)
        case 4:
            piece = pack(pack(data))
        case 5:
            piece = pack(data) + chance.choice((bytes(100), chance.randbytes(9), b"", _PACKED[".gz"](b"{}")))
        case 6:
            piece = pack(data[:half]) + _PACKED[chance.choice(list(_PACKED))](data[half:])
        case _:
            piece = pack(data)
    ending = chance.choice((ending, ending, ending, "", ".gz", ".zst"))
    return Job(put(folder, name + ending, piece))
