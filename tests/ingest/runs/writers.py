"""Fits made of a few numbers, and the logs that programs write of them: for the layouts of their output folders."""

from __future__ import annotations

import json
import math
import random
import struct
from dataclasses import dataclass, replace
from pathlib import Path

import crc32c

from tests.ingest.formats.wandb.test_reader import row as wandb_row
from tests.ingest.formats.wandb.test_reader import write as write_wandb

BEGAN = 1_790_000_000.0
KINDS = ("stable", "exploding", "nan-collapse", "vanishing")


@dataclass(frozen=True)
class Fit:
    """The steps of a fit with norm and loss; `began` is when it was started, a step takes a second."""

    steps: tuple[int, ...]
    norms: tuple[float, ...]
    losses: tuple[float, ...]
    began: float = BEGAN

    def between(self, first: int, end: int, after: float = 0.0) -> Fit:
        """The steps from `first` up to `end`, in a process that was started so many seconds later."""
        keep = [i for i, step in enumerate(self.steps) if first <= step < end]
        return Fit(
            tuple(self.steps[i] for i in keep),
            tuple(self.norms[i] for i in keep),
            tuple(self.losses[i] for i in keep),
            self.began + after,
        )

    def every(self, n: int) -> Fit:
        """Each n-th step, as a logger thins it."""
        return Fit(self.steps[::n], self.norms[::n], self.losses[::n], self.began)

    def at(self, began: float) -> Fit:
        """The same fit, started at another time."""
        return replace(self, began=began)

    def rows(self) -> list[tuple[int, float, float]]:
        """(step, loss, norm) of each step."""
        return list(zip(self.steps, self.losses, self.norms, strict=True))


def fit(kind: str, seed: int, n: int = 60, first: int = 0) -> Fit:
    """A fit with the verdict `kind`; the same seed gives the same values up to where the kinds part."""
    noise = random.Random(seed)
    norms, losses = [], []
    for i in range(n):
        norm, loss = 1 + 0.3 * noise.random(), 2.5 * math.exp(-2 * i / n) + 0.1 * noise.random()
        late = i - 2 * n // 3
        if kind == "exploding" and late > 0:
            norm, loss = norm * 1.7**late, loss + 0.2 * late
        elif kind == "nan-collapse" and late > 0:
            norm = loss = math.nan
        elif kind == "vanishing":
            norm, loss = norm * 10 ** (-7 * min(1.0, i / (0.4 * n))), 2.3 + 0.01 * noise.random()
        norms.append(norm)
        losses.append(loss)
    return Fit(tuple(range(first, first + n)), tuple(norms), tuple(losses))


def _open(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def jsonl(path: Path, *fits: Fit) -> None:
    """One row a step; several fits one after another."""
    rows = [json.dumps({"step": s, "loss": x, "grad_norm": g}) + "\n" for one in fits for s, x, g in one.rows()]
    _open(path).write_text("".join(rows))


def csv(path: Path, *fits: Fit, step: bool = True, columns: tuple[str, ...] = ("loss", "grad_norm")) -> None:
    """A table; without its step if so asked."""
    names = (("step",) if step else ()) + columns
    lines = [",".join(names)]
    for one in fits:
        for s, x, g in one.rows():
            values = {"step": s, "loss": x, "grad_norm": g}
            lines.append(",".join(f"{values[name]:.6g}" for name in names))
    _open(path).write_text("\n".join(lines) + "\n")


def console(path: Path, *fits: Fit, head: str = "", tail: str = "", prefix: str = "", form: str = "") -> None:
    """Printed lines; `head` stands ahead of each fit, `tail` behind it."""
    form = form or "step {step} | loss {loss:.4f} | grad_norm {norm:.4e}"
    lines = []
    for one in fits:
        lines += [head] if head else []
        lines += [prefix + form.format(step=s, loss=x, norm=g) for s, x, g in one.rows()]
        lines += [tail] if tail else []
    _open(path).write_text("\n".join(lines) + "\n")


def hf_console(path: Path, *fits: Fit, closing: bool = True) -> None:
    """Lines of transformers: dicts without a step, with the epoch."""
    lines = []
    for one in fits:
        n = len(one.steps)
        for i, (_, x, g) in enumerate(one.rows(), start=1):
            lines.append(f"{{'loss': {x:.4f}, 'grad_norm': {g:.6g}, 'learning_rate': 1e-05, 'epoch': {3 * i / n:.2f}}}")
        lines += ["{'train_runtime': 12.5, 'train_loss': 1.2, 'epoch': 3.0}"] if closing else []
    _open(path).write_text("\n".join(lines) + "\n")


def hf_state(path: Path, one: Fit) -> None:
    """A trainer_state.json as of the last step."""
    history = [{"step": s + 1, "loss": x, "grad_norm": g, "epoch": s / 100} for s, x, g in one.rows()]
    _open(path).write_text(json.dumps({"global_step": one.steps[-1] + 1, "log_history": history}))


def events(folder: Path, one: Fit, number: int = 0, tags: tuple[str, str] = ("train/loss", "train/grad_norm")) -> Path:
    """An event file in a folder, named as writers name it: by the second, host, process and a counter."""
    path = _open(folder / f"events.out.tfevents.{int(one.began)}.host.77.{number}")
    out = _record(struct.pack("<Bd", 9, one.began) + b"\x1a\x0dbrain.Event:2")
    for i, (s, x, g) in enumerate(one.rows()):
        for tag, value in zip(tags, (x, g), strict=True):
            if tag:
                out += _record(_event(one.began + 0.5 + i, s, tag, value))
    path.write_bytes(out)
    return path


def _event(time: float, step: int, tag: str, value: float) -> bytes:
    named = b"\x0a" + bytes([len(tag)]) + tag.encode() + struct.pack("<Bf", 0x15, min(value, 3e38))
    summary = b"\x0a" + bytes([len(named)]) + named
    return struct.pack("<Bd", 9, time) + b"\x10" + _varint(step) + b"\x2a" + bytes([len(summary)]) + summary


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def _record(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    return length + _masked(length) + payload + _masked(payload)


def _masked(data: bytes) -> bytes:
    value: int = crc32c.crc32c(data)
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def wandb(folder: Path, run_id: str, one: Fit, when: str = "20260101_000000") -> None:
    """A folder of an offline run."""
    rows = [wandb_row(s, {"loss": x, "grad_norm": g}) for s, x, g in one.rows()]
    place = folder / f"offline-run-{when}-{run_id}"
    write_wandb(_open(place / f"run-{run_id}.wandb"), rows)
    _open(place / "logs" / "debug.log").write_text("2026-01-01 INFO setup\n")
    _open(place / "files" / "requirements.txt").write_text("torch\n")
