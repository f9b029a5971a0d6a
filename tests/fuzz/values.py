"""What is put in place of a value of a log: numbers, names and bytes that a reader may stumble over."""

from __future__ import annotations

import json
import random
import re
from collections.abc import MutableSequence
from typing import Any, TypeVar

_T = TypeVar("_T")

# As they may stand in a text. The first dozen are what trainers print; what follows is at, or over, an edge.
NUMBERS = (
    "nan", "NaN", "-nan", "inf", "-inf", "Infinity", "-Infinity", "nan(ind)", "1.#QNAN", "-1.#IND", "1.#INF", "None",
    "0", "-0.0", "-1", "1e999", "-1e999", "1e-400", "5e-324", "1e308", "1.7976931348623157e308", "1e5000", "1e-5000",
    "2147483648", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "18446744073709551616", "1" * 400, "0." + "0" * 400 + "1", "1_000", "0x1p3", "0x10", "١٢", "１２", "²", "1,5",
    "1,234.5", "1.234,5", "12.", ".5", "1e", "1e+", "--1", "+5", "1 2", "true", "null", "", "-", "nan nan", "1e2e3",
    "1577836800000", "1577836800123456789", "00012", "3/10", "50%", "1.5k", "2M", "snan", "infinit", "nan(0x1)",
)  # fmt: skip
NAMES = (
    "grad_norm", "train/grad_norm", "loss", "lr", "learning_rate", "step", "global_step", "_step", "epoch", "time",
    "timestamp", "iter", "loss_scale", "grad_norm/layers.0.attn.weight", "total_norm", "eval_loss", "nan", "inf", "1",
    "", " ", "#", "-", "=", ":", ",", "|", "/", "//", "..", "../up", "a.b/c-", "a" * 600, "l." * 200, "é", "名前", "🔥",
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x00", "\x07", "\x7f", "\x9b31m", "\u202eabc", "\u200b", "\u2028",
    "\ufeff", "\ud800", "\udcff", "a\nb", "a\rb", "a\tb", '"', "'", "\\", "{", "}", "{0}", "{name}", "%s", "$HOME",
    "[loss]", "(loss", "loss)", "__class__", "grad norm", "GRAD_NORM", "x_grad_norm_min", "x_grad_norm_max", "<b>",
)  # fmt: skip
INTEGERS = (
    0, 1, -1, 2, 127, 128, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -(2**63),
    -(2**63) - 1, 2**64 - 1, 2**64, 10**30, -(10**30), 10**400,
)  # fmt: skip
FLOATS = (
    0.0, -0.0, 1.0, -1.0, 1e-45, 5e-324, 1e-300, 1e38, 1e300, -1e300, 1.7976931348623157e308, float("nan"),
    float("inf"), float("-inf"), 0.1,
)  # fmt: skip
_NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|NaN|inf(?:inity)?)")
_NAME = re.compile(rb"[A-Za-z_][\w./-]*")
_DEEP = (2, 30, 120, 600, 990, 1100, 5000)


def encoded(text: str) -> bytes:
    """A text as bytes, lone surrogates too."""
    return text.encode("utf-8", "surrogatepass")


def any_value(chance: random.Random) -> Any:
    """A value of any type, as JSON may hold it."""
    match chance.randrange(9):
        case 0 | 1:
            return chance.choice(FLOATS)
        case 2 | 3:
            return chance.choice(INTEGERS[:-1])
        case 4:
            return chance.choice(NUMBERS)
        case 5:
            return chance.choice(NAMES)
        case 6:
            return chance.choice((None, True, False, [], {}, [[]], {"": {}}))
        case 7:
            return json.dumps({chance.choice(NAMES): chance.choice(NUMBERS)})
        case _:
            return {chance.choice(NAMES): any_value(chance), chance.choice(NAMES): [any_value(chance)]}


def nested(chance: random.Random) -> str:
    """JSON that is deeply nested, closed or not."""
    deep = chance.choice(_DEEP)
    opened, closed = chance.choice((("[", "]"), ('{"a":', "}"), ('[{"a":', "}]"), ('{"loss":[', "]}")))
    return opened * deep + "1" + closed * (deep if chance.random() < 0.7 else deep // 2)


def bent_bytes(data: bytes, chance: random.Random) -> bytes:
    """The bytes with some flipped, cut, put in, taken out, doubled or zeroed, with no regard to what they mean."""
    piece = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        at = chance.randrange(len(piece) + 1)
        size = chance.choice((1, 1, 2, 4, 8, 64, 512))
        match chance.randrange(7):
            case 0 if at < len(piece):
                piece[at] ^= 1 << chance.randrange(8)
            case 1:
                del piece[at : at + size]
            case 2:
                piece[at:at] = chance.randbytes(size)
            case 3:
                piece[at:at] = piece[at : at + size] * chance.choice((1, 2, 30))
            case 4:
                piece[at : at + size] = bytes(len(piece[at : at + size]))
            case 5:
                piece[at : at + size] = chance.choice((b"\xff", b"\x80", b"\r", b"\n", b"\x1b[2J", b"\0")) * size
            case _ if chance.random() < 0.2:
                del piece[at:]
    return bytes(piece)


def bent_text(line: bytes, chance: random.Random) -> bytes:
    """A line with a number or a name in it replaced, or something put between."""
    pattern, values = (_NUMBER, NUMBERS) if chance.random() < 0.6 else (_NAME, NAMES)
    found = list(pattern.finditer(line))
    new = encoded(chance.choice(values))
    if not found or chance.random() < 0.1:
        at = chance.randrange(len(line) + 1)
        return line[:at] + new * chance.choice((1, 1, 1, 40)) + line[at:]
    one = chance.choice(found)
    return line[: one.start()] + new + line[one.end() :]


def reordered(items: MutableSequence[_T], others: MutableSequence[_T], chance: random.Random) -> None:
    """Records doubled, taken out, moved, turned round, repeated, or spliced with those of another log, in place."""
    if not items:
        items.extend(others)
        return
    at, to = sorted((chance.randrange(len(items)), chance.randrange(len(items))))
    match chance.randrange(8):
        case 0:
            items[at:at] = items[at : to + 1]
        case 1:
            del items[at : min(to + 1, at + chance.choice((1, 3, 1000)))]
        case 2:
            items[at], items[to] = items[to], items[at]
        case 3:
            items[at : to + 1] = items[at : to + 1][::-1]
        case 4:
            part = list(items[at : to + 1])
            chance.shuffle(part)
            items[at : to + 1] = part
        case 5:
            items[at:at] = [items[at]] * chance.choice((2, 50, 400))
        case 6:
            items[to:] = others[chance.randrange(len(others) + 1) :]
        case _:
            items[at:at] = others[: chance.randrange(len(others) + 1)]
