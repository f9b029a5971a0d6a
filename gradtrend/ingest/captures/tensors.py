"""How `torch.save` writes tensors, and the few other calls whose meaning is known and harmless."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gradtrend.ingest.captures.limits import refuse
from gradtrend.model.contents import GlobalRef, Inert, Node, TensorRef

_MAX_DIMENSIONS = 64  # torch's own limit
_MAX_SIZE = 1 << 56  # of a dimension or stride, in elements: more than any memory holds, less than an index can count
_ITEM_SIZES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1,
    "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16, "uint16": 2, "uint32": 4, "uint64": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
}  # fmt: skip
STORAGE_DTYPES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "UntypedStorage": "uint8",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Storage:
    """A storage as the pickle refers to it."""

    dtype: str
    key: str


def _tensor(sizes: Mapping[str, int], arguments: tuple[Any, ...]) -> TensorRef:
    """`_rebuild_tensor_v2` (storage, offset, shape, stride, ...) and `_v3` (with the dtype as the seventh argument)."""
    match arguments:
        case (Storage() as storage, int(offset), tuple(shape), tuple(stride), *rest):
            pass
        case _:
            raise refuse("a tensor is declared in an unknown way")
    dtype = storage.dtype
    if len(rest) >= 3 and isinstance(rest[2], GlobalRef):
        dtype = rest[2].name
    ref = TensorRef(dtype, shape, stride, offset, storage.key)
    _check_extent(ref, sizes[storage.key])
    return ref


def _check_extent(ref: TensorRef, present: int) -> None:
    """Raise unless every element of the view lies inside the bytes that are there."""
    if len(ref.shape) != len(ref.stride) or len(ref.shape) > _MAX_DIMENSIONS or ref.dtype not in _ITEM_SIZES:
        raise refuse(f"a tensor of type {ref.dtype[:40]!r} has a shape that does not fit its strides")
    numbers = (*ref.shape, *ref.stride, ref.offset)
    if any(type(number) is not int or not 0 <= number < _MAX_SIZE for number in numbers):
        raise refuse("a tensor has a shape, stride or offset that is no size")
    needed = 0
    if 0 not in ref.shape:
        needed = ref.offset + 1 + sum((size - 1) * step for size, step in zip(ref.shape, ref.stride, strict=True))
    if needed * _ITEM_SIZES[ref.dtype] > present:
        raise refuse(f"a tensor declares {needed * _ITEM_SIZES[ref.dtype]:,} bytes where the file holds {present:,}")


def _parameter(_: Mapping[str, int], arguments: tuple[Any, ...]) -> Node:
    if not arguments or not isinstance(arguments[0], TensorRef):
        raise refuse("a parameter holds no tensor")
    return replace(arguments[0], parameter=True)


def _tensor_subclass(sizes: Mapping[str, int], arguments: tuple[Any, ...]) -> Node:
    """`_rebuild_from_type_v2(function, class, arguments, state)`: the plain tensor, with the class by name."""
    match arguments:
        case (GlobalRef() as function, GlobalRef() as kind, tuple(inner), *_) if function.path in KNOWN_CALLS:
            made = KNOWN_CALLS[function.path](sizes, inner)
            return replace(made, subclass=kind.path) if isinstance(made, TensorRef) else made
    return Inert(GlobalRef("torch._tensor", "_rebuild_from_type_v2"), "reduce", arguments)


def _ordered_dict(_: Mapping[str, int], arguments: tuple[Any, ...]) -> Node:
    if not arguments:
        return {}
    match arguments[0]:
        case list(pairs) if all(_is_named_pair(pair) for pair in pairs):
            return dict(pairs)
    raise refuse("it holds an ordered dictionary in an unknown way")


def _is_named_pair(pair: Node) -> bool:
    return isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)


def _encoded_bytes(_: Mapping[str, int], arguments: tuple[Any, ...]) -> Node:
    """How protocol 2 writes bytes."""
    match arguments:
        case (str(text), "latin1"):
            return text.encode("latin1")
    raise refuse("it encodes text in an unknown way")


KNOWN_CALLS: dict[str, Callable[[Mapping[str, int], tuple[Any, ...]], Node]] = {
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._tensor._rebuild_from_type_v2": _tensor_subclass,
    "collections.OrderedDict": _ordered_dict,
    "_codecs.encode": _encoded_bytes,
}
