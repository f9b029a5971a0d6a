"""ARCHITECTURE.md says where things are: every file, folder and name in it exists."""

from __future__ import annotations

import ast
import re

import pytest

from tests.places import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "gradtrend"
# `ingest/runs/find.py` `find_runs`, `other` ...: a file, and names in it.
NAMED = re.findall(r"`((?:\w+/)+\w+\.py)`((?:,? `\w+`)*)", PAGE)
TREE = re.findall(r"^ {2,4}(\w+)/ ", PAGE, re.MULTILINE)


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


def test_every_room_stands_in_it() -> None:
    folders = {child.name for child in PACKAGE.iterdir() if (child / "__init__.py").is_file()}
    floors = {child.name for room in ("ingest", "detect") for child in (PACKAGE / room).iterdir() if child.is_dir()}
    assert folders | floors - {"__pycache__"} <= set(TREE)


def test_it_is_two_screens() -> None:
    assert len(PAGE.splitlines()) < 110
