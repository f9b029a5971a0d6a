"""The role of each metric of a run, where the names that stand beside it and the user's choice count."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from gradtrend.ingest.reading.names import PART_OF_LOSS, Naming, name_metric, normalise
from gradtrend.model.words import Role

_TOTALS = frozenset({"total", "train/total", "train_total"})
# A loss or a learning rate of an optimizer, by its number.
_NUMBERED = re.compile(r"(?:^|[_/.])(?:loss|lr|learning_rate)[_/.](\d+)$")


def assign_roles(
    names: Collection[str], metric: str | None = None, loss: str | None = None, lr: str | None = None
) -> dict[str, Naming]:
    """Roles for all names of a run, with the user's overrides.

    Which of several losses count shows only when they are read (`losses`). An overriding name must be one of `names`;
    the caller checks that.
    """
    namings = _own_value_of_twins({name: name_metric(name) for name in names})
    namings = _norms_of_optimizers(_total_of_terms(namings))
    namings = _drop_weaker_norms(_layers_called_l2(namings))
    namings = _override(namings, Role.GRAD_NORM, metric)
    namings = _override(namings, Role.LOSS, loss)
    return _override(namings, Role.LR, lr)


def _other(naming: Naming, why: str) -> Naming:
    return Naming(Role.OTHER, None, why, naming.quantity)


def _layers_called_l2(namings: Mapping[str, Naming]) -> dict[str, Naming]:
    """`grad_norm/l2` is the L2 norm of the whole, but beside `grad_norm/l1` or `/l3` it is a layer of that name."""
    layers = {n.layer for n in namings.values() if n.role is Role.GRAD_NORM and n.layer is not None}
    if not layers & {"l0", "l1", "l3", "l4"}:
        return dict(namings)
    result = dict(namings)
    for name, naming in namings.items():
        if naming.role is Role.GRAD_NORM and naming.layer is None and re.search(r"[/.:]l2$", name):
            result[name] = replace(naming, layer="l2", why="a gradient norm of the layer l2")
    return result


def _total_of_terms(namings: Mapping[str, Naming]) -> dict[str, Naming]:
    """A bare `total` is the loss beside a norm or terms of a loss, where nothing else is the whole loss."""
    roles = {naming.role for naming in namings.values()}
    whole = any(n.role is Role.LOSS and n.priority < PART_OF_LOSS for n in namings.values())
    if whole or not roles & {Role.LOSS, Role.GRAD_NORM}:
        return dict(namings)
    why = "the total of the terms beside it"
    return {
        name: Naming(Role.LOSS, None, why, naming.quantity) if normalise(name) in _TOTALS else naming
        for name, naming in namings.items()
    }


def _norms_of_optimizers(namings: Mapping[str, Naming]) -> dict[str, Naming]:
    """`grad_norm_0` and `grad_norm_1` are of two layers, but beside `loss_0`, `loss_1` or `lr_0`, `lr_1` of two models,
    each with an optimizer of its own (a discriminator and a generator): then each is a norm of a whole.
    """
    numbered = {naming.layer: name for name, naming in namings.items() if _is_numbered_norm(naming)}
    others = {match[1] for name in namings if (match := _NUMBERED.search(normalise(name))) is not None}
    if len(numbered) < 2 or not numbered.keys() <= others:
        return dict(namings)
    why = "a gradient norm of a model with an optimizer of its own"
    wholes = set(numbered.values())
    return {
        name: replace(naming, layer=None, why=why) if name in wholes else naming for name, naming in namings.items()
    }


def _is_numbered_norm(naming: Naming) -> bool:
    return naming.role is Role.GRAD_NORM and naming.layer is not None and naming.layer.isdigit()


def _own_value_of_twins(namings: Mapping[str, Naming]) -> dict[str, Naming]:
    """Of `loss_val` and `loss_avg`, as a running meter prints them, the first is the step's own value, not one on
    held-out data, and the second follows it: an average stays inf after one skipped step.
    """
    result = dict(namings)
    for name in namings:
        stem, _, ending = name.rpartition("_")
        twin = next((other for other in (f"{stem}_val", f"{stem}_value") if other in namings), None)
        if ending not in ("avg", "mean") or not stem or twin is None:
            continue
        own = name_metric(stem)
        if own.role in (Role.GRAD_NORM, Role.LOSS):
            result[twin] = replace(own, why=f"{own.why}: the step's own value")
            result[name] = _other(namings[name], f"a running average; {twin} is the step's own value")
    return result


def _drop_weaker_norms(namings: Mapping[str, Naming]) -> dict[str, Naming]:
    """A bare `norm` counts only where nothing says gradient norm; a clipped norm only without its unclipped twin."""
    totals = [n for n in namings.values() if n.role is Role.GRAD_NORM and n.layer is None]
    named = any(n.priority == 0 for n in totals)
    unclipped = any(not n.clipped and n.priority == 0 for n in totals)
    result = dict(namings)
    for name, naming in namings.items():
        if naming.role is not Role.GRAD_NORM:
            continue
        if naming.priority and named:
            result[name] = _other(naming, "the gradient norm itself is logged under another name")
        elif naming.clipped and unclipped:
            result[name] = _other(naming, "a gradient norm after clipping; the unclipped one is logged too")
    return result


def _override(namings: Mapping[str, Naming], role: Role, chosen: str | None) -> dict[str, Naming]:
    if chosen is None:
        return dict(namings)
    result: dict[str, Naming] = {}
    for name, naming in namings.items():
        if name == chosen:
            result[name] = Naming(role, None, "chosen by the user", naming.quantity, chosen=True)
        elif naming.role is role and not (role is Role.GRAD_NORM and naming.layer is not None):
            result[name] = _other(naming, "another series was chosen by the user")
        else:
            result[name] = naming
    return result
