"""The rooms of the package and who may import whom, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradtrend

PACKAGE = Path(gradtrend.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Room -> the rooms it may import besides itself. A room is a folder, or a file at the top of the package.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "model": {"errors"},
    "ingest": {"model", "errors"},
    "detect": {"model", "errors"},
    "report": {"model", "errors", "__version__"},
    "replay": {"model", "errors"},
    "selection": {"model", "errors"},
    "parallel": set(),
    "pipeline": {"ingest", "detect", "replay", "selection", "parallel", "model", "errors"},
    "__init__": {"pipeline", "replay", "model", "errors"},
    "cli": {"pipeline", "parallel", "report", "selection", "model", "errors", "__version__"},
    "__main__": {"cli"},
}
ONLY_IN = {"click": {"cli"}, "torch": {"replay"}}
MAX_FILE_LINES = 340
MAX_FUNCTION_LINES = 55
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def room(file: Path) -> str:
    """The room that a file of the package belongs to."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(file: Path) -> Iterator[str]:
    """Dotted names of everything that a file imports, at any depth."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_rooms(file: Path) -> set[str]:
    """The rooms of gradtrend that a file imports."""
    return {name.split(".")[1] for name in imports(file) if name.startswith("gradtrend.")}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_room_imports_only_the_rooms_below_it(file: Path) -> None:
    allowed = MAY_IMPORT[room(file)] | {room(file)}
    assert own_rooms(file) <= allowed


@pytest.mark.parametrize("library", ONLY_IN)
def test_click_and_torch_stay_in_their_rooms(library: str) -> None:
    users = {room(file) for file in FILES if any(name.split(".")[0] == library for name in imports(file))}
    assert users <= ONLY_IN[library]


def test_only_the_command_line_prints_and_exits() -> None:
    loud = {
        f"{file.relative_to(PACKAGE)}:{node.lineno}"
        for file in FILES
        if room(file) != "cli"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"print", "exit", "sys.exit", "os._exit", "SystemExit"}
    }
    assert not loud


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_files_and_functions_stay_small(file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MAX_FILE_LINES
    assert file.stem not in VAGUE
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert (node.end_lineno or 0) - node.lineno < MAX_FUNCTION_LINES, node.name
