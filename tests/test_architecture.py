"""ARCHITECTURE.md says where things are: every file, folder and name in it exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.places import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "gradtrend"
# `ingest/runs/finding/find.py` `find_runs`, `other` ...: a file, and names in it.
NAMED = re.findall(r"`((?:\w+/)+\w+\.py)`((?:,? `\w+`)*)", PAGE)
# The tree: a folder and what is said of it; behind a colon stand the files of the folder, all of them.
TREE = re.findall(r"^( {2}| {4})(\w+)/ +(.*)$", PAGE.split("\nrules/ ")[0], re.MULTILINE)


def names_in(path: str) -> set[str]:
    """The functions, classes and constants of a file."""
    tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
    defined = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    targets = [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    targets += [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return defined | {target.id for target in targets if isinstance(target, ast.Name)}


@pytest.mark.parametrize(("path", "names"), sorted(set(NAMED)))
def test_every_file_and_name_exists(path: str, names: str) -> None:
    if path.startswith("tests/"):
        assert (ROOT / path).is_file()
    else:
        assert set(re.findall(r"\w+", names)) <= names_in(path)


def folders_of_tree() -> dict[Path, str]:
    """The folders of the tree, and what stands behind each."""
    found: dict[Path, str] = {}
    room = PACKAGE
    for indent, name, text in TREE:
        room = PACKAGE / name if len(indent) == 2 else room
        found[room if len(indent) == 2 else room / name] = text
    return found


def packages_in(folder: Path) -> set[Path]:
    return {child for child in folder.iterdir() if (child / "__init__.py").is_file()}


def test_every_room_and_floor_stands_in_the_tree_and_nothing_else() -> None:
    rooms = packages_in(PACKAGE)
    floors = {floor for room in rooms for floor in packages_in(room)}
    assert set(folders_of_tree()) == rooms | floors


@pytest.mark.parametrize(("folder", "text"), folders_of_tree().items(), ids=lambda value: getattr(value, "name", ""))
def test_the_files_of_a_folder_stand_behind_it(folder: Path, text: str) -> None:
    files = {file.stem for file in folder.glob("*.py")} - {"__init__"}
    _, colon, names = text.rpartition(": ")
    if colon:
        assert set(re.findall(r"\w+", names)) == files
    else:
        assert all(list(folder.rglob(name)) for name in re.findall(r"\w+\.py", text))


def test_a_file_named_without_its_folder_exists() -> None:
    for name in set(re.findall(r"(?<![\w/])(\w+\.py)\b", PAGE)):
        assert list(PACKAGE.rglob(name)) or list(ROOT.glob(f"*/{name}")), name


def test_it_is_two_screens() -> None:
    assert len(PAGE.splitlines()) < 130
