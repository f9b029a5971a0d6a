"""Real logs that end badly, one list a format, and what a disk, a crash or a bad copy does to their bytes."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.places import RUNS

_WANDB_HEAD, _WANDB_BLOCK = 7, 32 * 1024


@dataclass(frozen=True, slots=True)
class Case:
    """A log of a sick run: the path below the fixtures that is judged, and the file in it that is damaged (a pattern;
    "" for the path itself).
    """

    path: str
    file: str = ""


CASES: dict[str, tuple[Case, ...]] = {
    "jsonl": (
        Case("jsonl/ms_swift/logging.jsonl"),
        Case("jsonl/orjson_nan/log.jsonl"),
        Case("lightly/exploding_lr_nan/metrics.jsonl"),
        Case("jsonl/ray_tune/result.json"),
    ),
    "csv": (
        Case("csv/pandas_nan/metrics.csv"),
        Case("csv/per_tensor_statistics/log.csv"),
        Case("jsonl/ray_tune/progress.csv"),
    ),
    "trainer-state": (Case("trainer-state/transformers_nan/trainer_state.json"),),
    "console": (
        Case("console/nanogpt/train.log"),
        Case("console/torchtitan/train.log"),
        Case("console/megatron/slurm-1.out"),
        Case("console/markdown/log.txt"),
        Case("console/mmdet_text/20260101_100000.log"),
        Case("console/llm_c/main.log"),
        Case("console/tqdm_postfix/nohup.out"),
        Case("console/trainer_dicts/console.log"),
        Case("console/block_tables/train.log"),
        Case("lightly/exploding_lr_nan/train.log"),
    ),
    "tensorboard": (
        Case("tensorboard/torch", "events*"),
        Case("tensorboard/tensorflow_style", "events*"),
        Case("tensorboard/tensorboardx", "events*"),
        Case("lightly/exploding_lr_nan/events.out.tfevents.1795972292.host.100.0"),
    ),
    "wandb": (Case("wandb/commit_false", "**/*.wandb"), Case("wandb/define_metric", "**/*.wandb")),
    "mlflow": (Case("lightly/exploding_lr_nan/mlflow.db"),),
    "mlruns": (Case("lightly/mlflow_filestore_nan/mlruns", "**/metrics/*"),),
    "trackio": (Case("trackio/two_runs", "**/*.db"),),
    "dvclive": (Case("dvclive/one_table_a_metric", "**/*.tsv"),),
    "mmengine": (Case("mmengine/mmdet_json/None.log.json"),),
}  # fmt: skip


def damaged(data: bytes, chance: random.Random, ends: Callable[[bytes], set[int]]) -> tuple[bytes, str]:
    """The bytes with one damage, and what was done. A cut never lies where `ends` says that a line or a record ends:
    such a log is whole.
    """
    kind = chance.choice(("cut", "bit", "bytes", "zeros"))
    if kind == "cut":
        whole = ends(data)
        at = next(place for place in iter(lambda: chance.randrange(1, len(data)), 0) if place not in whole)
        return data[:at], f"cut at {at}"
    at = chance.randrange(len(data))
    if kind == "bit":
        bit = chance.randrange(8)
        return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :], f"bit {bit} of byte {at}"
    size = min(chance.choice((1, 2, 8, 64, 512, 4096)), len(data) - at)
    piece = bytes(size) if kind == "zeros" else chance.randbytes(size)
    return data[:at] + piece + data[at + size :], f"{size} {kind} from {at} on"


def line_ends(data: bytes) -> set[int]:
    """Where a text may end: behind a line, or right ahead of its end."""
    ends = {at for at in range(len(data)) if data[at : at + 1] in b"\r\n"}
    return ends | {at + 1 for at in ends} | {len(data)}


def event_ends(data: bytes) -> set[int]:
    """Where the records of an event file end."""
    ends, at = set(), 0
    while at + 12 <= len(data):
        at += 16 + int(struct.unpack_from("<Q", data, at)[0])
        ends.add(at)
    return ends


def chunk_ends(data: bytes) -> set[int]:
    """Where the chunks of a log of Weights & Biases end."""
    ends, at = {_WANDB_HEAD}, _WANDB_HEAD
    while at + 7 <= len(data):
        checksum, length, kind = struct.unpack_from("<IHB", data, at)
        content = data[at + 7 : at + 7 + length]
        if zlib.crc32(content, zlib.crc32(bytes([kind]))) != checksum:
            at += _WANDB_BLOCK - at % _WANDB_BLOCK
        else:
            at += 7 + length
            ends.add(at)
    return ends


def no_ends(data: bytes) -> set[int]:
    """A document or a database: it is whole only as a whole."""
    return {len(data)}


ENDS: dict[str, Callable[[bytes], set[int]]] = {
    **dict.fromkeys(("jsonl", "csv", "console", "mlruns", "dvclive", "mmengine"), line_ends),
    **dict.fromkeys(("trainer-state", "mlflow", "trackio", "captures"), no_ends),
    "tensorboard": event_ends,
    "wandb": chunk_ends,
}


def files_of(case: Case) -> list[Path]:
    """The files of a case that are damaged, one at a time."""
    path = RUNS / case.path
    return [path] if not case.file else sorted(file for file in path.glob(case.file) if file.is_file())
