"""One step of a training loop as a user writes it, and the capture that the loop saves of it."""

from __future__ import annotations

import copy
import math
import random
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from gradtrend.replay.native import save_capture, snapshot_random_states
from tests.replay.family.case import Case


@dataclass(frozen=True, slots=True)
class Seen:
    """What training itself saw of its step. `norm` is in the gradients' own type, as `clip_grad_norm_` computes it."""

    loss: float | None
    norm: float | None
    bad: tuple[str, ...]
    error: Exception | None

    @property
    def failed(self) -> bool:
        return self.error is None and (bool(self.bad) or self.loss is None or not math.isfinite(self.loss))


def train_one_step(case: Case, path: Path) -> Seen:
    """Run the step of `case` for real, and save its capture at `path`."""
    seed_all(0)
    made = case.factory(**case.kwargs)
    model, step = made if isinstance(made, tuple) else (made, call)
    if case.wrap is not None:
        model = case.wrap(model)
    model.train()
    if case.prepare is not None:
        with torch.no_grad():
            case.prepare(model)
    batches = case.batches()
    kept = copy.deepcopy(batches) if case.copies else batches
    seed_all(case.seed)
    before = {name: copy.deepcopy(value) for name, value in model.state_dict().items()}
    states = snapshot_random_states()
    seen = forward_and_backward(case, model, step, batches)
    path.unlink(missing_ok=True)  # captures are never written over one another
    save_capture(
        path,
        model=model,
        factory=case.factory,
        kwargs=case.kwargs,
        microbatches=kept,
        step=40,
        rng_states=states,
        model_state=before,
        autocast=case.autocast,
        loss_scale=case.loss_scale,
        loss_divisor=case.loss_divisor,
        loss=seen.loss if "loss" in case.record else None,
        gradient_norm=seen.norm * case.norm_factor if "norm" in case.record and seen.norm is not None else None,
        bad_parameters=seen.bad if "bad" in case.record else (),
    )
    return seen


def call(model: nn.Module, batch: Any) -> Any:
    return model(**batch) if isinstance(batch, dict) else model(batch)


def forward_and_backward(case: Case, model: nn.Module, step: Any, batches: list[Any]) -> Seen:
    divisor, scale, total = case.loss_divisor or len(batches), case.loss_scale or 1.0, 0.0
    try:
        for batch in batches:
            with nullcontext() if case.autocast is None else torch.autocast("cpu", case.autocast):
                loss = step(model, batch)
            (loss / divisor * scale).backward()
            total += loss.item() / divisor
    except (RuntimeError, IndexError, KeyError, ValueError) as error:
        return Seen(None, None, (), error)
    gradients = {name: dense(p.grad) for name, p in model.named_parameters() if p.grad is not None}
    norm = torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients.values()])
    bad = tuple(name for name, gradient in gradients.items() if not bool(gradient.isfinite().all()))
    return Seen(total, torch.linalg.vector_norm(norm).item() / scale, bad, None)


def dense(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
