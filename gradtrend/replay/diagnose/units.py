"""Which channels or features of an activation are dead, and which lie at the ends of its range."""

from __future__ import annotations

from dataclasses import dataclass

import torch

# By the name of the class or function: whether zeros mean anything, and where the range ends, is known of these alone.
_RELU = "relu"
_NOT_ZERO_BELOW = ("leaky", "prelu", "rrelu")
_ENDS = {
    "tanh": (-1.0, 1.0),
    "hardtanh": (-1.0, 1.0),
    "sigmoid": (0.0, 1.0),
    "hardsigmoid": (0.0, 1.0),
}
# Of the range's width: at tanh 0.99 the slope is 0.02, at sigmoid 0.995 it is 0.005, a fiftieth of its best in both.
_NEAR_THE_END = 0.005


@dataclass(slots=True)
class Units:
    """What was seen of an activation's units, over all its calls. `positions` are values of one unit."""

    quiet: torch.Tensor
    positions: int = 0
    ended: int = 0
    values: int = 0
    saturates: bool = False

    @property
    def count(self) -> int:
        """How many channels or features there are."""
        return self.quiet.numel()


def function_name(name: str) -> str:
    """`relu` for `relu_`, `ReLU` and the like."""
    return name.lower().strip("_")


def is_activation(name: str) -> bool:
    """Whether units of what is called so can be judged."""
    return _is_relu(function_name(name)) or function_name(name) in _ENDS


def _is_relu(name: str) -> bool:
    return _RELU in name and not any(part in name for part in _NOT_ZERO_BELOW)


def seen_in(known: Units | None, name: str, output: torch.Tensor, channels_first: bool) -> Units | None:
    """The units with those of one more call; None where the shapes of two calls differ, or there is no batch."""
    if output.dim() < 2 or not output.numel() or not output.is_floating_point():
        return known
    axis = 1 if channels_first else output.dim() - 1
    ends = _ENDS.get(function_name(name))
    if ends is None:
        quiet, ended = (output == 0).movedim(axis, 0).flatten(1).all(dim=1), 0
    else:
        margin = _NEAR_THE_END * (ends[1] - ends[0])
        at_end = (output <= ends[0] + margin) | (output >= ends[1] - margin)
        quiet, ended = at_end.movedim(axis, 0).flatten(1).all(dim=1), int(at_end.sum())
    made = Units(quiet, output.numel() // quiet.numel(), ended, output.numel(), ends is not None)
    if known is None:
        return made
    if known.quiet.shape != made.quiet.shape:
        return None
    return Units(
        known.quiet & made.quiet,
        known.positions + made.positions,
        known.ended + made.ended,
        known.values + made.values,
        made.saturates,
    )
