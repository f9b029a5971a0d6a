"""The gradient of every parameter after a replayed step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import median

import torch

from gradtrend.model.replay import LayerGradient
from gradtrend.recording.around import values_of
from gradtrend.replay.run.operators import parameter_norm
from gradtrend.replay.run.step import EXPLOSION
from gradtrend.replay.subject.state import bare

_MOSTLY_ZERO = 0.99  # a dead ReLU layer has all zeros; an embedding's unused rows are left out by asking for more
_CARRIES = 0.5  # share of the squared norm: more than all others together
_VANISHING = 1e-4  # of the median ratio; healthy layers of one network lie within two or three decades of each other


def layer_gradients(model: torch.nn.Module, scale: float, usual: Mapping[str, float]) -> tuple[LayerGradient, ...]:
    """One entry a parameter that has a gradient, in the model's order; `scale` is the loss scale still in them.

    `usual` are norms of a usual step, by parameter.
    """
    measured = [
        (name, parameter_norm(parameter.grad) / scale, parameter)
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    ]
    total = sum(norm * norm for _, norm, _ in measured if math.isfinite(norm))
    ratios = [ratio for ratio in (_ratio(norm, parameter) for _, norm, parameter in measured) if ratio]
    typical = median(ratios) if ratios else 0.0
    usual = {bare(name): norm for name, norm in usual.items()}  # of a model that may have been wrapped
    entries = (_entry(name, norm, parameter, total, typical, len(measured)) for name, norm, parameter in measured)
    return tuple(_beside(entry, usual.get(bare(entry.parameter))) for entry in entries)


def _beside(entry: LayerGradient, usual: float | None) -> LayerGradient:
    grown = usual is not None and math.isfinite(entry.norm) and entry.norm > EXPLOSION * usual
    return replace(entry, usual=usual, flags=(*entry.flags, "grown") if grown else entry.flags)


def _ratio(norm: float, parameter: torch.nn.Parameter) -> float | None:
    own = parameter_norm(parameter)
    return norm / own if own and math.isfinite(own) and math.isfinite(norm) else None


def _entry(
    name: str, norm: float, parameter: torch.nn.Parameter, total: float, typical: float, count: int
) -> LayerGradient:
    gradient = parameter.grad
    assert gradient is not None
    dense = values_of(gradient)
    zeros = float((dense == 0).double().mean()) if dense.numel() else 0.0
    finite = math.isfinite(norm) and bool(torch.isfinite(dense).all())
    share = norm * norm / total if finite and total else None
    ratio = _ratio(norm, parameter)
    small = finite and norm < 1 and ratio is not None and ratio < _VANISHING * typical
    flags = [
        ("non-finite", not finite),
        ("zero", finite and zeros >= _MOSTLY_ZERO),
        ("carries-the-norm", share is not None and share > _CARRIES and count > 2),
        ("vanishing", small and zeros < _MOSTLY_ZERO),
    ]
    return LayerGradient(name, norm, zeros, ratio, share, tuple(flag for flag, holds in flags if holds))
