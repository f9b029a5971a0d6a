"""The gradient of every module that holds parameters, in the order in which the forward pass reaches them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from gradtrend.model.diagnosis import LayerFlow, Moments
from gradtrend.replay.diagnose.moments import all_moments, sums_of


@dataclass(frozen=True, slots=True)
class _Layer:
    """A module and its own parameters that no layer before it holds as well; `shared` is the one that does."""

    name: str
    module: torch.nn.Module
    parameters: tuple[torch.nn.Parameter, ...]
    shared: str | None


def layer_flows(model: torch.nn.Module, calls: Mapping[str, int], scale: float) -> tuple[LayerFlow, ...]:
    """One entry a layer; `calls` are the modules in the order of their first call, `scale` the loss scale left in the
    gradients.
    """
    layers = _layers(model, list(calls))
    gradients = all_moments([[sums_of(p.grad) for p in layer.parameters if p.grad is not None] for layer in layers])
    weights = all_moments([[sums_of(p) for p in layer.parameters] for layer in layers])
    return tuple(
        _flow(layer, calls.get(layer.name, 0), None if gradient is None else _unscaled(gradient, scale), weight)
        for layer, gradient, weight in zip(layers, gradients, weights, strict=True)
    )


def _layers(model: torch.nn.Module, order: list[str]) -> list[_Layer]:
    place = {name: index for index, name in enumerate(order)}
    named = [(name, module) for name, module in model.named_modules() if module._parameters]
    named.sort(key=lambda one: (_place(one[0], one[1], place), one[0] not in place))
    holder: dict[int, str] = {}
    layers = []
    for name, module in named:
        own = [p for p in module.parameters(recurse=False) if _can_be_read(p)]
        new = tuple(p for p in own if id(p) not in holder)
        shared = next((holder[id(p)] for p in own if id(p) in holder), None)
        holder |= {id(p): name for p in new}
        if own:
            layers.append(_Layer(name, module, new, shared))
    return layers


def _place(name: str, module: torch.nn.Module, place: Mapping[str, int]) -> float:
    """Where in the forward pass a module stands; one that is not called where the one above it is that is.

    An attention's output projection is such a one: its weight is used without a call. What is not used is last.
    """
    if name not in place and all(parameter.grad is None for parameter in module.parameters(recurse=False)):
        return math.inf
    while name and name not in place:
        name = name.rpartition(".")[0]
    return place.get(name, math.inf)


def _can_be_read(parameter: torch.nn.Parameter) -> bool:
    return parameter.device.type != "meta" and (parameter.is_floating_point() or parameter.is_complex())


def is_matrix(module: torch.nn.Module) -> bool:
    """Whether it maps features to features: its gradients can be compared along depth.

    Norms' gains and biases, and embeddings of which a batch touches a few rows, have sizes of their own.
    """
    if "embedding" in type(module).__name__.lower():
        return False
    return any(p.dim() >= 2 for p in module.parameters(recurse=False))


def _flow(layer: _Layer, calls: int, gradient: Moments | None, weight: Moments | None) -> LayerFlow:
    weight_norm = 0.0 if weight is None else weight.norm
    return LayerFlow(
        layer=layer.name,
        kind=type(layer.module).__name__,
        calls=calls,
        parameters=sum(p.numel() for p in layer.parameters),
        weight_norm=weight_norm,
        gradient=gradient,
        missing=_missing(layer) if gradient is None else None,
        size=None if gradient is None or not gradient.count else gradient.norm / math.sqrt(gradient.count),
        ratio=None if gradient is None or not weight_norm else gradient.norm / weight_norm,
        shared=layer.shared,
    )


def _missing(layer: _Layer) -> str | None:
    """Why no gradient came; None where all its parameters are counted at another layer."""
    if not layer.parameters:
        return None
    return "not-reached" if any(p.requires_grad for p in layer.parameters) else "frozen"


def _unscaled(moments: Moments, scale: float) -> Moments:
    if scale == 1.0:
        return moments
    return Moments(
        moments.count,
        moments.mean / scale,
        moments.std / scale,
        moments.max_abs / scale,
        moments.zeros,
        moments.norm / scale,
        moments.nonfinite,
    )
