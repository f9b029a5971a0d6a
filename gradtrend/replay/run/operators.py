"""What is known of single operators: which make no values, which fill in constants, and the same one in float64."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from gradtrend.model.replay import Magnitude
from gradtrend.recording.around import values_of

# Their output is whatever lay in memory.
_UNINITIALISED = frozenset(
    ["empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "_efficientzerotensor"]
)
# They write a constant that the user chose; -inf there is a mask, not an accident.
_FILLS = frozenset(
    ["full", "full_like", "new_full", "fill", "fill_", "masked_fill", "masked_fill_", "where", "index_fill",
     "index_fill_", "scalar_tensor", "lift_fresh", "constant_pad_nd", "pad", "index_put", "index_put_", "scatter",
     "scatter_"]
)  # fmt: skip
# Their further outputs are workspace (log-sum-exp, alphas) that may rightly hold inf, or is not written at all.
_FIRST_OUTPUT_ONLY = ("scaled_dot_product", "flash_attention", "efficient_attention", "ctc_loss")


@functools.cache
def makes_values(function: Any) -> bool:
    """Whether the operator computes: views show values that another one made, and uninitialised memory has none."""
    if short_name(function) in _UNINITIALISED:
        return False
    returns = function._schema.returns
    return not returns or not all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


@functools.cache
def short_name(function: Any) -> str:
    """`exp` for `aten.exp.default`."""
    return str(function._schema.name).rpartition("::")[2]


@functools.cache
def _first_output_only(function: Any) -> bool:
    name = short_name(function)
    return "backward" not in name and any(part in name for part in _FIRST_OUTPUT_ONLY)


@functools.cache
def mutates(function: Any) -> bool:
    """Whether the operator overwrites one of its inputs."""
    return bool(function._schema.is_mutable)


def fills_constant(function: Any, arguments: Sequence[Any]) -> bool:
    """Whether the operator writes a non-finite constant that it was told to write."""
    if short_name(function) not in _FILLS:
        return False
    scalars = (argument for argument in arguments if isinstance(argument, float))
    return short_name(function) in ("lift_fresh", "where", "index_put_", "index_put") or any(
        not math.isfinite(scalar) for scalar in scalars
    )


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """The tensors among an operator's arguments or results."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from tensors_in(value)


def values_in(values: Any) -> Iterator[Any]:
    """The tensors and numbers among an operator's arguments."""
    if isinstance(values, list | tuple):
        for value in values:
            yield from values_in(value)
    else:
        yield values


def has_range(value: Any) -> bool:
    """Whether it is a number, or a tensor of numbers (integers too), that an operator computes with."""
    if isinstance(value, torch.Tensor):
        whole = value.dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
        return can_be_checked(value) or (whole and value.layout is torch.strided and value.numel() > 0)
    return isinstance(value, float)


def number_range(name: str, value: float) -> Magnitude:
    """The range of one number, which is itself."""
    size = abs(value) if math.isfinite(value) else 0.0
    return Magnitude(name, "number", (), size, size, int(value == 0), int(not math.isfinite(value)), int(value < 0))


def outputs_of(function: Any, result: Any) -> list[torch.Tensor]:
    """The results that count."""
    found = list(tensors_in(result))
    return found[:1] if _first_output_only(function) else found


def can_be_checked(tensor: torch.Tensor) -> bool:
    """Whether the tensor holds ordinary floating-point (or complex) numbers."""
    return (
        (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
        and tensor.dtype.itemsize > 1  # float8 has no arithmetic
        and tensor.layout is torch.strided
        and tensor.device.type != "meta"
        and not tensor.is_nested
        and tensor.numel() > 0
    )


def is_finite(tensor: torch.Tensor) -> bool:
    """Whether every element is finite. A sum tells nearly always, and reads the data once."""
    wide = torch.float32 if tensor.dtype in (torch.float16, torch.bfloat16) else None
    total = torch.sum(tensor, dtype=wide).item()
    if math.isfinite(abs(total)):
        return True
    return bool(torch.isfinite(tensor).all())  # a sum of finite values can overflow


def gradient_is_finite(gradient: torch.Tensor) -> bool:
    """Whether every element is finite; a sparse gradient's (of an embedding) are its values."""
    values = values_of(gradient)
    return not values.numel() or is_finite(values)


def parameter_norm(tensor: torch.Tensor | None) -> float:
    """Norm of one tensor in float64 (float32 where the device has none)."""
    if tensor is None:
        return 0.0
    wide = torch.float32 if tensor.device.type == "mps" else torch.float64
    values = values_of(tensor.detach())
    values = torch.view_as_real(values.resolve_conj()) if values.is_complex() else values
    norm = float(torch.linalg.vector_norm(values, dtype=wide))
    largest = float(values.abs().max()) if math.isinf(norm) else 0.0
    if not largest or math.isinf(largest):
        return norm
    return largest * float(torch.linalg.vector_norm(values / largest, dtype=wide))  # whose squares are out of range


def is_mask(tensor: torch.Tensor) -> bool:
    """Whether the non-finite values are all -inf, as in an additive attention mask."""
    if tensor.dtype.is_complex:  # has no order, and so no -inf
        return False
    return not bool((torch.isnan(tensor) | torch.isposinf(tensor)).any())


def counts(tensor: torch.Tensor) -> tuple[int, int]:
    """How many elements are NaN, and how many are inf."""
    return int(torch.isnan(tensor).sum()), int(torch.isinf(tensor).sum())


def magnitude(name: str, tensor: torch.Tensor) -> Magnitude:
    """The range of the finite elements (0 to 0 where there is none), and how many are zero, not finite, negative."""
    values = tensor.detach()
    sizes = values.abs()
    finite = sizes[torch.isfinite(sizes)]
    low, high = (finite.min().item(), finite.max().item()) if finite.numel() else (0.0, 0.0)
    zeros, nonfinite = int((finite == 0).sum()), sizes.numel() - finite.numel()
    negative = 0 if values.is_complex() else int((values < 0).sum())
    return Magnitude(name, dtype_name(tensor.dtype), tuple(tensor.shape), low, high, zeros, nonfinite, negative)


def dtype_name(dtype: torch.dtype) -> str:
    """`float16` for `torch.float16`."""
    return str(dtype).removeprefix("torch.")


def largest_in_float64(function: Any, args: Any, kwargs: dict[str, Any]) -> float | None:
    """The largest magnitude of the same operator in float64, where that is finite; else None."""
    if mutates(function) or torch.Tag.nondeterministic_seeded in function.tags:
        return None
    try:
        result = function(*_widened(args), **{key: _widened(value) for key, value in kwargs.items()})
        made = [tensor for tensor in outputs_of(function, result) if can_be_checked(tensor)]
        if not made or not all(is_finite(tensor) for tensor in made):
            return None
        return max(tensor.abs().max().item() for tensor in made)
    except Exception:  # an operator without a float64 kernel, or one that refuses such arguments
        return None


def _widened(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype.is_floating_point else value
    if isinstance(value, list | tuple):
        return type(value)(_widened(part) for part in value)
    return torch.float64 if value in (torch.float16, torch.bfloat16, torch.float32) else value
