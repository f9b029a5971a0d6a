"""Mutated captures: files of torch.save whose pickle is changed operation by operation. Without torch."""

from __future__ import annotations

import io
import pickletools
import random
import struct
import zipfile
from collections.abc import Sequence

from tests.fuzz.values import FLOATS, INTEGERS, NAMES, bent_bytes, encoded, reordered

Members = dict[str, bytes]
_CODES = [opcode.code.encode("latin-1") for opcode in pickletools.opcodes]
_GLOBALS = (
    "torch._utils\n_rebuild_tensor_v2", "torch._utils\n_rebuild_parameter", "torch\nFloatStorage", "torch\nHalfStorage",
    "torch\nBFloat16Storage", "collections\nOrderedDict", "builtins\neval", "os\nsystem", "numpy\ndtype",
    "numpy.core.multiarray\n_reconstruct", "numpy._core.multiarray\nscalar", "_codecs\nencode", "torch\nSize",
    "torch\ndevice", "torch\nfloat16", "torch.serialization\n_get_layout", "a" * 1200 + "\nb", "builtins\nset",
)  # fmt: skip
_SMALL_INTEGERS = {
    b"J": ("<i", (-1, 0, 2**31 - 1, -(2**31))),
    b"K": ("<B", (0, 1, 2, 127, 255)),
    b"M": ("<H", (0, 1, 256, 65535)),
}


class Tensor:
    """A tensor of ones, as torch.save writes it."""

    def __init__(self, key: str, *shape: int) -> None:
        self.key = key
        self.shape = shape
        self.count = 1
        for size in shape:
            self.count *= size


def pickled(value: object) -> bytes:
    """A tree as a pickle of protocol 2."""
    return b"\x80\x02" + _node(value) + b"."


