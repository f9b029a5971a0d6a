"""Stand-ins -> real objects, by importing and calling what the file names. Only ever reached with the user's trust."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import Any

from gradtrend.errors import ReplayError
from gradtrend.model.contents import CaptureContents, GlobalRef, Inert, Node
from gradtrend.replay.imports import DO_NOT_TRUST, is_plain, may_be_loaded, may_make_data
from gradtrend.replay.subject.tensors import build

_SAME_CODE = "Replay with the code and package versions that the run was trained with."


def import_path(module: str, name: str) -> Any:
    """The object `module`:`name`. Raises `ReplayError` naming the package, module or name that is missing."""
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        raise ReplayError(
            f"rebuilding needs {module}, but there is no module {missing!r} here",
            f"Install the package that holds {missing!r}, or run where your training code can be imported.",
        ) from error
    except (Exception, SystemExit) as error:  # the user's module may raise anything, a script without a guard exits
        raise ReplayError(f"importing {module} failed: {type(error).__name__}: {error}", _SAME_CODE) from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise ReplayError(f"{module} has no {name!r} (here: {_version(module)})", _SAME_CODE)
        found = getattr(found, part)
        if isinstance(found, ModuleType):
            raise ReplayError(f"{module}.{name} is reached by way of another module", DO_NOT_TRUST)
    home = getattr(found, "__module__", None)
    if isinstance(home, str) and not may_be_loaded(home, getattr(found, "__qualname__", "")):
        raise ReplayError(f"{module}.{name} is {home}.{found.__qualname__} of Python's own", DO_NOT_TRUST)
    return found


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """What a function of the user's takes, nothing where that cannot be told."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _version(module: str) -> str:
    package = module.split(".")[0]
    version = getattr(sys.modules.get(package), "__version__", None)
    return f"{package} {version}" if version else package


def revive(contents: CaptureContents, node: Node, permitted: Collection[str]) -> Any:
    """The tree with every stand-in built as pickle would; `permitted` are the classes and functions for that.

    Raises `ReplayError` for what does not fit, and for a name that is not permitted.
    """
    made: dict[int, Any] = {}

    def other(stand_in: Node) -> Any:
        if isinstance(stand_in, GlobalRef):
            if stand_in.path not in permitted and not is_plain(stand_in):
                raise ReplayError(f"the capture would load {stand_in.path}, which was not listed", DO_NOT_TRUST)
            found = import_path(_modern(stand_in.module), stand_in.name)
            if not may_make_data(stand_in, found, contents.recipe.path):
                raise ReplayError(f"the capture would call {stand_in.path}, which makes no data", DO_NOT_TRUST)
            return found
        if isinstance(stand_in, Inert):
            if id(stand_in) not in made:
                _revive_object(stand_in, lambda inner: build(contents, inner, other), made)
            return made[id(stand_in)]
        raise ReplayError(f"the capture holds a {type(stand_in).__name__} that cannot be rebuilt", _SAME_CODE)

    return build(contents, node, other)


def _modern(module: str) -> str:
    return "builtins" if module == "__builtin__" else module  # protocol 2 writes Python 2's name


def _revive_object(inert: Inert, inner: Callable[[Node], Any], made: dict[int, Any]) -> None:
    """Build one object as pickle does: call, then state, then items."""
    callee = inner(inert.callee)
    name = inert.callee.path if isinstance(inert.callee, GlobalRef) else "an object"
    try:
        arguments = inner(inert.arguments)
        keywords = inner(dict(inert.keywords))
        if inert.call == "fields":
            built = callee.__new__(callee)
            for field, value in keywords.items():
                object.__setattr__(built, field, value)  # also of a frozen dataclass
        elif inert.call == "new":
            built = callee.__new__(callee, *arguments, **keywords)
        else:
            built = callee(*arguments, **keywords)
        made[id(inert)] = built
        for state in inert.state:
            _set_state(built, inner(state))
        for item in inert.items:
            built.append(inner(item))
        for key, value in inert.pairs:
            built[inner(key)] = inner(value)
    except ReplayError:
        raise
    except Exception as error:  # the class is the user's and may have changed in any way
        raise ReplayError(f"rebuilding {name} failed: {type(error).__name__}: {error}", _SAME_CODE) from error


def _set_state(built: Any, state: Any) -> None:
    if hasattr(built, "__setstate__"):
        built.__setstate__(state)
        return
    slots: Mapping[str, Any] = {}
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state[0] or {}, state[1] or {}
    if state:
        built.__dict__.update(state)
    for key, value in slots.items():
        setattr(built, key, value)
