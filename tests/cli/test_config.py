"""Settings of a project, as each command takes them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gradtrend.detect.rules import rule_text
from tests.places import EXPLODING

Call = Callable[..., Result]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with an exploding run."""
    folder = tmp_path / "project"
    shutil.copytree(EXPLODING, folder / "out" / "run")
    monkeypatch.chdir(folder)
    return folder


def settle(text: str, name: str = "gradtrend.toml") -> None:
    Path(name).write_text(text, encoding="utf-8")


def test_what_fails(call: Call) -> None:
    settle('[tool.gradtrend]\nfail-on = "never"', "pyproject.toml")
    assert call("analyze", "out/run").exit_code == 0
    assert call("analyze", "out/run", "--no-config").exit_code == 1
    assert call("analyze", "out/run", "--fail-on", "sick").exit_code == 1


def test_an_empty_option_is_no_absent_one(call: Call) -> None:
    settle('fail-on = "never"')
    assert call("analyze", "out/run", "--fail-on", "").exit_code == 2


def rules_in(done: Result) -> list[str]:
    return [finding["rule"] for run in json.loads(done.stdout)["runs"] for finding in run["findings"]]


def test_selected_and_ignored_rules(call: Call) -> None:
    words = ("analyze", "out/run", "--format", "json")
    settle('ignore = [{ rule = "GT101", reason = "a test" }]')
    assert rules_in(call(*words)) == ["GT201"]
    assert rules_in(call(*words, "--ignore", "GT2")) == ["GT101"]
    settle('select = ["GT101"]')
    assert rules_in(call(*words)) == ["GT101"]
    assert rules_in(call(*words, "--select", "GT2")) == ["GT201"]


def test_an_ignore_that_matched_nothing_is_told_on_stderr(call: Call, project: Path) -> None:
    settle('ignore = ["GT201", { rule = "GT101", run = "other*" }]')
    done = call("analyze", "out/run", "--format", "json")
    told = f"gradtrend: {project / 'gradtrend.toml'}: ignore GT101 (run other*) matched nothing\n"
    assert done.stderr == told
    assert "matched nothing" not in call("analyze", "out/run", "--ignore", "GT9,GT1", "--no-config").stderr


def test_names_of_metrics(call: Call) -> None:
    settle('metric = "train_loss"\nloss = "gradient_norm"')
    for command in ("analyze", "series"):
        run = json.loads(call(command, "out/run", "--format", "json").stdout)["runs"][0]
        roles = {series["metric"]: series["role"] for series in run["series"]}
        assert roles["train_loss"] == "grad_norm", command
        run = json.loads(call(command, "out/run", "--format", "json", "--no-config").stdout)["runs"][0]
        assert {series["metric"]: series["role"] for series in run["series"]}["train_loss"] == "loss"


def test_limits_of_rules(call: Call) -> None:
    settle('[limits.GT101]\n"from its first values".decades_above_first = 99\nrise_over_noise = 1e9\nhold.points = 9')
    assert "GT101" not in rules_in(call("analyze", "out/run", "--format", "json"))
    page = call("rule", "GT101").output
    assert "for at least 9 points" in page
    assert "Set in" in page
    assert "for at least 3 points" in call("rule", "GT101", "--no-config").output


def test_folders_of_rules(call: Call) -> None:
    Path("mine").mkdir()
    text = rule_text("GT101").replace('severity = "error"', 'severity = "info"')
    Path("mine/mine.toml").write_text(text)
    settle('rules = ["mine"]')
    assert call("rule", "GT101").output.startswith("GT101 exploding (info)")
    assert 'severity = "info"' in call("rule", "GT101", "--format", "toml").output
    assert call("analyze", "out/run", "--fail-on", "GT201").exit_code == 1
    assert call("analyze", "out/run", "--ignore", "GT2").exit_code == 0
    Path("none").mkdir()
    assert call("analyze", "out/run", "--ignore", "GT2", "--rules", "none").exit_code == 1


