"""Where the scalars of one TensorBoard event lie within its bytes.

Only the fields that carry scalars are looked into (protocol buffers `Event`, `Summary`, `Summary.Value`, `TensorProto`
of TensorFlow); images, histograms, graphs and text are stepped over by their length.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradtrend.ingest.files.protobuf import DELIMITED, FIXED32, FIXED64, VARINT, fields, varint

# TensorFlow's DataType numbers -> (numpy dtype in tensor_content, number of the typed field, significant digits).
_TENSOR_TYPES: dict[int, tuple[str, int, int]] = {
    1: ("<f4", 5, 7),
    2: ("<f8", 6, 17),
    3: ("<i4", 7, 17),
    4: ("<u1", 7, 17),
    5: ("<i2", 7, 17),
    6: ("<i1", 7, 17),
    9: ("<i8", 10, 17),
    10: ("<u1", 11, 17),
    14: ("bfloat16", 13, 2),
    17: ("<u2", 7, 17),
    19: ("<f2", 13, 3),
    22: ("<u4", 16, 17),
    23: ("<u8", 17, 17),
}


_Range = tuple[int, int]  # start and stop


def dtype_bytes(dtype: str) -> int:
    """The width of one number."""
    return 2 if dtype == "bfloat16" else int(dtype[2:])


@dataclass(frozen=True, slots=True)
class Slot:
    """One scalar of an event: a number of `dtype` at byte `offset`, or 0 where it is left out.

    `varint` is the number of bytes where it is not stored as `dtype` has it, but as a varint that holds its bits.
    """

    tag: str
    dtype: str
    digits: int
    offset: int | None = None
    varint: int = 0
    plugin: str | None = None
    is_tensor: bool = False

    @property
    def width(self) -> int:
        """The bytes that it takes."""
        return self.varint or dtype_bytes(self.dtype)


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions in one event; an absent wall time or step is None and means 0.

    `ignored` are the byte ranges that do not matter, `names` those of the tags and of what is said of them. `shape` is
    equal for events whose fields lie at the same places.
    """

    time_at: int | None = None
    step_at: int | None = None
    step_width: int = 0
    slots: tuple[Slot, ...] = ()
    ignored: tuple[_Range, ...] = ()
    names: tuple[_Range, ...] = ()

    @property
    def shape(self) -> tuple[object, ...]:
        """The positions alone, without tags."""
        places = tuple((slot.dtype, slot.offset, slot.varint) for slot in self.slots)
        return (self.time_at, self.step_at, self.step_width, places, self.ignored)


def layout_of(data: bytes) -> Layout:
    """The layout of one serialized Event. Raises ValueError where it is not one."""
    time_at = step_at = None
    step_width = 0
    slots: list[Slot] = []
    ignored: list[_Range] = []
    names: list[_Range] = []
    for number, wire, start, stop in fields(data, 0, len(data)):
        if number == 1 and wire == FIXED64:
            time_at = start
        elif number == 2 and wire == VARINT:
            step_at, step_width = start, stop - start
        elif number == 5 and wire == DELIMITED:
            for value_number, value_wire, value_start, value_stop in fields(data, start, stop):
                if value_number == 1 and value_wire == DELIMITED:
                    slots += _value_slots(data, value_start, value_stop, ignored, names)
                else:
                    ignored.append((value_start, value_stop))
        else:
            ignored.append((start, stop))
    return Layout(time_at, step_at, step_width, tuple(slots), tuple(ignored), tuple(names))


def _value_slots(data: bytes, start: int, stop: int, ignored: list[_Range], names: list[_Range]) -> list[Slot]:
    """The scalar of a Summary.Value as a list of one, or none; what is no scalar is added to `ignored`, what names it
    to `names`.
    """
    tag, plugin, simple_at = "", None, None
    tensor: _Range | None = None
    for number, wire, begin, end in fields(data, start, stop):
        if number == 1 and wire == DELIMITED:
            tag = data[begin:end].decode("utf-8", "replace")
            names.append((begin, end))
        elif number == 2 and wire == FIXED32:
            simple_at = begin
        elif number == 8 and wire == DELIMITED:
            tensor = (begin, end)
        elif number == 9 and wire == DELIMITED:
            plugin = _plugin_name(data, begin, end)
            names.append((begin, end))
        else:
            ignored.append((begin, end))
    if simple_at is not None:
        return [Slot(tag, "<f4", 7, simple_at, plugin=plugin)]
    if tensor is None:
        return []
    slot = _tensor_slot(data, *tensor, tag, plugin)
    if slot is None:
        ignored.append(tensor)
        return []
    return [slot]


def _plugin_name(data: bytes, start: int, stop: int) -> str | None:
    """The plug-in that a SummaryMetadata names (`scalars`, `histograms` ...), None without one."""
    for number, wire, begin, end in fields(data, start, stop):
        if number == 1 and wire == DELIMITED:
            for inner, inner_wire, inner_begin, inner_end in fields(data, begin, end):
                if inner == 1 and inner_wire == DELIMITED:
                    return data[inner_begin:inner_end].decode("utf-8", "replace")
    return None


def _tensor_slot(data: bytes, start: int, stop: int, tag: str, plugin: str | None) -> Slot | None:
    """The number in a TensorProto that holds exactly one, None for any other tensor."""
    parts = list(fields(data, start, stop))
    kind = next((varint(data, begin)[0] for number, _, begin, _ in parts if number == 1), 0)
    if kind not in _TENSOR_TYPES or not _holds_one(data, parts):
        return None
    dtype, typed_field, digits = _TENSOR_TYPES[kind]
    item = dtype_bytes(dtype)
    for number, wire, begin, end in parts:
        if number == 4 and wire == DELIMITED:
            return Slot(tag, dtype, digits, begin, 0, plugin, True) if end - begin == item else None
        if number == typed_field and dtype in ("<f4", "<f8"):
            return Slot(tag, dtype, digits, begin, 0, plugin, True) if end - begin == item else None
        if number == typed_field:
            after = varint(data, begin)[1]
            return Slot(tag, dtype, digits, begin, end - begin, plugin, True) if after == end else None
    return Slot(tag, dtype, digits, None, 0, plugin, True)  # protocol buffers leave out a default


def _holds_one(data: bytes, parts: list[tuple[int, int, int, int]]) -> bool:
    """Whether the tensor's shape (no shape at all in torch's writer) has one element."""
    for number, wire, begin, end in parts:
        if number != 2 or wire != DELIMITED:
            continue
        for dimension, _, dim_begin, dim_end in fields(data, begin, end):
            if dimension == 2:
                sizes = [varint(data, at)[0] for inner, _, at, _ in fields(data, dim_begin, dim_end) if inner == 1]
                if sizes != [1]:
                    return False
    return True
