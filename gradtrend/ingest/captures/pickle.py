"""A pickle machine for files of `torch.save` that imports nothing, calls nothing and stays within bounded memory.

It knows tensors, plain containers and constants. Anything else becomes an `Inert`, which remembers what the file would
have called. The opcodes are parsed by `pickletools`, which never reads past the bytes it is given.
"""

from __future__ import annotations

import pickletools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradtrend.ingest.captures import limits
from gradtrend.ingest.captures.limits import class_name, refuse
from gradtrend.ingest.captures.tensors import KNOWN_CALLS, STORAGE_DTYPES, Storage
from gradtrend.model.contents import GlobalRef, Inert, Node, TensorRef

# An opcode of one byte can make an object of up to 64 bytes: with this many, memory stays under 200 MB and time under
# 2 s. A model of 10,000 tensors takes 500,000.
MAX_OPCODES = 2_000_000


@dataclass(slots=True)
class _Machine:
    """The state of one reading. `sizes` gives the bytes that the file really holds for each storage key.

    `built` is about how many bytes known calls have built so far.
    """

    sizes: Mapping[str, int]
    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)
    built: int = 0

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise refuse("its pickle takes more than it put")
        return self.stack.pop()

    def pop_mark(self) -> list[Any]:
        if not self.marks:
            raise refuse("its pickle closes a mark that it never opened")
        start = self.marks.pop()
        taken = self.stack[start:]
        del self.stack[start:]
        return taken

    def top(self) -> Any:
        if not self.stack:
            raise refuse("its pickle uses an empty stack")
        return self.stack[-1]


