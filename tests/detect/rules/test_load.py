"""Rule files: every mistake is told, with file and key; a user's rules add to the shipped ones or override them."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path

import pytest

from gradtrend.detect.measures import MEASURES
from gradtrend.detect.rules.load import builtin_folder, load_rules, rule_text
from gradtrend.detect.rules.problems import problems_among, problems_of
from gradtrend.errors import ConfigError
from gradtrend.model.advice import ACTION_IDS, Advice
from gradtrend.model.replay import Outcome, ReplayCause
from gradtrend.model.rule import Hold, ReplayTopic, Rule
from gradtrend.model.words import Cause, Role, Severity, Verdict
from tests.detect.runs import finding, fired, judged, log_of, shipped_rules

GOOD = """
id = "US1"
name = "high-norm"
severity = "warning"
summary = "The norm is high."
message = "{metric} is {typical_norm} at the median."

[[when]]
measure = "typical_norm"
above = 5.0
why = "Ours never is."

[[action]]
text = "Look at {metric} (lr {lr})."
"""
WHEN = '[[alternative.when]]\nmeasure = "decades_fallen"\nabove = 1.0\nwhy = "It fell."\n'
NORM = [9.0, 9.5, 8.5, 9.2] * 10


def folder(path: Path, **texts: str) -> Path:
    """A folder of rule files."""
    for name, text in texts.items():
        (path / f"{name}.toml").write_text(text, encoding="utf-8")
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        load_rules(path)
    return raised.value.message.splitlines()


MISTAKES = {
    "unknown key": ('colour = "red"\n' + GOOD, "colour"),
    "unknown key in select": (GOOD + "\n[select]\nwhere = 1\n", "select.where"),
    "unknown key in when": (GOOD.replace("above = 5.0", "above = 5.0\nbeyond = 1"), "when[0]: unknown key 'beyond'"),
    "unknown key in hold": (GOOD + "\n[hold]\nsteps = 3\n", "hold.steps"),
    "unknown key in action": (
        GOOD.replace("[[action]]", "[[action]]\nurgent = true"), "action[0]: unknown key 'urgent'",
    ),
    "wrong cause": ('cause = "cosmic rays"\n' + GOOD, "cause"),
    "wrong topic of a replay": (GOOD + '\n[select]\nreplay = "confirmed"\n', "select.replay"),
    "no topic of a replay": (GOOD + '\n[select]\nnote = "replay"\n', "select.replay must say"),
    "wrong hold": (GOOD + '\n[hold]\nuntil = "never"\n', "hold.until"),
    "unknown key in an alternative": (
        GOOD + '\n[[alternative]]\nname = "a"\nif = 1\n' + WHEN, "alternative[0]: unknown key 'if'",
    ),
    "alternative without a name": (GOOD + "\n[[alternative]]\n" + WHEN, "alternative[0]: missing key 'name'"),
    "alternative without names": (
        GOOD + "\n[[alternative]]\nname = []\n" + WHEN, "alternative[0]: name must be a text or a list of texts",
    ),
    "alternative without conditions": (
        GOOD + '\n[[alternative]]\nname = "a"\n', "alternative[0]: needs an [[alternative.when]]",
    ),
    "wrong condition of an alternative": (
        GOOD + '\n[[alternative]]\nname = "a"\n' + WHEN + WHEN.replace("above = 1.0\n", ""),
        "alternative[0].when[1]: needs exactly one number",
    ),
    "alternative within an alternative": (
        GOOD + '\n[[alternative]]\nname = "a"\n' + WHEN + 'case = "b"\n', "alternative[0].when[0]: unknown key 'case'",
    ),
    "no such measure": (GOOD.replace('measure = "typical_norm"', 'measure = "height"'), "height"),
    "no measure": (GOOD.replace('measure = "typical_norm"\n', ""), "when[0]: missing key 'measure'"),
    "two limits": (GOOD.replace("above = 5.0", "above = 5.0\nbelow = 9.0"), "above or below"),
    "no limit": (GOOD.replace("above = 5.0\n", ""), "above or below"),
    "limit is text": (GOOD.replace("above = 5.0", 'above = "5"'), "above must be a number"),
    "limit is a truth value": (GOOD.replace("above = 5.0", "above = true"), "above must be a number"),
    "limit is no number": (GOOD.replace("above = 5.0", "above = nan"), "above must be a number"),
    "no why": (GOOD.replace('why = "Ours never is."', ""), "why"),
    "wrong missing": (GOOD.replace("above = 5.0", 'above = 5.0\nmissing = "fail"'), "missing"),
    "unknown name in the message": (GOOD.replace("{metric} is", "{metrik} is"), "{metrik}"),
    "unknown name in an action": (GOOD.replace("(lr {lr})", "(lr {rate})"), "action[0]: unknown name {rate}"),
    "format without end": (GOOD.replace("{metric} is", "{metric:>999999999} is"), "message: {metric} has a format"),
    "format within a format": (GOOD.replace("{metric} is", "{metric:{last}} is"), "message: {metric} has a format"),
    "conversion": (GOOD.replace("(lr {lr})", "(lr {lr!r})"), "action[0]: {lr} has a format or conversion"),
    "attribute": (GOOD.replace("{metric} is", "{metric.__class__} is"), "unknown name {metric.__class__}"),
    "item": (GOOD.replace("{metric} is", "{metric[0]} is"), "unknown name {metric[0]}"),
    "position": (GOOD.replace("{metric} is", "{0} is"), "unknown name {0}"),
    "field without a name": (GOOD.replace("{metric} is", "{} is"), "unknown name {}"),
    "number too large for a float": (GOOD.replace("5.0", "1" + "0" * 400), "above must be a number"),
    "number too long to print": (GOOD.replace("5.0", "0x" + "f" * 5000), "thousands of digits"),
    "number too long to read": (GOOD.replace("5.0", "1" * 5000), "4300 digits"),
    "nested too deeply": (GOOD + "x = " + "[" * 50_000 + "\n", "recursion"),
    "bad template": (GOOD.replace("{metric} is", "{metric is"), "message"),
    "unknown id of an action": (GOOD.replace("[[action]]", '[[action]]\nid = "lower-rate"'), "lower-lr"),
    "unknown sign": (GOOD + '\n[shows]\nsigns = ["fp17"]\n', "shows.signs"),
    "unknown kind": (GOOD + '\n[shows]\nkinds = ["speach"]\n', "speech"),
    "unknown framework": (GOOD + '\n[shows]\nframeworks = ["transformer"]\n', "transformers"),
    "bad pattern of a metric": (GOOD + '\n[shows]\nmetrics = ["("]\n', "shows.metrics"),
    "unknown key in shows": (GOOD + '\n[shows]\nlines = ["x"]\n', "shows.lines"),
    "unknown circumstance": (GOOD.replace("[[action]]", '[[action]]\nwhen = "full_moon"'), "full_moon"),
    "wrong severity": (GOOD.replace('"warning"', '"fatal"'), "severity"),
    "wrong trend": ('trend = "sideways"\n' + GOOD, "trend"),
    "wrong role": (GOOD + '\n[select]\nrole = "weights"\n', "select.role"),
    "wrong scope": (GOOD + '\n[select]\nscope = "epoch"\n', "select.scope"),
    "no name": (GOOD.replace('name = "high-norm"\n', ""), "name"),
    "id of small letters": (GOOD.replace('"US1"', '"us1"'), "id is 'us1'; it must be capital letters and then digits"),
    "id with an escape": (GOOD.replace('"US1"', '"US\\u001b1"'), "id is 'US\\x1b1'"),
    "id with a line end": (GOOD.replace('"US1"', '"US1\\n"'), "id is 'US1\\n'"),
    "id is a number": (GOOD.replace('id = "US1"', "id = 1"), "id"),
    "no condition": (re.sub(r"\[\[when\]\].*?\n\n", "", GOOD, flags=re.DOTALL), "needs a [[when]]"),
    "silenced by no rule": ('unless = ["GT999"]\n' + GOOD, "GT999"),
    "no toml": ("id = ", "Invalid value"),
    "no message": (GOOD.replace("message =", "# message ="), "message"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "told"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_told(tmp_path: Path, text: str, told: str) -> None:
    (problem,) = problems(folder(tmp_path, mine=text))
    assert problem.startswith("mine.toml: ")
    assert told in problem


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("typical_norm", "typical_nrom", "measure is 'typical_nrom'; did you mean typical_norm?"),
        ("typical_norm", "xyzzy", f"measure is 'xyzzy'; that is none of the {len(MEASURES)} there are"),
        ('"warning"', '"Error"', "severity is 'Error'; did you mean error?"),
        ('"warning"', '"bad"', "severity is 'bad'; it must be one of error, warning, info"),
    ],
)
def test_a_wrong_word_is_told_with_what_comes_near(tmp_path: Path, old: str, new: str, told: str) -> None:
    (problem,) = problems(folder(tmp_path, mine=GOOD.replace("{typical_norm}", "high").replace(old, new)))
    assert problem.endswith(told)


def test_all_mistakes_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    texts = {f"rule{i}": text.replace("US1", f"US{i}") for i, (text, _) in enumerate(MISTAKES.values())}
    found = problems(folder(tmp_path, **texts))
    for name in texts:
        assert any(problem.startswith(f"{name}.toml: ") for problem in found), name
    one_file = problems(folder(tmp_path / "..", mine=GOOD.replace("above = 5.0", "over = 5.0").replace("{lr}", "{x}")))
    assert len([p for p in one_file if p.startswith("mine.toml")]) == 3


@pytest.mark.parametrize(
    "text",
    [
        "when = 5\n" + GOOD.replace("[[when]]", "[[hm]]"),
        'select = "layer"\n' + GOOD,
        'unless = "GT101"\n' + GOOD,
        'action = ["do"]\n' + GOOD.split("[[action]]")[0],
        'hold = "end"\n' + GOOD,
        GOOD.replace('text = "Look', 'text_for = "x"\ntext = "Look'),
        GOOD.replace('text = "Look at {metric} (lr {lr})."', 'when = "no_lr"'),
        GOOD.replace('text = "Look at {metric} (lr {lr})."', "text = 3"),
        "[hold]\npoints = 'three'\n" + GOOD.replace("id =", "[x]\nid ="),
        GOOD + '\n[hold]\npoints = "three"\n',
        'forbids_verdict = "yes"\n' + GOOD,
        "help = 3\n" + GOOD,
        GOOD.replace('measure = "typical_norm"', 'measure = ["typical_norm"]'),
        GOOD.replace('"warning"', '["warning"]'),
        GOOD.replace("[[action]]", '[[action]]\nwhen = ["no_lr"]'),
        GOOD.replace('why = "Ours never is."', 'why = "x"\ncase = 3'),
        'alternative = "a"\n' + GOOD,
        GOOD + '\n[[alternative]]\nname = "a"\nwhen = 3\n',
        GOOD + "\n[[alternative]]\nname = [1]\n" + WHEN,
    ],
)
def test_a_value_of_the_wrong_kind_is_a_mistake_too(tmp_path: Path, text: str) -> None:
    assert all(problem.startswith("mine.toml: ") for problem in problems(folder(tmp_path, mine=text)))


def test_an_id_twice_in_one_folder_is_a_mistake(tmp_path: Path) -> None:
    found = problems(folder(tmp_path, one=GOOD, two=GOOD))
    assert len(found) == 1
    assert all(word in found[0] for word in ("one.toml", "two.toml", "US1"))


def test_bytes_that_are_no_text_and_a_folder_that_is_none_or_no_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b'id = "\xff"')
    assert problems(tmp_path)[0].startswith("mine.toml: ")
    assert "no such folder" in problems(tmp_path / "none")[0]
    (tmp_path / "mine.toml").unlink()
    (tmp_path / "mine.toml").mkdir()
    assert problems(tmp_path) == ["mine.toml: not a file"]


def test_shipped_files_are_named_for_their_rules() -> None:
    for file in (Path(__file__).parents[3] / "rules").rglob("*.toml"):
        told = tomllib.loads(file.read_text(encoding="utf-8"))
        assert file.stem == f"{told['id']}-{told['name']}"


def test_the_file_of_a_rule(tmp_path: Path) -> None:
    folder(tmp_path, mine=GOOD)
    assert rule_text("US1", tmp_path) == GOOD
    assert 'id = "GT101"' in rule_text("GT101", tmp_path)
    with pytest.raises(ConfigError, match="US2"):
        rule_text("US2", tmp_path)


def test_a_rule_of_one_s_own_is_added(tmp_path: Path) -> None:
    rules = load_rules(folder(tmp_path, mine=GOOD))
    assert {rule.id for rule in rules} == {"US1", *(rule.id for rule in shipped_rules())}
    report = judged(log_of(NORM, lr=[0.1] * 40), rules)
    found = finding(report, "US1")
    assert (found.severity, found.metric) == (Severity.WARNING, "grad_norm")
    assert found.message == "grad_norm is 9.1 at the median."
    assert "US1" in report.checks.ran
    assert "US1" not in fired(judged(log_of([v / 9 for v in NORM]), rules))


def test_a_rule_with_the_same_id_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    mine = GOOD.replace('"US1"', '"GT104"')
    rules = load_rules(folder(tmp_path, mine=mine))
    assert len(rules) == len(shipped_rules())
    assert next(rule for rule in rules if rule.id == "GT104").name == "high-norm"


# As rule files were before there was [[alternative]]: the two ways of GT106 and what both must show.
OLDER = """
id = "US1"
name = "spiky"
severity = "warning"
summary = "Spikes."
message = "{metric} spikes."

