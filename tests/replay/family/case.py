"""What a case of the family is: how its step is captured, and what is true of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

Step = Callable[[nn.Module, Any], Tensor]
Made = tuple[nn.Module, Step]


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of a captured step, found by thinking about it and never by replaying it.

    Each of `outcome`, `cause`, `module` and `operator` holds every answer that is right; empty means not asked, and a
    cause of "none" that there must be none. Operators are short names ("log"), "sqrt backward" where the slope is bad.
    `samples` are (microbatch, index); None means not asked, () that no sample may be named. `says` and `silent` are
    patterns that the report for a person must and must not hold.
    """

    outcome: tuple[str, ...]
    cause: tuple[str, ...] = ()
    module: tuple[str, ...] = ()
    operator: tuple[str, ...] = ()
    samples: tuple[tuple[int, int], ...] | None = None
    microbatches: tuple[int, ...] | None = None
    says: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One step of one training loop.

    `factory` is what a capture names; `prepare` is what training did to the model since (frozen parts, other values).
    `record` says which of "loss", "norm" and "bad" the loop wrote into the capture; `norm_factor` makes its norm wrong.
    `copies` says whether the loop kept a copy of its batch from before the step. `seed` is that of the random numbers,
    `trust` that of the replay; `wrap` is what training puts around the model that the factory gives.
    """

    name: str
    kind: str
    factory: Callable[..., Any]
    batches: Callable[[], list[Any]]
    truth: Truth
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[nn.Module], None] | None = None
    autocast: torch.dtype | None = None
    loss_scale: float | None = None
    loss_divisor: float | None = None
    record: tuple[str, ...] = ("loss", "norm", "bad")
    norm_factor: float = 1.0
    copies: bool = True
    seed: int = 11
    trust: bool = True
    wrap: Callable[[nn.Module], nn.Module] | None = None


def words(answer: str | tuple[str, ...]) -> tuple[str, ...]:
    return (answer,) if isinstance(answer, str) else answer


def confirmed(
    cause: str | tuple[str, ...],
    module: str | tuple[str, ...] = (),
    operator: str | tuple[str, ...] = (),
    **more: Any,
) -> Truth:
    """The step fails each time that it is run as it was."""
    return Truth(("confirmed",), words(cause), words(module), words(operator), **more)


# What must not be said of a step that is as it was, and of which nobody knows what is usual for its run.
NO_ALARM = (r"explosion is real", r"\bconfirmed\b", r"lower the learning rate")


def healthy(*says: str, silent: tuple[str, ...] = NO_ALARM) -> Truth:
    """The step is finite, in training as in the replay."""
    return Truth(("not-reproduced",), ("none",), says=says, silent=silent)