def _node(value: object) -> bytes:
    match value:
        case None | True | False:
            return {None: b"N", True: b"\x88", False: b"\x89"}[value]
        case int():
            return b"J" + struct.pack("<i", value)
        case float():
            return b"G" + struct.pack(">d", value)
        case str():
            return b"X" + struct.pack("<I", len(value.encode())) + value.encode()
        case list():
            return b"](" + b"".join(map(_node, value)) + b"e"
        case tuple():
            return b"(" + b"".join(map(_node, value)) + b"t"
        case dict():
            return b"}(" + b"".join(_node(key) + _node(one) for key, one in value.items()) + b"u"
        case Tensor():
            storage = b"(" + _node("storage") + b"ctorch\nFloatStorage\n"
            storage += _node(value.key) + _node("cpu") + _node(value.count) + b"tQ"
            stride = tuple(value.count // max(1, value.shape[0]) if not at else 1 for at in range(len(value.shape)))
            hooks = b"ccollections\nOrderedDict\n)R"
            inside = storage + _node(0) + _node(value.shape) + _node(stride) + _node(False) + hooks
            return b"ctorch._utils\n_rebuild_tensor_v2\n(" + inside + b"tR"
    raise TypeError(type(value).__name__)


def small_capture(**changes: object) -> Members:
    """The members of a small capture in gradtrend's own format."""
    tree = {
        "format": "gradtrend.capture",
        "format_version": 1,
        "model": {"factory": "train:make", "kwargs": '{"width": 4}'},
        "model_state": {"w": Tensor("0", 2, 4), "b": Tensor("1", 4)},
        "microbatches": [{"image": Tensor("2", 2, 4), "label": [1, 2]}],
        "rng": {"torch": Tensor("3", 4), "python": (3, (1, 2, 3), None)},
        "precision": {"autocast": "float16", "loss_scale": 65536.0},
        "backend": {"tf32": True, "device": "cuda:0"},
        "versions": {"torch": "2.4"},
        "step": 7,
        "rank": 0,
        "loss": float("nan"),
        "gradient_norm": float("inf"),
        "bad_parameters": ["w"],
        "buffers": ["b"],
        "baseline": {"gradient_norm": 1.0, "parameters": {"w": 1.0}},
        **changes,
    }
    ones = struct.pack("<f", 1.0)
    sizes = {"0": 8, "1": 4, "2": 8, "3": 4}
    data = {f"capture/data/{key}": ones * count for key, count in sizes.items()}
    return {"capture/data.pkl": pickled(tree), "capture/byteorder": b"little", "capture/version": b"3\n", **data}


def members_of(data: bytes) -> Members:
    """The members of a zip file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: Members, chance: random.Random) -> bytes:
    """A zip file of the members, stored and with right checksums, now and then compressed."""
    file = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if chance.random() < 0.01 else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=kind)
    return file.getvalue()


def mutated_capture(seeds: Sequence[Members], chance: random.Random) -> bytes:
    """A capture whose pickle, members or bytes are changed."""
    members = dict(chance.choice(seeds))
    name = next(name for name in members if name.endswith("/data.pkl"))
    kind = chance.random()
    if kind < 0.85:
        members[name] = bent_pickle(members[name], chance)
    if kind > 0.8:
        one = chance.choice(list(members))
        match chance.randrange(4):
            case 0:
                del members[one]
            case 1:
                members[chance.choice((*NAMES[14:40], name, "capture/constants.pkl"))[:200]] = members.pop(one)
            case 2:
                members[one] = bent_bytes(members[one], chance)
            case _:
                members[one] = b"" if chance.random() < 0.5 else members[one] * 2
    data = zipped({key.encode("utf-8", "replace").decode(): one for key, one in members.items()}, chance)
    return bent_bytes(data, chance) if chance.random() < 0.05 else data


def bent_pickle(data: bytes, chance: random.Random) -> bytes:
    """A pickle with operations moved, doubled, taken out, put in, or their arguments changed."""
    operations = _operations(data)
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        at = chance.randrange(len(operations) + 1)
        match chance.randrange(8):
            case 0:
                reordered(operations, operations[:20], chance)
            case 1:
                operations[at:at] = [_operation(chance) for _ in range(chance.choice((1, 2, 5)))]
            case 2:
                operations[at : at + 1] = [_operation(chance)]
            case 3:
                operations[at:at] = chance.choice(([b"(", b"t"], [b"]", b"a"], [b"2", b"\x86"], [b")", b"R"])) * 100
            case 4:
                operations = _operations(bent_bytes(b"".join(operations), chance))
            case _ if at < len(operations):
                operations[at] = _bent_operation(operations[at], chance)
    return b"".join(operations[:40_000])


def _operations(data: bytes) -> list[bytes]:
    """The operations of a pickle with their arguments; the rest as one where it is damaged."""
    places: list[int] = []
    try:
        places.extend(at for _, _, at in pickletools.genops(data) if at is not None)
    except Exception:  # of the many kinds that pickletools raises
        places.append(len(data))
    return [data[begin:end] for begin, end in zip(places, [*places[1:], len(data)], strict=True) if begin < end]


def _bent_operation(operation: bytes, chance: random.Random) -> bytes:
    """The same operation with another argument, or another one with the same argument."""
    code, argument = operation[:1], operation[1:]
    if chance.random() < 0.15:
        return chance.choice(_CODES) + argument
    if code in _SMALL_INTEGERS:
        size, numbers = _SMALL_INTEGERS[code]
        return code + struct.pack(size, chance.choice(numbers))
    if code == b"X":
        text = encoded(chance.choice(NAMES))
        return code + struct.pack("<I", len(text) if chance.random() < 0.95 else 2**31) + text
    if code == b"c":
        return code + chance.choice(_GLOBALS).encode() + b"\n"
    if code in b"qr" and argument:
        return code + bytes([chance.randrange(256)]) + argument[1:]
    return code + bent_bytes(argument, chance)


def _operation(chance: random.Random) -> bytes:
    """Any operation, with an argument that fits it where it takes a usual one."""
    match chance.randrange(8):
        case 0:
            number = chance.choice(INTEGERS[:-1])
            size = (number.bit_length() // 8) + 1
            return b"\x8a" + bytes([size]) + number.to_bytes(size, "little", signed=True)
        case 1:
            return b"G" + struct.pack(">d", chance.choice(FLOATS))
        case 2:
            text = encoded(chance.choice(NAMES))
            return b"X" + struct.pack("<I", len(text)) + text
        case 3:
            return b"c" + chance.choice(_GLOBALS).encode() + b"\n"
        case 4:
            return chance.choice((b"h", b"q")) + bytes([chance.randrange(256)])
        case _:
            return chance.choice(_CODES) + (chance.randbytes(chance.choice((1, 4))) if chance.random() < 0.2 else b"")
