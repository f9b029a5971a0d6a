"""Which operator, in which module, made the first non-finite value that reached the loss or a gradient."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from gradtrend.model.replay import Origin
from gradtrend.recording.trees import as_tensor, map_tensors, named_leaves
from gradtrend.replay.run.look import InputLook
from gradtrend.replay.run.step import gradient_is_finite, run_step
from gradtrend.replay.run.watch import OperatorWatch, Producer
from gradtrend.replay.subject import precision as precisions
from gradtrend.replay.subject.subject import Subject


def locate(subject: Subject, precision: str) -> Origin | None:
    """The origin of the first microbatch that goes wrong in one run under watch. Raises what the model raises.

    None where the step stays finite, or nothing can be blamed.
    """
    subject.reset()
    scale = subject.scale_in(precision)
    with subject.in_type_of(precision) as captured:
        batches = map_tensors(captured, torch.clone)  # a step may write to its batch
        watch = OperatorWatch(subject.model, _known(subject, batches))
        with watch:
            for index, batch in enumerate(batches):
                watch.microbatch = index
                producer, bad = _run_microbatch(subject, precision, watch, batch, index, scale)
                if bad:
                    return None if producer is None else producer.origin
    return None


def with_float32(subject: Subject, origin: Origin) -> Origin:
    """The origin with what its operator is given in float32. Raises what the model raises."""
    look = InputLook(subject.model, origin)
    run_step(subject, "float32", watch=look)
    return replace(origin, in_float32=look.given)


def _run_microbatch(
    subject: Subject, precision: str, watch: OperatorWatch, batch: Any, index: int, scale: float
) -> tuple[Producer | None, bool]:
    with precisions.entered(precision, subject.device):
        loss = subject.compute_loss(batch, index)
    value = loss.item()
    if not math.isfinite(value):
        return watch.producer_of(loss) or _first(watch.producers), True
    before = len(watch.producers)
    if loss.requires_grad:
        with precisions.entered_backend(precision, subject.device):
            (loss / subject.loss_divisor * scale).backward()
    bad = [p.grad for p in subject.model.parameters() if p.grad is not None and not gradient_is_finite(p.grad)]
    if not bad:
        return None, False
    found = [producer for producer in map(watch.producer_of, bad) if producer is not None]
    earliest = min(found, key=watch.producers.index, default=None)
    return earliest or _first(watch.producers[before:]) or _first(watch.producers), True


def _first(producers: list[Producer]) -> Producer | None:
    """The first accident, else the first constant."""
    return next((p for p in producers if not p.deliberate), producers[0] if producers else None)


def _known(subject: Subject, batches: list[Any]) -> dict[int, tuple[str, str]]:
    """The storages that are there before the step, by address."""
    known: dict[int, tuple[str, str]] = {}
    for index, batch in enumerate(batches):
        for name, leaf in named_leaves(batch):
            if (tensor := as_tensor(leaf)) is not None:
                shown = f"microbatch {index}: {name}" if name else f"microbatch {index}"
                known[tensor.untyped_storage().data_ptr()] = ("input", shown)
    for name, buffer in subject.model.named_buffers():
        known[buffer.untyped_storage().data_ptr()] = ("buffer", name)
    for name, parameter in subject.model.named_parameters():
        known[parameter.untyped_storage().data_ptr()] = ("parameter", name)
    return known
