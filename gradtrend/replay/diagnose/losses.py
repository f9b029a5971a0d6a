"""A cross-entropy known from its call, beside what guessing would give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradtrend.model.diagnosis import LossStart, Start

# Logits of variance v add v/2 to the loss of guessing: 2 nats are logits with a spread of 2. Measured at
# initialisation: of 31 networks 25 lie within 0.5 of ln(classes), ViTs up to 1.5 above; He's gain on the head as well
# makes it up to 3.9 (an MLP) and 6.6 (a VGG), a head tied to an embedding drawn from N(0, 1) 26.
_FAR = 2.0
_SAME = 1e-4  # relative: a head of zeros gives ln(classes) but for the rounding of half precision's logits
_BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
_CATEGORICAL = ("cross_entropy", "nll_loss")


@dataclass(frozen=True, slots=True)
class LossCall:
    """One call of a cross-entropy: its mean over the targets, and the classes that the logits had room for.

    `counted` are the targets that are not ignored.
    """

    function: str
    value: torch.Tensor
    classes: int
    counted: int


def loss_call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> LossCall | None:
    """The call of a function of torch, where it is a cross-entropy."""
    if name not in _BINARY and name not in _CATEGORICAL:
        return None
    given = args[0] if args else kwargs.get("input")
    if not isinstance(given, torch.Tensor) or not isinstance(result, torch.Tensor) or not result.numel():
        return None
    target = args[1] if len(args) > 1 else kwargs.get("target")
    classes = 2 if name in _BINARY else int(given.shape[1 if given.dim() > 1 else 0]) if given.dim() else 0
    if classes < 2 or not isinstance(target, torch.Tensor):
        return None
    counted = _counted(name, target, kwargs)
    value = result.detach()
    mean = value.mean() if kwargs.get("reduction", "mean") == "mean" else value.sum() / max(counted, 1)
    return LossCall(name, mean, classes, counted)


def _counted(name: str, target: torch.Tensor, kwargs: Mapping[str, Any]) -> int:
    """The number of targets that count."""
    if name in _BINARY:
        return target.numel()
    if not target.is_floating_point():
        return int((target != kwargs.get("ignore_index", -100)).sum())
    return target.numel() // target.shape[1 if target.dim() > 1 else 0]  # probabilities of each class


def loss_at_start(calls: Sequence[LossCall], loss: float, classes: int | None, has_gradient: bool) -> LossStart | None:
    """The cross-entropy farthest from ln(classes); None where none was called and no number of classes given.

    `classes` overrides what the calls tell; without a call it is compared with the step's whole loss.
    """
    ignored = next((call for call in calls if not call.counted), None)
    if ignored is not None:
        known = classes or ignored.classes
        return LossStart(float(ignored.value), known, math.log(known), Start.ALL_IGNORED, ignored.function)
    if calls:
        seen = [(float(call.value), classes or call.classes, call.function) for call in calls]
        value, known, function = max(seen, key=lambda one: _distance(one[0], one[1]))
        return _compared(value, known, function, has_gradient)
    return None if classes is None else _compared(loss, classes, None, has_gradient)


def _distance(value: float, classes: int) -> float:
    return abs(value - math.log(classes)) if math.isfinite(value) else math.inf


def _compared(value: float, classes: int, function: str | None, has_gradient: bool) -> LossStart:
    expected = math.log(classes)
    if not math.isfinite(value):
        state = Start.NONFINITE
    elif abs(value - expected) <= _SAME * expected and not has_gradient:
        state = Start.DEAD_HEAD
    elif value > expected + _FAR:
        state = Start.FAR_ABOVE
    else:
        state = Start.BELOW if value < expected / 2 else Start.AS_GUESSING
    return LossStart(value, classes, expected, state, function)
