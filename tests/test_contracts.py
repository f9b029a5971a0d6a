"""The rooms of the package: who may import whom, and how large a room, a file and a function may be."""

from __future__ import annotations

import ast
import shutil
import statistics
import subprocess
import tomllib
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
    "ingest/files/yaml.py": ("from gradtrend.ingest.reading import Reading", "Ingest: runs over formats"),
    "report/json/series.py": ("from gradtrend.report.text import lines", "Report: formats of reports"),
    "replay/run/step.py": ("from gradtrend.replay import engine", "Replay: engine over"),
    "pipeline/runs.py": ("from gradtrend.ingest.captures.pickle import load", "Other rooms know captures"),
    "pipeline/analyze.py": ("from gradtrend.detect.verdict import run_verdict", "Other rooms know detect"),
    "pipeline/replay.py": ("from gradtrend.replay import engine", "Other rooms know replay"),
    "cli/series.py": ("from gradtrend.report.wording.style import Style", "Other rooms know reports"),
    "pipeline/failures.py": ("import click", "click only in"),
    "pipeline/parallel.py": ("from gradtrend.cli import main", "Rooms import downwards"),
}
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


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


@pytest.mark.parametrize("contract", [contract["name"] for contract in CONTRACTS])
def test_each_contract_is_seen_to_break(contract: str) -> None:
    assert any(contract.startswith(broken) for _, broken in FORBIDDEN.values())


def test_the_contracts_have_no_exceptions() -> None:
    assert "ignore_imports" not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_only_the_command_line_prints_and_exits() -> None:
    loud = {
        f"{file.relative_to(PACKAGE)}:{node.lineno}"
        for file in FILES
        if file.relative_to(PACKAGE).parts[0] != "cli"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if _is_loud(node)
    }
    assert not loud


def _is_loud(node: ast.AST) -> bool:
    """Whether a piece of a program prints or ends it; an exception can be raised without a call."""
    named = node.func if isinstance(node, ast.Call) else node.exc if isinstance(node, ast.Raise) else None
    return named is not None and ast.unparse(named) in {"print", "exit", "quit", "sys.exit", "os._exit", "SystemExit"}


@pytest.mark.parametrize(
    ("text", "loud"),
    [("raise SystemExit", True), ("raise SystemExit(3)", True), ("sys.exit()", True), ("print(1)", True),
     ("raise ValueError", False), ("printed(1)", False)],
)  # fmt: skip
def test_what_prints_or_exits_is_seen(text: str, loud: bool) -> None:
    assert any(map(_is_loud, ast.walk(ast.parse(text)))) is loud


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
