"""Mutated text logs: lines of JSON, of tables and of consoles, and whole documents of JSON and YAML."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.fuzz.values import (
    INTEGERS,
    NAMES,
    NUMBERS,
    any_value,
    bent_bytes,
    bent_text,
    encoded,
    nested,
    reordered,
)  # fmt: skip

Bend = Callable[[bytes, random.Random], bytes]
_MOST_LINES = 80  # of a seed: what a mutation breaks, it breaks in a short log
_STEPS = (b"step", b"global_step", b"_step", b"iter", b"epoch", b"trainer/global_step")


def mutated_lines(seeds: Sequence[bytes], chance: random.Random, bend: Bend) -> bytes:
    """A log of lines, one to eight times mutated: lines moved and bent (by `bend`, or as text), the whole recoded."""
    items, others = (chance.choice(seeds).splitlines(keepends=True)[:_MOST_LINES] for _ in range(2))
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        match chance.randrange(6):
            case 0:
                reordered(items, others, chance)
            case 1 if items:
                at = chance.randrange(len(items))
                items[at] = bent_bytes(items[at], chance)
            case 2 if items:
                at = chance.randrange(len(items))
                items[at] = items[at].rstrip(b"\r\n")  # joined with the next one
            case 3 if items:
                first = chance.randrange(len(items))
                for at in range(first, min(len(items), first + chance.choice((1, 5, 1000)))):
                    items[at] = bend(items[at], chance)
            case _ if items:
                at = chance.randrange(len(items))
                items[at] = (bend if chance.random() < 0.6 else bent_text)(items[at], chance)
    return _recoded(b"".join(items[:4000]), chance)


def _recoded(data: bytes, chance: random.Random) -> bytes:
    """Mostly as it is; with another end of lines, a mark of byte order, in UTF-16, cut, or with a foreign tail."""
    match chance.randrange(30):
        case 0:
            return data.replace(b"\n", b"\r\n")
        case 1:
            return data.replace(b"\n", b"\r")
        case 2:
            return b"\xef\xbb\xbf" + data
        case 3:
            return data.decode("utf-8", "replace").encode(chance.choice(("utf-16", "utf-16-be", "utf-32", "utf-7")))
        case 4:
            return data[: chance.randrange(len(data) + 1)]
        case 5:
            return data + bytes(chance.choice((1, 4096)))
        case 6:
            return bent_bytes(data, chance)
        case 7:
            return chance.randbytes(chance.choice((1, 30))) + data
        case _:
            return data


def bent_json_line(line: bytes, chance: random.Random) -> bytes:
    """A JSON object on a line with a value, a name or its step changed; a repeated name; a deep or a quoted one."""
    match chance.randrange(8):
        case 0:
            key = json.dumps(chance.choice(NAMES)).encode()
            value = chance.choice((encoded(chance.choice(NUMBERS)), nested(chance).encode(), b'"' + key[1:]))
            return line.replace(b"{", b"{" + key + b": " + value + b", ", 1)
        case 1:
            step = b'"' + chance.choice(_STEPS) + b'": ' + str(chance.choice(INTEGERS)).encode()
            return line.replace(b"{", b"{" + step + b", ", 1)
        case 2:
            return json.dumps(line.decode("utf-8", "replace")).encode() + b"\n"
        case _:
            return bent_document(line.strip(), chance) + b"\n"


def bent_document(data: bytes, chance: random.Random) -> bytes:
    """A JSON document with nodes of its tree changed; what is none, as text."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return bent_text(data, chance)
    for _ in range(chance.choice((1, 1, 2, 4))):
        tree = _bent_tree(tree, chance)
    text = json.dumps(tree, indent=chance.choice((None, None, 2)), ensure_ascii=chance.random() < 0.8)
    if chance.random() < 0.05:
        text = text.replace("1", nested(chance), 1)
    if chance.random() < 0.1:
        text = text.replace("NaN", chance.choice(('"NaN"', "nan", "null"))).replace(", ", ",,", chance.choice((0, 1)))
    return encoded(text)


