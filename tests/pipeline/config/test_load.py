from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradtrend.errors import ConfigError
from gradtrend.pipeline.config import Config, load_config, settings_in_force


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_without_a_file_there_are_none(tmp_path: Path) -> None:
    assert load_config(tmp_path) == Config()


def test_the_first_found_upward_wins(tmp_path: Path) -> None:
    outer = write(tmp_path / "pyproject.toml", '[tool.gradtrend]\nfail-on = "sick"')
    write(tmp_path / "a" / "pyproject.toml", "[tool.other]\nx = 1")
    inner = tmp_path / "a" / "b"
    inner.mkdir()
    assert load_config(inner).file == outer
    own = write(tmp_path / "a" / "gradtrend.toml", 'metric = "norm"')
    found = load_config(inner)
    assert (found.file, found.metric, found.fail_on) == (own, "norm", None)


def test_its_own_file_comes_before_the_shared_one(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", '[tool.gradtrend]\nmetric = "a"')
    write(tmp_path / "gradtrend.toml", 'metric = "b"')
    assert load_config(tmp_path).metric == "b"
    assert load_config(tmp_path, tmp_path / "pyproject.toml").metric == "a"


def test_all_keys(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    text = """
    fail-on = ["sick", "GT104"]
    select = ["GT1", "GT5"]
    ignore = ["GT501", { rule = "drift", reason = "slow on purpose", metric = "enc/*", run = "*/old*" }]
    metric = "norm"
    loss = "l"
    lr = "r"
    rules = "mine"
    baseline = "known.json"

    [limits.GT101]
    rise_over_noise = 5.0
    later.decades_above_baseline = 1.5
    """
    found = load_config(tmp_path, write(tmp_path / "gradtrend.toml", text))
    assert (found.fail_on, found.select, found.metric, found.loss, found.lr) == (
        "sick,GT104", ("GT1", "GT5"), "norm", "l", "r",
    )  # fmt: skip
    assert (found.rules, found.baseline) == ((tmp_path / "mine",), tmp_path / "known.json")
    assert [str(one) for one in found.ignore] == ["GT501", "drift (metric enc/*, run */old*)"]
    assert found.ignore[1].ids == {"GT104"}
    origins = {setting.key: setting.origin for setting in settings_in_force(found)}
    assert origins["limits.GT101.later.decades_above_baseline"] == str(tmp_path / "gradtrend.toml")
    assert None not in origins.values()


def test_settings_without_a_file_are_defaults(tmp_path: Path) -> None:
    settings = settings_in_force(load_config(tmp_path))
    assert {setting.origin for setting in settings} == {None}
    assert settings[0].value == "error"


def test_every_mistake_is_in_one_message_with_file_key_and_suggestion(tmp_path: Path) -> None:
    text = """
    [tool.gradtrend]
    fail_on = "sick"
    fail-on = "explodng"
    select = ["GT1", "GT999"]
    ignore = ["GT105", { rule = "GT201", resaon = "x" }, 5, { reason = "y" }, { rule = "" }]
    metric = 3
    rules = ["gone"]
    [tool.gradtrend.limits]
    GT101 = { rise_ovr_noise = 2 }
    """
    file = write(tmp_path / "pyproject.toml", text)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path)
    lines = caught.value.message.split("\n")
    assert all(line.startswith(f"{file}: tool.gradtrend.") for line in lines)
    assert [line.removeprefix(f"{file}: tool.gradtrend.") for line in lines] == [
        "fail_on: unknown key; did you mean fail-on?",
        "metric: must be a text, not 3",
        f"rules: {tmp_path / 'gone'}: no such folder",
        "fail-on: no rule 'explodng'; did you mean exploding or exploding-layer?",
        "select: no rule 'GT999'; did you mean GT719 or GT709 or GT609?",
        "ignore[1].resaon: unknown key; did you mean reason?",
        "ignore[2]: must be a rule or a table with a rule, not 5",
        "ignore[3]: missing key 'rule'",
        "ignore[4].rule: must be a text, not ''",
        "limits.GT101.rise_ovr_noise: no limit of GT101; did you mean rise_over_noise or first_over_noise?",
    ]


def test_a_rule_of_its_own_folder_can_be_named(tmp_path: Path) -> None:
    rule = """
    id = "MY1"
    name = "mine"
    severity = "warning"
    summary = "s"
    message = "m"
    when = [{ measure = "decades_above_baseline", above = 1.0, why = "w" }]
    """
    write(tmp_path / "mine" / "mine.toml", rule)
    text = 'rules = "mine"\nignore = ["MY1"]\n[limits.MY1]\ndecades_above_baseline = 2'
    assert load_config(tmp_path, write(tmp_path / "gradtrend.toml", text)).ignore[0].ids == {"MY1"}


@pytest.mark.parametrize(
    "text", ["fail-on =", "a" * (1 << 20) + "=1", "a." * 60 + "a=1", "x = [" + "[" * 5000, 'metric = "\udcff"']
)
def test_what_cannot_be_read_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "gradtrend.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match="gradtrend"):
        load_config(tmp_path)


def test_another_tools_broken_file_is_passed_by(tmp_path: Path) -> None:
    outer = write(tmp_path / "gradtrend.toml", 'metric = "norm"')
    write(tmp_path / "a" / "pyproject.toml", "[tool.poetry\nname = 'uses gradtrend'")
    assert load_config(tmp_path / "a").file == outer
    write(tmp_path / "a" / "pyproject.toml", "[tool.gradtrend]\nmetric =")
    with pytest.raises(ConfigError, match=r"pyproject\.toml"):
        load_config(tmp_path / "a")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_of_that_name_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gradtrend.toml")
    with pytest.raises(ConfigError, match="not a file"):
        load_config(tmp_path)


def test_a_file_that_was_asked_for_must_have_settings(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path, tmp_path / "gone.toml")
    with pytest.raises(ConfigError, match=r"has no \[tool\.gradtrend\]"):
        load_config(tmp_path, write(tmp_path / "pyproject.toml", "[tool.x]"))
    with pytest.raises(ConfigError, match="must be a table"):
        load_config(tmp_path, write(tmp_path / "pyproject.toml", "[tool]\ngradtrend = 3"))