@pytest.mark.parametrize(
    "command", [("analyze", "out/run"), ("series", "out/run"), ("rule",), ("config",)], ids=" ".join
)
def test_wrong_settings_are_a_wrong_call_for_each_command(call: Call, command: tuple[str, ...]) -> None:
    settle('metrc = "x"\nfail-on = "explodng"\n"\x1b[31m" = 1'.replace("\x1b", "\\u001b"))
    done = call(*command)
    assert done.exit_code == 2
    assert "metrc: unknown key; did you mean metric?" in done.stderr
    assert "did you mean exploding" in done.stderr
    assert "\x1b" not in done.stderr
    assert call(*command, "--no-config").exit_code in (0, 1)
    assert call(*command, "--no-config", "--config", "gradtrend.toml").exit_code == 2


def test_config_shows_what_is_in_force_and_from_where(call: Call, project: Path) -> None:
    settle(
        'fail-on = "sick"\nignore = [{ rule = "GT501", reason = "\\u001b[31mwhy" }]\n[limits.GT101]\nhold.points = 4'
    )
    text = call("config").output
    assert text.startswith(f"Settings: {project / 'gradtrend.toml'}\n")
    assert "sick  (set there)" in text
    assert "GT501: \\x1b[31mwhy" in text
    assert "limits.GT101.hold.points  4  (set there)" in text
    told = json.loads(call("config", "--format", "json").output)
    found = {one["key"]: (one["value"], one["origin"]) for one in told["settings"]}
    assert found["fail-on"] == ("sick", str(project / "gradtrend.toml"))
    assert found["select"] == ([], "default")
    assert "these are the defaults" in call("config", "--no-config").output


def test_known_findings_fail_no_more(call: Call) -> None:
    done = call("analyze", "out/run", "--write-baseline", "known.json")
    assert done.exit_code == 0
    assert "GT101 exploding, steps 0 to 6 (known)" in done.output
    done = call("analyze", "out/run", "--baseline", "known.json", "--format", "json")
    assert done.exit_code == 0
    assert [finding["known"] for run in json.loads(done.stdout)["runs"] for finding in run["findings"]] == [True, True]
    settle('baseline = "known.json"')
    assert call("analyze", "out/run").exit_code == 0
    assert call("analyze", "out/run", "--no-config").exit_code == 1
    assert call("analyze", "out/run", "--fail-on", "info", "--quiet").output == ""


def test_a_table_counts_what_is_known_apart(call: Call) -> None:
    shutil.copytree("out/run", "out/other")
    call("analyze", "out/run", "--write-baseline", "known.json")
    before, after = (
        call("analyze", "out/run", "out/other", *words).output for words in ([], ["--baseline", "known.json"])
    )
    assert "2 runs: 2 exploding; 4 errors\n" in before
    assert "known" not in before
    assert "2 runs: 2 exploding; 2 errors, 2 known\n" in after
    rows = {line.split()[-2]: line for line in after.splitlines() if line.startswith("exploding")}
    assert "known: norm x" in rows["run"]
    assert "known" not in rows["other"]


def test_a_new_finding_fails_and_one_that_is_gone_is_told(call: Call, project: Path) -> None:
    call("analyze", "out/run", "--write-baseline", "known.json", "--ignore", "GT201")
    assert call("analyze", "out/run", "--baseline", "known.json").exit_code == 1
    done = call("analyze", "out/run", "--baseline", "known.json", "--ignore", "GT101,GT201")
    assert done.exit_code == 0
    assert "known.json: GT101 of gradient_norm in out/run is gone" in done.stderr


def test_a_baseline_never_replaces_what_is_read(call: Call) -> None:
    log = Path("out/run/metrics.jsonl")
    before = log.read_bytes()
    assert call("analyze", "out/run", "--write-baseline", log).exit_code == 2
    assert log.read_bytes() == before
    assert call("analyze", "out/run", "--write-baseline", "out").exit_code == 2
    assert call("analyze", "out/run", "--baseline", log).exit_code == 2


def test_a_baseline_may_be_written_anew(call: Call) -> None:
    call("analyze", "out/run", "--write-baseline", "known.json")
    before = Path("known.json").read_text()
    assert call("analyze", "out/run", "--baseline", "known.json", "--write-baseline", "known.json").exit_code == 0
    assert Path("known.json").read_text() == before