def _bent_tree(tree: Any, chance: random.Random) -> Any:
    """The tree with one node changed, at any depth."""
    if not isinstance(tree, dict | list) or not tree or chance.random() < 0.03:
        return any_value(chance)
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    key = chance.choice(keys)
    match chance.randrange(10):
        case 0:
            del tree[key]
        case 1 if isinstance(tree, dict):
            tree[chance.choice(NAMES)] = tree.pop(key)
        case 2 if isinstance(tree, dict):
            tree[chance.choice(NAMES)] = any_value(chance)
        case 1 | 2 | 3 if isinstance(tree, list):
            reordered(tree, [any_value(chance)], chance)
            del tree[2000:]
        case 3:
            tree[key] = [tree[key], any_value(chance)]
        case _:
            tree[key] = _bent_tree(tree[key], chance)
    return tree


def bent_row(line: bytes, chance: random.Random) -> bytes:
    """A row of a table with a cell changed, quoted, doubled or taken out, or with other marks between the cells."""
    mark = b"\t" if b"\t" in line else b","
    cells = line.rstrip(b"\r\n").split(mark)
    at = chance.randrange(len(cells))
    match chance.randrange(9):
        case 0:
            cells[at] = b'"' + cells[at].replace(b'"', b'""') + chance.choice((b'"', b"", b'""', b'\n"'))
        case 1:
            cells[at:at] = [cells[at]] * chance.choice((1, 3, 200))
        case 2:
            del cells[at]
        case 3:
            cells[at] = b'"[1, 2, ' + encoded(chance.choice(NUMBERS)) + b']"'
        case 4:
            cells[at] = encoded(chance.choice(NAMES))
        case 5:
            mark = chance.choice((b";", b"\t", b" ", b"|", b",,", b", "))
        case _:
            cells[at] = encoded(chance.choice(NUMBERS))
    return mark.join(cells) + b"\n"


_BESIDE = (
    b"| %d/100 [00:01<00:09, 3.2it/s, loss=%s]", b"step %d loss %s", b"{'loss': %s, 'grad_norm': %s}", b"[rank%d]: ",
    b"%s - INFO - ", b"epoch: [%d/%d]", b"| step | loss |\n|---|---|", b"loss=%s,grad_norm=%s", b"loss: %s (%s)",
    b"Traceback (most recent call last):", b"CUDA out of memory", b"slurmstepd: error: *** JOB 1 ON a CANCELLED ***",
    b"Skipping step, loss scale reduced to %s", b"nan(nan(", b"a.b/c-" * 50, b"((((", b"[[[[", b"{{{{", b"loss: [%s",
    b"\x1b[2K\r", b"\x08" * 40, b"loss\xe2\x86\x91=%s", b"'loss': tensor(%s, device='cuda:0')", b"np.float32(%s)",
)  # fmt: skip


def bent_console(line: bytes, chance: random.Random) -> bytes:
    """A line of a console with something that other programs print before, behind or within it, or quoted."""
    beside = chance.choice(_BESIDE)
    while b"%" in beside:
        at = beside.index(b"%")
        kind = NUMBERS if beside[at + 1 : at + 2] == b"s" else tuple(map(str, INTEGERS))
        beside = beside[:at] + encoded(chance.choice(kind)).replace(b"%", b"") + beside[at + 2 :]
    match chance.randrange(6):
        case 0:
            return beside + line
        case 1:
            return line.rstrip(b"\r\n") + beside + chance.choice((b"\n", b"\r", b""))
        case 2:
            at = chance.randrange(len(line) + 1)
            return line[:at] + beside + line[at:]
        case 3:
            return beside * chance.choice((1, 20, 300)) + b"\n"
        case 4:
            return repr(repr(line)).encode() + b"\n"
        case _:
            return bent_text(line, chance)
