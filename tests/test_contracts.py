"""The rooms of the package: who may import whom, and how large a room, a file and a function may be."""

from __future__ import annotations

import ast
import shutil
import statistics
import subprocess
from pathlib import Path

import pytest

import gradtrend
from tests.places import ROOT
from tests.processes import python

PACKAGE = Path(gradtrend.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_FILES_A_FOLDER = 16
MAX_MEDIAN_LINES = 100
MAX_FILE_LINES = 320
MAX_FUNCTION_LINES = 55
SHORT_FUNCTION_LINES, SHORT_FUNCTIONS = 20, 0.9
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}

# Into a file, an import that a contract forbids: upwards, sideways between formats, past a front.
FORBIDDEN = {
    "detect/curves/series.py": ("from gradtrend.detect.judge import judge", "Detect: judge over rules"),
    "ingest/formats/csv/reader.py": ("from gradtrend.ingest.formats.console import line", "Formats of logs"),
    "pipeline/series.py": ("from gradtrend.ingest.files.streams import open_log", "Other rooms know ingest"),
    "model/words.py": ("def heavy() -> None:\n    from gradtrend.report import escape", "Rooms import downwards"),
    "report/text/report.py": ("import torch", "torch only in"),
    "detect/curves/levels.py": ("from gradtrend.detect.curves.shape import Shape", "No circles"),
}


def lint(package: Path) -> subprocess.CompletedProcess[str]:
    """import-linter on a copy of the package, with the contracts of pyproject.toml, which lies beside it."""
    code = "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache'])"
    return python("-P", "-c", code, folder=package.parent, finds=(package.parent,))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / "gradtrend", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path / "gradtrend"


def test_the_contracts_hold(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.parametrize("file", FORBIDDEN)
def test_a_forbidden_import_breaks_a_contract(copy: Path, file: str) -> None:
    statement, contract = FORBIDDEN[file]
    with (copy / file).open("a", encoding="utf-8") as source:
        source.write(f"\n\n{statement}\n")
    done = lint(copy)
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if line.startswith(contract) and line.endswith("BROKEN")]


def test_the_contracts_have_no_exceptions() -> None:
    assert "ignore_imports" not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_only_the_command_line_prints_and_exits() -> None:
    loud = {
        f"{file.relative_to(PACKAGE)}:{node.lineno}"
        for file in FILES
        if file.relative_to(PACKAGE).parts[0] != "cli"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"print", "exit", "sys.exit", "os._exit", "SystemExit"}
    }
    assert not loud


def test_folders_are_small() -> None:
    folders = {file.parent for file in FILES}
    assert max(len(list(folder.glob("*.py"))) for folder in folders) <= MAX_FILES_A_FOLDER


def test_names_of_files_say_what_is_in_them() -> None:
    assert not {file.stem for file in FILES} & VAGUE
    for file in FILES:
        assert not file.stem.startswith(f"{file.parent.name}_"), f"{file}: its folder says that already"


def test_files_and_functions_are_small() -> None:
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert max(lines.values()) <= MAX_FILE_LINES
    assert statistics.median(lines.values()) <= MAX_MEDIAN_LINES
    functions = [
        (node.end_lineno or 0) - node.lineno + 1
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    assert max(functions) <= MAX_FUNCTION_LINES
    assert sum(length <= SHORT_FUNCTION_LINES for length in functions) >= SHORT_FUNCTIONS * len(functions)
