"""Leaves a model as it was, bit for bit, whatever is run on it meanwhile."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from gradtrend.recording.outside import GENERATORS, generator_state, own_attributes, set_generator_state
from gradtrend.recording.random_states import present_states
from gradtrend.recording.trees import named_leaves
from gradtrend.replay.subject import rng

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by size: NaN equals itself, -0 is not 0
_DEEPEST = 10  # containers in one another: a container may hold itself
_PARAMETER_HOOKS = "_post_accumulate_grad_hooks"


@contextmanager
def untouched(model: torch.nn.Module) -> Iterator[Callable[[], None]]:
    """Parameters, buffers, gradients, flags, hooks, attributes and random generators as they were, also after an error.

    Inside, hooks that run once a gradient is complete are put aside: optimizers that step in the backward pass stand in
    them. An attribute is put back as it was, and so is what a list, dict or set holds; objects of the user's own
    that a model changes inside are not. Yields what puts the parameters' and buffers' values back before that.
    """
    undo: list[Callable[[], None]] = []
    try:
        values = [_values(tensor) for tensor in {id(t): t for t in (*model.parameters(), *model.buffers())}.values()]
        undo += [_random_states(), *(_attributes(module) for module in model.modules()), *values]
        for parameter in model.parameters():
            undo += [_set_aside(parameter), _gradient(parameter)]
        yield lambda: _run(values)
    finally:
        _run(undo)


def _run(steps: Sequence[Callable[[], None]]) -> None:
    with torch.no_grad():
        for step in steps:
            step()


def _random_states() -> Callable[[], None]:
    """What puts back python's, numpy's and torch's generators."""
    states = present_states(torch.device("cuda" if torch.cuda.is_initialized() else "cpu"))

    def restore() -> None:
        rng.restore(states, torch.device("cpu"))
        if "cuda" in states:
            torch.cuda.set_rng_state_all(states["cuda"])

    return restore


def _attributes(module: torch.nn.Module) -> Callable[[], None]:
    """What puts back the module's attributes: its parameters, buffers, hooks and flags stand among these."""
    known = dict(module.__dict__)
    held = [pair for value in known.values() for pair in _held(value)]
    own = own_attributes(module)
    tensors = [_values(leaf) for _, tree in own for _, leaf in named_leaves(tree) if _is_kept(leaf)]
    states = [(made, generator_state(made)) for _, made in own if isinstance(made, GENERATORS)]

    def restore() -> None:
        for name in set(module.__dict__) - set(known):
            del module.__dict__[name]
        module.__dict__.update(known)
        for value, before in held:
            _refill(value, before)
        _run(tensors)
        for made, state in states:
            set_generator_state(made, state)

    return restore


def _held(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """The container and those in it, each with a copy."""
    if type(value) not in (dict, OrderedDict, list, set, deque) or depth > _DEEPEST:
        return
    yield value, value.copy()
    for part in value.values() if isinstance(value, dict) else value:
        yield from _held(part, depth + 1)


def _is_kept(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and not torch.nn.parameter.is_lazy(leaf)


def _refill(value: Any, before: Any) -> None:
    if isinstance(value, dict | set):
        value.clear()
        value.update(before)
    else:
        value.clear()
        value.extend(before)


def _values(tensor: torch.Tensor) -> Callable[[], None]:
    """What puts back the values, in the memory that they lay in: others may look at it too."""
    data, wanted = tensor.data, tensor.requires_grad
    copy = data.clone()

    def restore() -> None:
        if not _is_view_of(tensor, data):
            tensor.data = data
        if tensor.requires_grad != wanted:
            tensor.requires_grad_(wanted)
        _put_back(data, copy)

    return restore


def _is_view_of(tensor: torch.Tensor, data: torch.Tensor) -> bool:
    if tensor.layout is not torch.strided or (tensor.dtype, tensor.device) != (data.dtype, data.device):
        return False
    same_form = tensor.shape == data.shape and tensor.stride() == data.stride()
    return same_form and tensor.data_ptr() == data.data_ptr()


def _put_back(data: torch.Tensor, copy: torch.Tensor) -> None:
    """Write the copy's values, where the bits differ: what is as it was may lie in memory that cannot be written."""
    bits = _BITS.get(data.dtype.itemsize)
    plain = data.layout is torch.strided and not (data.is_conj() or data.is_neg())
    if bits is None or not plain or not torch.equal(data.view(bits), copy.view(bits)):
        data.copy_(copy)


def _gradient(parameter: torch.nn.Parameter) -> Callable[[], None]:
    """What puts back the gradient: the same tensor, with its values."""
    gradient = parameter.grad
    copy = None if gradient is None else gradient.detach().clone()
    parameter.grad = None

    def restore() -> None:
        parameter.grad = gradient
        if gradient is not None and copy is not None:
            _put_back(gradient.detach(), copy)

    return restore


def _set_aside(parameter: torch.nn.Parameter) -> Callable[[], None]:
    """Empties the hooks that run after a gradient is complete; gives what fills them again."""
    hooks: Any = getattr(parameter, _PARAMETER_HOOKS, None) or {}
    kept = dict(hooks)
    hooks.clear()

    def restore() -> None:
        hooks.update(kept)

    return restore
