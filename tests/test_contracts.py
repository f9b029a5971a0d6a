"""The rooms of the package: who may import whom, and how large a room, a file and a function may be."""

from __future__ import annotations

import ast
import os
import shutil
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gradtrend
from tests.places import ROOT

PACKAGE = Path(gradtrend.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_FILES_A_FOLDER = 17
MAX_MEDIAN_LINES = 100
MAX_FILE_LINES = 320
MAX_FUNCTION_LINES = 55
SHORT_FUNCTION_LINES, SHORT_FUNCTIONS = 20, 0.9
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}

# Into a file, an import that a contract forbids: upwards, sideways, past a front.
FORBIDDEN = [
    ("model/words.py", "def heavy() -> None:\n    from gradtrend.report import escape", "Rooms import downwards"),
    ("ingest/formats/csv/reader.py", "import gradtrend.ingest.runs.finding.find", "Ingest: runs over formats"),
    ("ingest/formats/csv/reader.py", "import gradtrend.ingest.captures", "Ingest: runs over formats"),
    ("ingest/captures/find.py", "import gradtrend.ingest.formats", "Ingest: runs over formats"),
    ("ingest/formats/csv/reader.py", "from gradtrend.ingest.formats.console import line", "Formats of logs"),
    (
        "ingest/runs/split.py",
        "import gradtrend.ingest.formats.console.reader",
        "Formats are known by their fronts",
    ),
    ("detect/curves/series.py", "from gradtrend.detect.judge import judge", "Detect: judge over rules"),
    ("report/text/report.py", "import gradtrend.report.json.strict", "Report: formats of reports"),
    ("replay/inspect/fields.py", "import gradtrend.replay.native", "Replay: engine over conclusions"),
    ("replay/conclude/facts.py", "import gradtrend.replay.inspect", "Replay: engine over conclusions"),
    ("pipeline/series.py", "from gradtrend.ingest.files.streams import open_log", "Other rooms know ingest"),
    ("pipeline/replay.py", "import gradtrend.ingest.captures.find", "Other rooms know captures"),
    ("pipeline/analyze.py", "import gradtrend.detect.measures", "Other rooms know detect"),
    ("pipeline/analyze.py", "import gradtrend.detect.rules.load", "Other rooms know detect"),
    ("pipeline/replay.py", "import gradtrend.replay.inspect", "Other rooms know replay"),
    ("cli/output.py", "import gradtrend.report.wording.style", "Other rooms know reports"),
    ("detect/curves/levels.py", "from gradtrend.detect.curves.shape import Shape", "No circles"),
    ("report/text/report.py", "import torch", "torch only in"),
    ("plugins.py", "import torch", "torch only in"),
    ("replay/inspect/health.py", "import torch", "torch only in"),
    ("pipeline/replay.py", "import click", "click only in"),
    ("entry_points.py", "import click", "click only in"),
    ("replay/__init__.py", "import torch", "What every call loads"),
    ("__init__.py", "import click", "What every call loads"),
    ("cli/series.py", "import gradtrend.detect.judge", "The command line reads and judges by way of"),
    ("cli/replay.py", "import gradtrend.ingest.captures", "The command line reads and judges by way of"),
]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
LOUD = {"print", "exit", "quit", "sys.exit", "os._exit", "SystemExit"}


def lint(package: Path) -> subprocess.CompletedProcess[str]:
    """import-linter on a copy of the package, with the contracts of pyproject.toml, which lies beside it."""
    code = "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache'])"
    environment = os.environ | {"PYTHONPATH": str(package.parent)}
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=package.parent, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / "gradtrend", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path / "gradtrend"


def test_the_contracts_hold(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(("file", "statement", "contract"), FORBIDDEN)
def test_a_forbidden_import_breaks_a_contract(copy: Path, file: str, statement: str, contract: str) -> None:
    with (copy / file).open("a", encoding="utf-8") as source:
        source.write(f"\n\n{statement}\n")
    done = lint(copy)
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if line.startswith(contract) and line.endswith("BROKEN")]


def test_every_contract_is_shown_to_break() -> None:
    broken = {one["name"] for one in CONTRACTS for _, _, contract in FORBIDDEN if one["name"].startswith(contract)}
    assert broken == {one["name"] for one in CONTRACTS}


def test_the_contracts_have_no_exceptions() -> None:
    assert "ignore_imports" not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def loud_lines(source: str) -> list[int]:
    """The lines that print or exit."""
    nodes = list(ast.walk(ast.parse(source)))
    called = [(node.lineno, node.func) for node in nodes if isinstance(node, ast.Call)]
    raised = [(node.lineno, node.exc) for node in nodes if isinstance(node, ast.Raise) and node.exc is not None]
    return sorted(line for line, what in called + raised if ast.unparse(what) in LOUD)


@pytest.mark.parametrize("statement", ["print(1)", "sys.exit(1)", "raise SystemExit", "raise SystemExit(1)"])
def test_what_prints_or_exits_is_seen(statement: str) -> None:
    assert loud_lines(f"import sys\n{statement}\n") == [2]


# Ctrl-C while the command line loads, and processes that end when they have worked for another.
ENDS_A_PROCESS = (Path("loading.py"), Path("pipeline", "workers.py"))


def test_only_the_command_line_prints_and_exits() -> None:
    files = [file for file in FILES if file.relative_to(PACKAGE) not in ENDS_A_PROCESS]
    quiet = [file for file in files if file.relative_to(PACKAGE).parts[0] != "cli"]
    assert not [(file, lines) for file in quiet if (lines := loud_lines(file.read_text(encoding="utf-8")))]


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