[[when]]
measure = "finite_points"
above = 7.0
why = "Eight points."

[[when]]
case = "counted"
measure = "late_spikes"
above = 2.0
why = "Three or more."

[[when]]
case = "rate"
measure = "spike_rate"
above = 0.004
missing = "pass"
why = "The spike score."

[[when]]
case = "counted"
measure = "typical_norm"
above = 0.1
why = "Worth it."

[[action]]
text = "Look."
text_for = {lightly-train = "Look at model_args={{\\"lr\\": ...}}."}
"""
NEWER = """
id = "US1"
name = "spiky"
severity = "warning"
summary = "Spikes."
message = "{metric} spikes."

[[when]]
measure = "finite_points"
above = 7.0
why = "Eight points."

[[alternative]]
name = "counted"
[[alternative.when]]
measure = "late_spikes"
above = 2.0
why = "Three or more."

[[alternative]]
name = "rate"
[[alternative.when]]
measure = "spike_rate"
above = 0.004
missing = "pass"
why = "The spike score."

[[alternative]]
name = "counted"
[[alternative.when]]
measure = "typical_norm"
above = 0.1
why = "Worth it."

[[action]]
text = "Look."
[action.text_for]
lightly-train = 'Look at model_args={{"lr": ...}}.'
"""


def test_an_older_file_means_what_it_meant(tmp_path: Path) -> None:
    older = load_rules(folder(tmp_path, mine=OLDER))[-1]
    assert older == load_rules(folder(tmp_path, mine=NEWER))[-1]
    assert [condition.measure for condition in older.when] == ["finite_points"]
    alternatives = {one.name: [condition.measure for condition in one.when] for one in older.alternatives}
    assert alternatives == {"counted": ["late_spikes", "typical_norm"], "rate": ["spike_rate"]}
    assert older.actions[0].text_for == {"lightly-train": 'Look at model_args={{"lr": ...}}.'}


def test_what_several_alternatives_share_is_said_once(tmp_path: Path) -> None:
    shared = GOOD + '\n[[alternative]]\nname = ["a", "b"]\n' + WHEN + '\n[[alternative]]\nname = "b"\n' + WHEN
    rule = load_rules(folder(tmp_path, mine=shared))[-1]
    assert [(one.name, len(one.when)) for one in rule.alternatives] == [("a", 1), ("b", 2)]


def test_lines_of_the_shipped_files_fit_into_120_columns() -> None:
    lines = {file.name: file.read_text(encoding="utf-8").splitlines() for file in builtin_folder().rglob("*.toml")}
    assert len(lines) == len(shipped_rules())
    assert [f"{name}:{i}" for name in lines for i, line in enumerate(lines[name], 1) if len(line) > 120] == []


def test_there_is_no_mistake_in_the_shipped_files() -> None:
    """They are not checked on every call."""
    files = {file.name: file.read_text(encoding="utf-8") for file in builtin_folder().rglob("*.toml")}
    assert [(name, problem) for name, text in files.items() for problem in problems_of(tomllib.loads(text))] == []
    assert len({tomllib.loads(text)["id"] for text in files.values()}) == len(files)
    rules = {rule.id: rule for rule in shipped_rules()}
    assert not list(problems_among(rules, {rule_id: rule_id for rule_id in rules}))


def test_the_rules_of_a_folder_known_are_read_as_well(tmp_path: Path) -> None:
    (tmp_path / "known").mkdir()
    folder(tmp_path / "known", mine=GOOD)
    assert "US1" in {rule.id for rule in load_rules(tmp_path)}
    assert rule_text("US1", tmp_path) == GOOD


def test_an_action_without_an_id_is_that_of_an_older_file(tmp_path: Path) -> None:
    report = judged(log_of(NORM, lr=[1e-3] * 40), load_rules(folder(tmp_path, mine=GOOD)))
    assert finding(report, "US1").action_ids == (None,)
    assert [one for one in report.next if one.action is None] == [
        Advice(None, "Look at grad_norm (lr 0.001).", ("US1",))
    ]


def test_a_hold_may_still_say_that_it_is_to_the_end(tmp_path: Path) -> None:
    older = GOOD + '\n[hold]\nuntil = "end"\npoints = 3\n'
    assert load_rules(folder(tmp_path, mine=older))[-1].hold == Hold(points=3)


def test_what_an_older_file_for_a_shipped_id_does_not_say_stays(tmp_path: Path) -> None:
    masked = GOOD.replace('"US1"', '"GT203"')
    replayed = GOOD.split("[[when]]")[0].replace('"US1"', '"GT601"') + '[select]\nnote = "replay"\n'
    rules = {rule.id: rule for rule in load_rules(folder(tmp_path, masked=masked, replayed=replayed))}
    assert rules["GT203"].cause is Cause.MASKED
    assert rules["GT601"].replay is ReplayTopic.DATA


def test_topics_of_replays_are_the_words_of_a_replay() -> None:
    assert {topic.value for topic in ReplayTopic} == {*ReplayCause, *Outcome} - {Outcome.CONFIRMED}
    assert sorted(rule.replay for rule in shipped_rules() if rule.replay is not None) == sorted(ReplayTopic)


def test_the_limit_of_the_rule_on_masked_losses_decides_the_cause(tmp_path: Path) -> None:
    shipped = (builtin_folder() / "GT203-masked-loss.toml").read_text(encoding="utf-8")
    norm, loss = [*NORM, *[math.nan] * 10], [2.0] * 46 + [0.0] * 4  # four zeros beside ten norms without a value
    lower = load_rules(folder(tmp_path, mine=shipped.replace("above = 0.5", "above = 0.3")))
    for rules, cause, fires in ((shipped_rules(), Cause.GRADIENT_FIRST, False), (lower, Cause.MASKED, True)):
        report = judged(log_of(norm, loss), rules)
        assert report.nonfinite is not None
        assert report.nonfinite.cause is cause
        assert ("GT203" in fired(report)) == fires


def test_a_changed_limit_changes_the_verdict(tmp_path: Path) -> None:
    shipped = (builtin_folder() / "GT101-exploding.toml").read_text(encoding="utf-8")
    log = log_of([1.0 + 0.1 * (i % 3) for i in range(40)] + [6.0 + 0.5 * (i % 3) for i in range(20)], [2.3] * 60)
    assert judged(log).verdict is Verdict.STABLE
    lower = re.sub(r"above = (1\.0|2\.5)", "above = 0.5", shipped)
    assert lower != shipped
    report = judged(log, load_rules(folder(tmp_path, mine=lower)))
    assert report.verdict is Verdict.EXPLODING
    assert finding(report, "GT101").evidence[0].limit == 0.5


def test_shipped_rules_keep_what_the_documentation_promises() -> None:
    rules = {rule.id: rule for rule in shipped_rules()}
    errors = {rule.id for rule in rules.values() if rule.severity is Severity.ERROR and not rule.id.startswith("GT6")}
    assert errors == {"GT101", "GT102", "GT201", "GT203", "GT307", "GT401", "GT402"}
    assert {rules[i].severity for i in ("GT104", "GT105", "GT106", "GT204")} == {Severity.WARNING}
    assert {rules[i].severity for i in ("GT103", "GT202")} == {Severity.INFO}
    of_loss = [rule for rule in rules.values() if rule.id.startswith("GT3") and rule.id != "GT307"]
    assert {rule.severity for rule in of_loss} == {Severity.WARNING}
    forbid = {rule.id for rule in rules.values() if rule.forbids_verdict}
    assert all(
        rules[i].severity is (Severity.WARNING if i in forbid else Severity.INFO) for i in rules if i[:3] == "GT5"
    )
    assert len({rule.name for rule in rules.values()}) == len(rules)


@pytest.mark.parametrize("rule", shipped_rules(), ids=lambda rule: rule.id)
def test_every_shipped_rule_explains_itself(rule: Rule) -> None:
    assert re.fullmatch(r"GT[1-7]\d\d", rule.id)
    assert rule.summary.endswith((".", "?") if rule.id.startswith("GT7") else ".")  # a cause may be a question
    assert rule.help
    assert rule.actions
    assert all(action.id in ACTION_IDS for action in rule.actions)
    assert all(thread.startswith("https://") for thread in rule.threads)
    assert bool(rule.threads) == rule.id.startswith("GT7")
    conditions = [*rule.when, *(condition for one in rule.alternatives for condition in one.when)]
    assert (rule.note is None) == bool(conditions)
    assert isinstance(rule.role, Role)
    assert all(len(condition.why) > 8 for condition in conditions)
    assert not any(re.search(r"\bas above\b|^as for GT\d+\.$", c.why, re.IGNORECASE) for c in conditions)
    assert all(condition.measure in MEASURES for condition in conditions)
