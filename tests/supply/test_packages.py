"""The wheel and the source archive, each installed without extras in an environment of its own, do what README says.

pytest -m slow tests/supply
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.test_readme import blocks, gradtrend_calls, python_example, setup_commands

pytestmark = pytest.mark.slow
BIN = "Scripts" if sys.platform == "win32" else "bin"
RUNS = ROOT / "fixtures" / "runs"
EXPLODING = RUNS / "lightly" / "exploding_lr_nan"
# What README's commands name, and what stands for it here.
PLACES = {
    "out/run": EXPLODING,
    "runs": RUNS / "lightly",
    "nohup.out": EXPLODING / "train.log",
    "metrics.jsonl": EXPLODING / "metrics.jsonl",
    "mlflow.db": EXPLODING / "mlflow.db",
}
TABLES = {
    "table.csv": "step,my norm,loss\n" + "".join(f"{i},{1 + i % 3 / 10},{2 - i / 100}\n" for i in range(80)),
    "numbers.txt": "".join(f"{i} {2 - i / 100} {1 + i % 3 / 10} 7\n" for i in range(80)),
}


def run(*words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([*map(str, words)], cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("built")
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / BIN / "python"
    done = run(python, "-m", "pip", "install", "-q", "hatchling>=1.26", folder=folder)
    assert done.returncode == 0, done.stderr
    done = run(python, "-m", "hatchling", "build", "-d", folder / "dist", folder=ROOT)
    assert done.returncode == 0, done.stderr
    return folder / "dist"


@pytest.fixture(scope="module", params=["*.whl", "*.tar.gz"])
def bin_folder(request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment into which one of the two was installed, and nothing that it does not need."""
    (package,) = built.glob(request.param)
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=True)
    done = run(folder / BIN / "python", "-m", "pip", "install", "-q", package, folder=folder)
    assert done.returncode == 0, done.stderr
    return folder / BIN


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with what README's commands name."""
    for name, source in PLACES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copyfile)(source, tmp_path / name)
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    shutil.copytree(next((RUNS / "wandb").iterdir()), tmp_path / "wandb")
    (tmp_path / "known-findings.json").write_text('{"gradtrend_baseline": 1, "findings": []}')
    (tmp_path / "mlruns").mkdir()
    (tmp_path / "my-rules").mkdir()
    return tmp_path


def test_both_hold_what_they_need_and_no_more(built: Path) -> None:
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"gradtrend"}
    assert "gradtrend/rules/GT101-exploding.toml" in names
    assert "gradtrend/py.typed" in names
    with tarfile.open(source) as packed:
        inside = {name.split("/", 1)[1] for name in packed.getnames() if "/" in name}
    assert {"pyproject.toml", "README.md", "SECURITY.md", "LICENSE", "tests/places.py"} <= inside
    assert not [name for name in inside if "__pycache__" in name]


def test_no_extra_is_installed(bin_folder: Path, tmp_path: Path) -> None:
    done = run(bin_folder / "python", "-m", "pip", "list", "--format", "freeze", folder=tmp_path)
    names = {line.split("==")[0].lower() for line in done.stdout.splitlines()}
    assert {"gradtrend", "polars", "click"} <= names
    assert not names & {"torch", "mlflow", "pandas", "tensorboard", "wandb", "pytest"}


def test_the_first_command_prints_what_readme_shows(bin_folder: Path) -> None:
    words = setup_commands()[0].split(".venv/bin/gradtrend ")[1].split()
    done = run(bin_folder / "gradtrend", *words, folder=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == blocks("text")[0]


def test_the_python_example_runs(bin_folder: Path) -> None:
    done = run(bin_folder / "python", "-I", "-c", python_example(), folder=ROOT)
    assert done.stderr == ""
    assert done.stdout.startswith("exploding after-explosion\n")


OFFLINE = [words for words in gradtrend_calls() if not any("://" in word for word in words)]


@pytest.mark.parametrize("words", OFFLINE, ids=" ".join)
def test_every_command_of_readme_does_its_work(bin_folder: Path, place: Path, words: list[str]) -> None:
    folder = ROOT if any(word.startswith("fixtures/") for word in words) else place
    given = [word.replace("$SLURM_ARRAY_TASK_ID", "1") for word in words]  # which Slurm sets, and the shell puts in
    done = run(bin_folder / "gradtrend", *given, folder=folder)
    assert done.returncode in (0, 1, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout or done.stderr or {"--quiet", "-o"} & {*words}
