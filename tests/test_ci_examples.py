"""What docs/ci.md, README and `.github/actions` give to copy is run, or checked against its readers' schemas."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from gradtrend.cli import main
from tests.places import EXPLODING, ROOT
from tests.test_readme import README, blocks, page

ACTION = ROOT / ".github" / "actions" / "gradtrend" / "action.yml"
CI = page("ci")
EXAMPLES = {
    name: text for text in blocks("yaml", CI) for name in ("jobs", "check-training", "repos") if text.startswith(name)
}
bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")


def fits(schema: str, file: Path) -> None:
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def calls() -> list[list[str]]:
    """The words of every call of gradtrend in the examples for CI."""
    lines = [line for text in (*blocks("yaml", CI), *blocks("groovy", CI)) for line in text.splitlines()]
    found = [re.search(r"gradtrend (analyze [^'\n]*)", line) for line in lines]
    return [shlex.split(one[1]) for one in found if one]


def test_there_is_an_example_for_each() -> None:
    assert set(EXAMPLES) == {"jobs", "check-training", "repos"}
    assert len(calls()) == 3


@pytest.mark.parametrize("words", calls(), ids=" ".join)
def test_every_example_is_a_call_that_fails_on_sick_runs(words: list[str]) -> None:
    command = main.get_command(click.Context(main), words[0])
    assert command is not None
    context = command.make_context(words[0], words[1:])
    assert context.params["fail_on"] == "sick"


def test_the_example_for_gitlab(tmp_path: Path) -> None:
    file = tmp_path / "ci.yml"
    file.write_text(EXAMPLES["check-training"])
    fits("vendor.gitlab-ci", file)


def test_the_example_for_github(tmp_path: Path) -> None:
    file = tmp_path / "workflow.yml"
    file.write_text(f"on: push\n{EXAMPLES['jobs']}")
    fits("vendor.github-workflows", file)
    step = yaml.safe_load(EXAMPLES["jobs"])["jobs"]["training"]["steps"][-1]
    assert step["uses"].partition("/gradtrend/")[2].partition("@")[0] == str(ACTION.parent.relative_to(ROOT))
    assert set(step["with"]) <= set(yaml.safe_load(ACTION.read_text())["inputs"])
    assert step["with"]["fail-on"] == "sick"


def test_the_lines_for_github_in_readme() -> None:
    """The start shows the same step in fewer lines."""
    (step,) = yaml.safe_load(blocks("yaml", README)[0])
    assert step["uses"] == yaml.safe_load(EXAMPLES["jobs"])["jobs"]["training"]["steps"][-1]["uses"]
    assert set(step["with"]) <= set(yaml.safe_load(ACTION.read_text())["inputs"])
    assert step["with"]["fail-on"] == "sick"


def test_the_example_for_pre_commit() -> None:
    """The fields that pre-commit demands of a local hook."""
    (repo,) = yaml.safe_load(EXAMPLES["repos"])["repos"]
    (hook,) = repo["hooks"]
    assert repo["repo"] == "local"
    assert {"id", "name", "entry", "language"} <= set(hook)
    assert hook["pass_filenames"] is False


def test_the_action_fits_its_schema() -> None:
    fits("vendor.github-actions", ACTION)


def steps() -> dict[str, Any]:
    return {step["name"]: step for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"]}


def test_the_action_puts_no_input_into_a_script() -> None:
    """An expression in a script is replaced before bash reads it, and could bring commands of its own."""
    for step in steps().values():
        assert "${{" not in step["run"]


def run_step(folder: Path, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
    """A step as GitHub's runner runs it: its script by `bash -e -o pipefail`, its inputs as it names them."""
    step = steps()[name]
    defaults = {key: one.get("default", "") for key, one in yaml.safe_load(ACTION.read_text())["inputs"].items()}
    values = defaults | {key.replace("_", "-"): value for key, value in inputs.items()}
    env = {key: _filled(value, values) for key, value in step["env"].items()}
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    program = programs / "gradtrend"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gradtrend "$@"\n')
    program.chmod(0o755)
    (programs / "python").write_text('#!/bin/sh\necho "python $*"\n')
    (programs / "python").chmod(0o755)
    files = {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary")}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    whole = {**os.environ, "PYTHONPATH": str(ROOT), **files, **env, "PATH": path}
    script = folder / "script.sh"
    script.write_text(step["run"])
    words = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
    return subprocess.run(words, cwd=folder, env=whole, capture_output=True, text=True, check=False)


def _filled(value: str, inputs: dict[str, str]) -> str:
    """An expression of the action as the runner fills it."""
    value = value.replace("${{ github.action_path }}", str(ACTION.parent))
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], value)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(EXPLODING, tmp_path / "out" / "a run; echo $HOME")
    (tmp_path / "train.yaml").write_text("lr: 3\n")
    return tmp_path


@bash
def test_the_action_judges_fails_and_says_so(project: Path) -> None:
    run = "out/a run; echo $HOME"
    done = run_step(project, "Judge the runs", paths=f"{run}\n\n", anchor="train.yaml:1")
    assert done.returncode == 1
    assert done.stdout.startswith(f"::error file=train.yaml,line=1,title=GT101 exploding%3A {run} (exploding_lr_nan)::")
    assert (project / "output").read_text() == "exit-code=1\n"
    assert (project / "summary").read_text(encoding="utf-8").startswith("### gradtrend: failed")


@bash
def test_the_action_takes_several_paths_and_options(project: Path) -> None:
    paths = "out\n--looks-like-an-option"
    done = run_step(project, "Judge the runs", paths=paths, options="--exit-zero\n--ignore\nGT2", fail_on="never")
    assert done.returncode == 0
    assert "GT201" not in done.stdout
    assert "--looks-like-an-option%3A could not be read" in done.stdout
    assert (project / "output").read_text() == "exit-code=0\n"


@bash
def test_the_action_fails_on_sick_runs_by_itself(project: Path) -> None:
    assert run_step(project, "Judge the runs", paths="out", options="--ignore\nGT1,GT2").returncode == 0
    assert run_step(project, "Judge the runs", paths="out", options="--ignore\nGT101").returncode == 1


@bash
@pytest.mark.parametrize(("install", "what"), [("source", str(ROOT)), ("gradtrend==9", "gradtrend==9"), ("", None)])
def test_the_action_installs_its_own_version_or_what_it_is_told(project: Path, install: str, what: str | None) -> None:
    """What is called is looked at; installing this folder is what README's first command does."""
    done = run_step(project, "Install gradtrend", install=install)
    assert done.returncode == 0
    words = done.stdout.split()
    assert words[:-1] == (["python", "-m", "pip", "install", "--quiet"] if what else [])
    if what:
        assert os.path.normpath(words[-1]) == what


def test_the_settings_in_readme_are_settings(tmp_path: Path) -> None:
    from gradtrend.pipeline.config import load_config

    (text,) = [block for block in blocks("toml", README) if block.startswith("[tool.gradtrend]")]
    (tmp_path / "training" / "rules").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(text)
    found = load_config(tmp_path)
    assert found.fail_on == "sick"
    assert len(found.ignore) == 2
