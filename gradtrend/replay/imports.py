"""What a replay would import and call, by name: all of it is decided here, before anything is loaded."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping

from gradtrend.model.contents import CaptureContents, GlobalRef, Inert, Node

DO_NOT_TRUST = "Do not trust this file: no capture that a training run wrote holds such a thing."
_SAFE_BUILTINS = frozenset(
    ["bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "object", "range", "set",
     "slice", "str", "tuple"]
)  # fmt: skip
_OTHERS = ("nt", "posix", "pip", "setuptools", "pkg_resources", "_distutils_hack", "__main__")
# The standard library's makers of plain data. Its other names run programs, load code or open files, and no batch,
# state or model is made of them.
_DATA = frozenset(
    [
        "_codecs.encode", "_io.BytesIO", "_io.StringIO", "argparse.Namespace", "array._array_reconstructor",
        "array.array", "collections.ChainMap", "collections.Counter", "collections.OrderedDict", "collections.UserDict",
        "collections.defaultdict", "collections.deque", "copyreg.__newobj__", "copyreg._reconstructor",
        "datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta", "datetime.timezone",
        "decimal.Decimal", "fractions.Fraction", "functools.partial", "io.BytesIO", "io.StringIO", "pathlib.Path",
        "pathlib.PosixPath", "pathlib.PurePath", "pathlib.PurePosixPath", "pathlib.PureWindowsPath",
        "pathlib.WindowsPath", "pathlib._local.PosixPath", "pathlib._local.WindowsPath", "types.MappingProxyType",
        "types.SimpleNamespace", "uuid.UUID",
    ]
)  # fmt: skip
# What torch and numpy write their data with. Others of their functions load files, compile code or start programs.
_REBUILDERS = re.compile(
    r"""
    torch\.(_utils\._rebuild_\w+ | _tensor\._rebuild_from_type_v2 | serialization\._get_layout
        | Size | device | dtype | Generator | Tensor | nn\.parameter\.\w+ | nn\.utils\.rnn\.PackedSequence
        | (storage\.)?\w*Storage | nn\.modules\.\w+\.[A-Z]\w*
        | (b?float|u?int|complex|q?u?int)\d+\w* | bool | half | double | long | short)
    | numpy\.(ndarray | dtype | asarray | bool_? | (u?int|float|complex|str|bytes|datetime|timedelta|void)\d*_?
        | _?core\.(multiarray\.(_reconstruct | scalar) | numeric\._frombuffer) | dtypes\.\w+
        | ma\.(core\._mareconstruct | MaskedArray) | random\._pickle\.\w+)
    """,
    re.VERBOSE,
)
# How a package of its own calls what makes its objects again, where that is no class.
_REBUILDS = re.compile(r"_*(re)?(build|construct|store|make|create|unpickle|new)", re.IGNORECASE)
# How numpy writes the arrays that a random state of its own holds.
_ARRAYS = frozenset(
    ["numpy.ndarray", "numpy.dtype", "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct",
     "numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar"]
)  # fmt: skip


def needed_imports(contents: CaptureContents) -> tuple[str, ...]:
    """The model's recipe, and every class or function that an object of the capture is made with, once each."""
    names = dict.fromkeys([contents.recipe.path])
    names.update(dict.fromkeys(ref.path for tree in _trees(contents) for ref in _globals(tree) if not is_plain(ref)))
    return tuple(names)


def refused_imports(contents: CaptureContents) -> tuple[str, ...]:
    """Those that are not loaded even when the capture is trusted, with why."""
    return tuple(_refusals(contents))


def may_be_loaded(module: str, name: str) -> bool:
    """Whether a replay loads this class or function at all: nothing of Python's own but plain data."""
    first = module.partition(".")[0]
    if module in ("builtins", "__builtin__"):
        return name in _SAFE_BUILTINS
    own = first in sys.stdlib_module_names or first in _OTHERS or module.startswith("test.support")
    return not own or f"{module}.{name}" in _DATA


def may_make_data(ref: GlobalRef, found: object, recipe: str) -> bool:
    """Whether a batch or a state may be made with what a name has led to.

    A class may, and what torch and numpy write their data with; another function only where it is of the package that
    makes the model, which a replay imports and runs anyhow, or has the name of one that makes objects again.
    """
    if ref.module.partition(".")[0] in ("torch", "numpy"):
        return is_torch_or_numpy_data(ref)
    own = ref.module.partition(".")[0] == re.split(r"[.:]", recipe)[0]
    return isinstance(found, type) or own or is_plain(ref) or ref.path in _DATA or bool(_REBUILDS.match(ref.name))


def is_torch_or_numpy_data(ref: GlobalRef) -> bool:
    """Whether it is one of the names that torch and numpy write their data with."""
    return _REBUILDERS.fullmatch(ref.path) is not None


def _refusals(contents: CaptureContents) -> Iterator[str]:
    states = [contents.rng, *_generators(contents)]
    if any(ref.path not in _ARRAYS and not is_plain(ref) for ref in _globals(states)):
        yield "its random state holds an object, where every random state is numbers"
    recipe = contents.recipe.path
    module, name = recipe.split(":", 1) if ":" in recipe else recipe.rpartition(".")[::2]
    if not may_be_loaded(module, name):
        yield f"{recipe} is Python's own, and makes no model"
    elif module.partition(".")[0] in ("torch", "numpy") and not f"{module}.".startswith("torch.nn."):
        yield f"{recipe} makes no model"
    for tree in _trees(contents):
        for ref in _globals(tree):
            if not may_be_loaded(ref.module, ref.name):
                yield f"{ref.path} is Python's own, and no class of data"
            elif ref.module.partition(".")[0] in ("torch", "numpy") and not is_torch_or_numpy_data(ref):
                yield f"{ref.path} is no class of data, and data are not made with it"


def _trees(contents: CaptureContents) -> list[Node]:
    data = [] if contents.outside is None else [contents.outside.data]
    return [
        contents.recipe.keywords,
        contents.microbatches,
        contents.state,
        *data,
        contents.rng,
        *_generators(contents),
    ]


def _generators(contents: CaptureContents) -> list[Node]:
    return [] if contents.outside is None else [contents.outside.generators]


def is_plain(ref: GlobalRef) -> bool:
    """Whether it is one of Python's own classes of values, which need no mention."""
    return ref.module in ("builtins", "__builtin__") and ref.name in _SAFE_BUILTINS


def _globals(tree: Node) -> Iterator[GlobalRef]:
    """Every class or function that an inert tree names."""
    pending, seen = [tree], set()
    while pending:
        node = pending.pop()
        if isinstance(node, GlobalRef):
            yield node
        elif isinstance(node, Mapping | list | tuple | Inert) and id(node) not in seen:
            seen.add(id(node))  # an object may hold itself
            if isinstance(node, Mapping):
                pending.extend([*node.keys(), *node.values()])
            else:
                pending.extend(node.parts if isinstance(node, Inert) else node)