def load(data: bytes, sizes: Mapping[str, int]) -> Node:
    """The inert tree of one pickle.

    `sizes` maps storage keys to the bytes present. Raises `InputError` for a pickle that is cut, malformed, too large,
    or declares tensors that do not fit their storages.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an escape that a damaged text ends with: it is read all the same
        return _run(data, _Machine(sizes))


def _run(data: bytes, machine: _Machine) -> Node:
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count >= MAX_OPCODES:
                raise refuse(f"its pickle has more than {MAX_OPCODES:,} operations")
            if opcode.name == "STOP":
                return machine.pop()
            if opcode.name in _CONSTANTS:
                machine.stack.append(limits.constant(argument))
                continue
            operation = _OPERATIONS.get(opcode.name)
            if operation is None:
                raise refuse(f"its pickle uses {opcode.name}, which torch.save never writes")
            operation(machine, argument)
    except (ValueError, TypeError, OverflowError, UnicodeError, AttributeError) as error:
        raise refuse(f"its pickle cannot be read ({error})") from error
    raise refuse("its pickle has no end")


# --- containers -------------------------------------------------------------------------------------------------------


def _put_pairs(target: Any, flat: list[Any]) -> None:
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    if isinstance(target, dict):
        target.update((limits.key(key), value) for key, value in pairs)
    elif isinstance(target, Inert):
        target.pairs.extend(pairs)
    else:
        raise refuse("it sets items of something that has none")


def _put_items(target: Any, items: list[Any]) -> None:
    if isinstance(target, list):
        target.extend(items)
    elif isinstance(target, Inert):
        target.items.extend(items)
    else:
        raise refuse("it appends to something that is no list")


def _dict_of(flat: list[Any]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    _put_pairs(made, flat)
    return made


def _set_of(name: str, items: list[Any]) -> Inert:
    return Inert(GlobalRef("builtins", name), "reduce", (list(items),))


def _tuple_of(machine: _Machine, count: int) -> None:
    taken = [machine.pop() for _ in range(count)]
    machine.stack.append(tuple(reversed(taken)))


def _pop_then(put: Callable[[Any, list[Any]], None], count: int) -> Callable[[_Machine, Any], None]:
    def operation(machine: _Machine, _: Any) -> None:
        taken = [machine.pop() for _ in range(count)]
        put(machine.top(), taken[::-1])

    return operation


def _mark_then(put: Callable[[Any, list[Any]], None]) -> Callable[[_Machine, Any], None]:
    def operation(machine: _Machine, _: Any) -> None:
        taken = machine.pop_mark()
        put(machine.top(), taken)

    return operation


def _push(make: Callable[[_Machine], Any]) -> Callable[[_Machine, Any], None]:
    def operation(machine: _Machine, _: Any) -> None:
        machine.stack.append(make(machine))

    return operation


def _drop(machine: _Machine, _: Any) -> None:
    machine.pop()


def _drop_mark(machine: _Machine, _: Any) -> None:
    machine.pop_mark()


def _put_members(target: Any, items: list[Any]) -> None:
    if not isinstance(target, Inert) or not target.arguments:
        raise refuse("it adds members to something that is no set")
    _put_items(target.arguments[0], items)


# --- the memo ---------------------------------------------------------------------------------------------------------


def _memoize(machine: _Machine, index: Any) -> None:
    machine.memo[len(machine.memo) if index is None else int(index)] = machine.top()


def _recall(machine: _Machine, index: Any) -> None:
    if int(index) not in machine.memo:
        raise refuse("its pickle recalls what it never stored")
    machine.stack.append(machine.memo[int(index)])


# --- globals, calls, tensors ------------------------------------------------------------------------------------------


def _global(machine: _Machine, argument: Any) -> None:
    machine.stack.append(class_name(*str(argument).split(" ", 1)))


def _stack_global(machine: _Machine, _: Any) -> None:
    name, module = machine.pop(), machine.pop()
    machine.stack.append(class_name(module, name))


def _reduce(machine: _Machine, _: Any) -> None:
    arguments, callee = machine.pop(), machine.pop()
    if not isinstance(arguments, tuple):
        raise refuse("it calls with arguments that are no tuple")
    known = KNOWN_CALLS.get(callee.path) if isinstance(callee, GlobalRef) else None
    if known is None:
        machine.stack.append(_inert(callee, "reduce", arguments))
        return
    machine.built += limits.built_bytes(arguments)
    if machine.built > limits.MAX_BUILT:
        raise refuse("it builds the same values again and again")
    machine.stack.append(known(machine.sizes, arguments))


def _inert(callee: Any, call: str, arguments: Any, keywords: Any = None) -> Inert:
    if not isinstance(callee, GlobalRef | Inert) or not isinstance(arguments, tuple):
        raise refuse("it calls something that is no class")
    return Inert(callee, call, arguments, limits.keywords(keywords))


def _new(machine: _Machine, _: Any) -> None:
    arguments, callee = machine.pop(), machine.pop()
    machine.stack.append(_inert(callee, "new", arguments))


def _new_with_keywords(machine: _Machine, _: Any) -> None:
    keywords, arguments, callee = machine.pop(), machine.pop(), machine.pop()
    machine.stack.append(_inert(callee, "new", arguments, keywords))


def _instance(machine: _Machine, argument: Any) -> None:
    arguments = tuple(machine.pop_mark())
    machine.stack.append(_inert(class_name(*str(argument).split(" ", 1)), "reduce", arguments))


def _object(machine: _Machine, _: Any) -> None:
    callee, *arguments = machine.pop_mark()
    machine.stack.append(_inert(callee, "reduce", tuple(arguments)))


def _build(machine: _Machine, _: Any) -> None:
    state, target = machine.pop(), machine.top()
    if isinstance(target, Inert):
        target.state.append(state)
    elif not isinstance(target, dict | TensorRef):  # a state dict's `_metadata` is not needed
        raise refuse("it sets the state of something that has none")


def _storage(machine: _Machine, _: Any) -> None:
    match machine.pop():
        case ("storage", GlobalRef(module="torch" | "torch.storage", name=name), str(key), str(), int()):
            if name not in STORAGE_DTYPES:
                raise refuse(f"it holds a storage of the unknown kind {name}")
            if key not in machine.sizes:
                raise refuse(f"the data of storage {key[:40]!r} is missing")
            machine.stack.append(Storage(STORAGE_DTYPES[name], key))
        case _:
            raise refuse("it refers to outside data in a way that torch.save never does")


_CONSTANTS = frozenset({
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES",
    "BINBYTES8", "BYTEARRAY8",
})  # fmt: skip

_OPERATIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda machine, argument: None,
    "FRAME": lambda machine, argument: None,
    "NONE": _push(lambda machine: None),
    "NEWTRUE": _push(lambda machine: True),
    "NEWFALSE": _push(lambda machine: False),
    "EMPTY_TUPLE": _push(lambda machine: ()),
    "EMPTY_LIST": _push(lambda machine: []),
    "EMPTY_DICT": _push(lambda machine: {}),
    "EMPTY_SET": _push(lambda machine: _set_of("set", [])),
    "LIST": _push(lambda machine: machine.pop_mark()),
    "TUPLE": _push(lambda machine: tuple(machine.pop_mark())),
    "DICT": _push(lambda machine: _dict_of(machine.pop_mark())),
    "FROZENSET": _push(lambda machine: _set_of("frozenset", machine.pop_mark())),
    "TUPLE1": lambda machine, argument: _tuple_of(machine, 1),
    "TUPLE2": lambda machine, argument: _tuple_of(machine, 2),
    "TUPLE3": lambda machine, argument: _tuple_of(machine, 3),
    "MARK": lambda machine, argument: machine.marks.append(len(machine.stack)),
    "POP": _drop,
    "POP_MARK": _drop_mark,
    "DUP": _push(lambda machine: machine.top()),
    "APPEND": _pop_then(_put_items, 1),
    "APPENDS": _mark_then(_put_items),
    "ADDITEMS": _mark_then(_put_members),
    "SETITEM": _pop_then(_put_pairs, 2),
    "SETITEMS": _mark_then(_put_pairs),
    "PUT": _memoize, "BINPUT": _memoize, "LONG_BINPUT": _memoize, "MEMOIZE": _memoize,
    "GET": _recall, "BINGET": _recall, "LONG_BINGET": _recall,
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "NEWOBJ": _new,
    "NEWOBJ_EX": _new_with_keywords,
    "INST": _instance,
    "OBJ": _object,
    "BUILD": _build,
    "BINPERSID": _storage,
}  # fmt: skip
