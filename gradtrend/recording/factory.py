"""The name of what makes the model, by which another process can import it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_WAY_OUT = "move it to a module of its own (model.py) and import it from there"


def factory_path(factory: str | Callable[..., Any]) -> str:
    """`module:function`. Raises `ValueError` for one that a replay could not import, or only by running the script."""
    if isinstance(factory, str):
        return _checked(factory)
    name = getattr(factory, "__qualname__", "")
    if not name or not getattr(factory, "__module__", ""):
        raise ValueError(f"factory is a {type(factory).__name__}, which has no name to import; give a function")
    if "<" in name:
        raise ValueError(f"factory {name} is local: replay could not import it; {_WAY_OUT}")
    if factory.__module__ == "__main__":
        raise ValueError(
            f"factory {name} stands in the script that is running: importing it would train again; {_WAY_OUT}"
        )
    return f"{factory.__module__}:{name}"


def _checked(path: str) -> str:
    module, _, name = path.partition(":")
    if not module or not name:
        raise ValueError(f"factory must be 'module:function', not {path!r}")
    if module == "__main__":
        raise ValueError(f"factory {path!r}: in another process __main__ is another script; {_WAY_OUT}")
    if _is_unguarded_script(module):
        raise ValueError(
            f'factory {path!r} names the script that is running, which has no `if __name__ == "__main__":`: '
            f"importing it would train again; add that line, or {_WAY_OUT}"
        )
    found: Any = sys.modules.get(module)
    for part in name.split(".") if found is not None else ():
        if not hasattr(found, part):
            raise ValueError(f"factory {path!r}: {module} has no {name!r}")
        found = getattr(found, part)
    return path


def _is_unguarded_script(module: str) -> bool:
    """Whether `module` is the running script by another name, and importing it would run all of it."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if file is None or Path(file).stem != module.rpartition(".")[2]:
        return False
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return False
    return not any(isinstance(node, ast.If) and "__name__" in ast.dump(node.test) for node in tree.body)
