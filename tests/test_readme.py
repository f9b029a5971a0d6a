"""README and docs/ say what is true: their commands exist, their outputs are real, their links lead somewhere.

Where the output has changed on purpose, `python -m tests.test_readme` writes the new one, and the picture, into README.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gradtrend.cli import main
from gradtrend.cli.exit_codes import Exit, replay_exit_code
from gradtrend.cli.main import COMMANDS
from gradtrend.model.replay import Inspection, Outcome, Replay
from tests.places import ROOT
from tests.processes import python
from tests.sweep import make_sweep

README = (ROOT / "README.md").read_text(encoding="utf-8")
# Pages that people write; rules.md is made of the rules, and has a test of its own.
PAGES = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
WRITTEN = "\n".join(text for path, text in PAGES.items() if path.name != "rules.md")
PICTURE = ROOT / "docs" / "exploding.svg"
SETUP = re.search(r"^## Set up\n(.*?)^## ", README, re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    """A page of docs/ by its name."""
    return PAGES[ROOT / "docs" / f"{name}.md"]


def blocks(language: str, text: str = README) -> list[str]:
    """The contents of the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def setup_commands() -> list[str]:
    """The lines under Set up."""
    assert SETUP is not None
    return [line for block in blocks("sh", SETUP[1]) for line in block.splitlines()]


def python_example() -> str:
    """The first program under Python."""
    return blocks("python", README.split("\n## Python\n")[1])[0]


def gradtrend_calls() -> list[list[str]]:
    """The words of every gradtrend command in README and docs/, up to a pipe, redirection or comment."""
    lines = [line for block in blocks("sh", WRITTEN) for line in block.splitlines()]
    calls = [re.search(r"gradtrend (.*)", line) for line in lines]
    words = [shlex.split(found[1], comments=True) for found in calls if found]
    ends = [min((call.index(mark) for mark in "|>" if mark in call), default=len(call)) for call in words]
    return [call[:end] for call, end in zip(words, ends, strict=True)]


def options_of(command: str) -> set[str]:
    """The long options that a command's `--help` lists."""
    return set(re.findall(r"--[a-z][a-z-]*", CliRunner().invoke(main, [command, "--help"]).output))


def test_two_commands_set_it_up() -> None:
    analysing, testing = setup_commands()
    assert "pip install . " in analysing
    assert "gradtrend analyze fixtures/" in analysing
    assert "'.[test]'" in testing
    assert testing.endswith("pytest")


def test_the_sample_output_is_what_the_first_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(setup_commands()[0].split(".venv/bin/gradtrend ")[1])
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0
    assert done.output == blocks("text")[0]


def first_run() -> str:
    """What the first command analyses."""
    return shlex.split(setup_commands()[0])[-2]


def test_the_picture_is_what_is_drawn_of_the_first_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    drawn = tmp_path / "drawn.svg"
    assert CliRunner().invoke(main, ["analyze", first_run(), "-o", str(drawn), "--exit-zero"]).exit_code == 0
    assert PICTURE.read_bytes() == drawn.read_bytes()
    assert f"]({PICTURE.relative_to(ROOT).as_posix()})" in README


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_its_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", PAGES[path])
    for link in (link for link in links if "://" not in link):
        name, _, place = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE) if place else []
        assert not place or place in {title.lower().replace(" ", "-") for title in titles}, link


def test_each_page_is_named_in_readme() -> None:
    for path in PAGES:
        assert path.name == "README.md" or f"](docs/{path.name})" in README


def test_the_start_fits_two_screens() -> None:
    assert len(README.split("\n## Verdicts\n")[0].splitlines()) <= 125


@pytest.mark.parametrize("words", gradtrend_calls(), ids=" ".join)
def test_every_command_and_option_in_it_exists(words: list[str]) -> None:
    command = main.get_command(click.Context(main), words[0])
    assert command is not None
    command.make_context(words[0], words[1:])


def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(python_example(), "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "exploding after-explosion"
    assert lines[1].startswith("GT101 error ")


def test_the_scan_in_it_is_of_a_sweep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_sweep(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(blocks("sh", page("many-runs"))[0].splitlines()[0], comments=True)[1:]
    assert CliRunner().invoke(main, words).output == blocks("text", page("many-runs"))[0]


def test_the_scan_by_an_executor_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (program,) = blocks("python", page("many-runs"))
    script = tmp_path / "script.py"
    script.write_text(program)
    done = python(script, folder=ROOT)
    assert "runs: " in done.stdout, done.stderr


def test_the_diagnosis_in_it_is_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks("python", page("replay").split("\n## Diagnose one step\n")[1])
    exec(compile(program, "replay.md", "exec"), {})
    remark, *lines = capsys.readouterr().out.splitlines()
    assert f"# {remark.partition(': x0.1')[0]}: x0.1" in program  # the digits behind it are those of this torch
    assert lines[0].startswith("One step: loss ")
    assert "Next" in lines


def test_the_captured_step_in_it_is_replayed_as_it_says(tmp_path: Path) -> None:
    model, train = blocks("python", page("replay").split("\n### Captures of your own\n")[1].split("\n## ")[0])
    (tmp_path / "model.py").write_text(model)
    (tmp_path / "train.py").write_text(train)
    trained = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    words = trained.stdout.strip().partition(": gradtrend ")[2].split()
    assert words[0] == "replay"
    replayed = subprocess.run(
        [sys.executable, "-m", "gradtrend", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert replayed.returncode == 1
    (said,) = re.findall(r'The replay says: "(.*?)"', page("replay"))
    assert said in " ".join(replayed.stdout.split())


def test_every_option_that_it_names_is_in_a_help() -> None:
    known = {option for command in COMMANDS for option in options_of(command)}
    ours = "\n".join(line for line in WRITTEN.splitlines() if "python -m " not in line)  # the tests have options too
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", ours))
    assert named
    assert named <= known


@pytest.mark.parametrize("command", ["analyze", "replay"])
def test_the_exit_codes_in_a_help_are_those_of_the_program(command: str) -> None:
    text = CliRunner().invoke(main, [command, "--help"]).output.split("Exit codes:\n")[1]
    assert [int(code) for code in re.findall(r"^ +(\d+)  ", text, re.MULTILINE)] == list(Exit)


def test_the_exit_codes_are_those_of_the_program() -> None:
    listed = re.findall(r"^\| (\d+) \| ", README, re.MULTILINE)
    assert [int(code) for code in listed] == list(Exit)


def test_the_exit_codes_of_replays_are_those_of_the_program() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|.*\| (\d)[^|]*\|$", page("replay"), re.MULTILINE)
    listed = {Outcome(name): int(code) for name, code in rows}
    seen = Inspection("capture", "gradtrend", 1, 0, "model", bad_parameters=("weight",))
    assert listed == {outcome: replay_exit_code([Replay(seen, outcome)]) for outcome in Outcome}


if __name__ == "__main__":  # writes the present output and picture into README and docs/
    shown = CliRunner().invoke(main, shlex.split(setup_commands()[0].split(".venv/bin/gradtrend ")[1])).output
    (ROOT / "README.md").write_text(README.replace(blocks("text")[0], shown, 1), encoding="utf-8")
    CliRunner().invoke(main, ["analyze", first_run(), "-o", str(PICTURE), "--exit-zero"])
