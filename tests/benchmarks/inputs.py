"""The logs that speed is measured on, made from a fixed seed.

All are healthy runs of the kind that the format's own library writes, but for some NaN at the end of the JSON lines.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gradtrend.ingest.formats.tensorboard.checksums import masked_crc

SEED = 20
START = 1_760_000_000.0  # seconds since the epoch

Floats = npt.NDArray[np.float64]


def norms(points: int, seed: int = SEED) -> Floats:
    """(points,) a gradient norm as a healthy run has it: heavy-tailed, falling a little."""
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(0.0, 0.3, points) - np.linspace(0.0, 1.0, points))


def losses(points: int, seed: int = SEED) -> Floats:
    """(points,) a loss that falls and levels out."""
    rng = np.random.default_rng(seed + 1)
    return 2.0 + 8.0 * np.exp(-6.0 * np.arange(points) / points) + rng.normal(0.0, 0.05, points)


def event_file(path: Path, steps: int = 200_000) -> None:
    """A TensorBoard event file: five tags at each step, 51 MB and 1,000,000 scalars for 200,000 steps."""
    tags = {
        "train/loss": losses(steps),
        "train/grad_norm": norms(steps),
        "train/learning_rate": np.linspace(1e-3, 1e-5, steps),
        "train/samples_per_second": 900.0 + norms(steps, 5),
        "train/epoch": np.arange(steps) / 1000,
    }
    _write_events(path, tags, every=1)


def lightly_train_events(path: Path, rows: int = 200_000, every: int = 50) -> None:
    """An event file with five tags that LightlyTrain logs, every 50 steps as Lightning does: 1,000,000 scalars.

    Their names differ in length by 0 to 4 and their steps have one to four bytes, so that records of one length are of
    several tags.
    """
    tags = {
        "train_loss": losses(rows),
        "batch_time": 0.3 + norms(rows, 7) / 50,
        "data_time": norms(rows, 8) / 100,
        "gradient_norm": norms(rows),
        "learning_rate": np.linspace(1e-3, 1e-5, rows),
    }
    _write_events(path, tags, every)


def event_files(path: Path, files: int = 1000, rows: int = 20) -> None:
    """A folder with 1,000 event files of five tags and 20 steps each: a run that was resumed, and resumed."""
    path.mkdir()
    for number in range(files):
        part = norms(rows, number)
        tags = {"train_loss": part + 1, "batch_time": part / 50, "data_time": part / 100, "gradient_norm": part,
                "learning_rate": part / 1e4}  # fmt: skip
        file = path / f"events.out.tfevents.{START + number:.0f}.bench.{number}.0"
        _write_events(file, tags, every=1, first=number * rows)


def _write_events(path: Path, tags: Mapping[str, Floats], every: int, first: int = 0) -> None:
    """The values of each tag at the steps `first`, `first + every` and so on, as the writer of torch orders them."""
    with path.open("wb") as file:
        file.write(_record(b"\x09" + struct.pack("<d", START) + b"\x1a\x0dbrain.Event:2"))
        for row in range(len(next(iter(tags.values())))):
            for tag, values in tags.items():
                file.write(_record(_event(tag, first + row * every, float(values[row]))))


def _event(tag: str, step: int, value: float) -> bytes:
    name = tag.encode()
    scalar = b"\x0a" + bytes([len(name)]) + name + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(scalar)]) + scalar
    time = struct.pack("<d", START + 0.25 * step)
    return b"\x09" + time + b"\x10" + _varint(step) + b"\x2a" + bytes([len(summary)]) + summary


def _varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def json_rows(steps: int, seed: int = SEED) -> Iterator[str]:
    """Lines of a metrics.jsonl of 185 bytes; the gradient norm of the last three is NaN."""
    loss, norm = losses(steps, seed), norms(steps, seed)
    norm[-3:] = np.nan
    for step in range(steps):
        row = {
            "step": step,
            "train_loss": loss[step],
            "gradient_norm": norm[step],
            "lr": 1e-3 * (1 - step / steps),
            "loss_scale": 65536.0,
            "samples_per_second": round(900 + norm[(step + 4) % (steps - 3)], 2),
            "timestamp": round(START + 0.25 * step, 2),
        }
        yield json.dumps(row) + "\n"


def json_lines(path: Path, steps: int = 200_000) -> None:
    """A metrics.jsonl of 200,000 rows."""
    with path.open("w") as file:
        file.writelines(json_rows(steps))


def long_json_lines(path: Path, megabytes: int = 2000) -> None:
    """A metrics.jsonl of 2 GB."""
    lines = list(json_rows(500_000))
    with path.open("w") as file:
        size = 0
        for start in range(0, 1 << 40, len(lines)):
            size += file.write(
                "".join(line.replace('"step": ', f'"step": {1 + start // len(lines)}', 1) for line in lines)
            )
            if size > megabytes * 1_000_000:
                return


def layer_rows(path: Path, layers: int = 300, steps: int = 10_000) -> None:
    """A metrics.jsonl with the norm of each of 300 layers in each of 10,000 rows."""
    total, loss = norms(steps), losses(steps)
    parts = np.round(np.stack([norms(steps, seed) for seed in range(layers)]) / layers**0.5, 6)
    with path.open("w") as file:
        for step in range(steps):
            row = {"step": step, "loss": loss[step], "grad_norm": total[step]}
            row |= {f"grad_norm/layers.{i}.weight": value for i, value in enumerate(parts[:, step].tolist())}
            file.write(json.dumps(row) + "\n")


def run_folders(path: Path, runs: int = 1000, steps: int = 1000) -> None:
    """A folder of 1,000 runs with a metrics.jsonl of 1,000 rows each."""
    for run in range(runs):
        folder = path / f"run{run:04d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "metrics.jsonl").write_text("".join(json_rows(steps, run)))


def small(path: Path) -> None:
    """A metrics.jsonl of ten rows, for the start-up."""
    path.write_text("".join(json_rows(10)))


EVENTS, LIGHTLY, PARTS, ROWS, LAYERS, RUNS, SMALL, LONG = (
    "events.out.tfevents.1760000000.bench", "events.out.tfevents.1760000000.lightly", "parts", "metrics.jsonl",
    "layers.jsonl", "runs", "small.jsonl", "long.jsonl",
)  # fmt: skip
INPUTS: dict[str, Callable[[Path], None]] = {
    EVENTS: event_file,
    LIGHTLY: lightly_train_events,
    PARTS: event_files,
    ROWS: json_lines,
    LAYERS: layer_rows,
    RUNS: run_folders,
    SMALL: small,
}
# Run by MLflow's own client, in its environment, with the address of the store.
WRITE_MLFLOW = """
import sys, random
from mlflow import MlflowClient
from mlflow.entities import Metric
client = MlflowClient(tracking_uri=sys.argv[1])
run = client.create_run(client.create_experiment("speed")).info.run_id
for start in range(0, 20_000, 1000):
    steps = range(start, start + 1000)
    client.log_batch(run, [Metric("grad_norm", 1 + random.random(), 1_760_000_000_000 + 250 * i, i) for i in steps])
"""


def make_missing(folder: Path, long: bool = False) -> None:
    """Make each input that is not there yet; `long` asks for the one of 2 GB, too."""
    for name, make in (INPUTS | {LONG: long_json_lines} if long else INPUTS).items():
        if not (folder / name).exists():
            make(folder / name)
