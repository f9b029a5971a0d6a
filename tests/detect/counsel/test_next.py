"""The list of next actions: one of each, ordered by the situation, in the words of the framework, nothing denied."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from gradtrend.detect.counsel.phrases import PHRASES
from gradtrend.detect.counsel.situations import SITUATIONS
from gradtrend.detect.frameworks import framework_of, frameworks
from gradtrend.detect.rules.template import TEMPLATE_NAMES
from gradtrend.model.advice import ACTION_IDS, Advice
from gradtrend.model.report import RunReport
from gradtrend.model.runlog import Note, RunLog, Settings
from gradtrend.model.words import Role, Severity, Verdict
from tests.detect.runs import FIXTURES, Labelled, judged, labelled_runs, log_of, read, rows, shipped_rules

NAN, INF = math.nan, math.inf
N = 60
CALM = [1.0 + 0.1 * (i % 3) for i in range(N)]
FALLS = [4.0 - 0.04 * i for i in range(N)]
EXPLODES = [*CALM[:40], *[50.0 * 1.3**i for i in range(20)]]
RISES = [*FALLS[:40], *[2.6 + 0.3 * i for i in range(20)]]
DIES = [*CALM[:40], *[NAN] * 20]
DEAD = [*FALLS[:40], *[NAN] * 20]
CLIMBS = [1e-5 * (i + 1) for i in range(N)]
STOPPED = Note("stopped-on-nan", "train.log ends with: Loss is nan, stopping training")
NO_STEPS = Note("no-steps", "train.log logs no step: its rows are numbered from 0")


def ids(report: RunReport) -> list[str | None]:
    return [one.action for one in report.next]


def of(framework: str | None = None, signs: Sequence[str] = (), **more: object) -> RunReport:
    """The judgement of a run of a framework; `more` are its curves and settings."""
    settings = Settings(framework, **{k: more.pop(k) for k in ("precision", "gradient_clip") if k in more})  # type: ignore[arg-type]
    return judged(log_of(settings=settings, signs=frozenset(signs), **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("report", "first"),
    [
        (of(norm=EXPLODES, loss=RISES), ["lower-lr", "clip-gradients", "resume-earlier"]),
        (of(norm=EXPLODES, loss=RISES, gradient_clip=1.0), ["lower-lr", "resume-earlier", "warm-up-longer"]),
        (of(norm=EXPLODES, loss=RISES, lr=CLIMBS), ["lower-lr", "warm-up-longer", "clip-gradients"]),
        (of("lightly-train", norm=EXPLODES, loss=RISES), ["lower-lr", "stabler-precision", "warm-up-longer"]),
        (of("lightly-train", norm=DIES, loss=DEAD), ["re-run-to-reproduce", "stabler-precision", "locate-module"]),
        (of(loss=DEAD), ["lower-lr", "check-data", "clip-gradients"]),
        (
            of(loss=[*FALLS[:40], *[4.0 + 3 * i for i in range(12)], *[NAN] * 8]),
            ["lower-lr", "clip-gradients", "resume-earlier"],
        ),
        (of(loss=DEAD, signs=["float16"]), ["stabler-precision", "lower-lr", "check-data"]),
        (of("caffe", loss=[2.3, NAN, NAN, NAN]), ["lower-lr", "check-data", "check-loss-term"]),
        (of("detectron2", loss=DEAD, lr=CLIMBS), ["lower-lr", "warm-up-longer", "check-data"]),
        (of("rsl-rl", loss=DEAD), ["check-data", "check-reward", "lower-lr"]),
        (of("espnet", norm=[NAN] * N, loss=[0.0] * N), ["check-data", "check-labels", "check-loss-term"]),
        (
            of("wenet", ["ctc"], loss=[INF if i % 9 == 4 else v for i, v in enumerate(FALLS)]),
            ["check-labels", "check-data", "check-loss-term"],
        ),
        (of("transformers", norm=[NAN] * 6, loss=[0.0] * 6), ["stabler-precision", "check-attention", "check-labels"]),
        (
            of("transformers", norm=DIES, loss=[*FALLS[:40], *[0.0] * 20]),
            ["check-distributed", "upgrade-library", "stabler-precision"],
        ),
        (of("transformers", norm=[*CALM[:9], NAN], loss=FALLS[:10]), ["stabler-precision", "lower-lr", "check-data"]),
        (of(signs=["stops-on-nonfinite"]), ["lower-lr", "check-data", "check-loss-term"]),
        (of(loss=DEAD, signs=["scale-at-minimum"]), ["lower-lr", "clip-gradients", "raise-batch"]),
        (of("icefall", loss=DEAD, signs=["scale-at-minimum"]), ["lower-lr", "check-data", "stabler-precision"]),
        (of(norm=[*CALM, 900.0], loss=[*FALLS, 1.6]), ["check-data", "re-run-to-reproduce", "clip-gradients"]),
        (of(norm=CALM, loss=FALLS), ["nothing-to-do"]),
        (of(norm=CALM[:4], loss=FALLS[:4]), ["nothing-to-do", "log-more-often"]),
        (of(loss=FALLS), ["nothing-to-do", "log-norm"]),
    ],
)  # fmt: skip
def test_the_fix_of_most_such_runs_comes_first(report: RunReport, first: list[str]) -> None:
    assert ids(report)[: len(first)] == first


def test_a_single_norm_that_is_not_finite_may_be_a_skipped_step() -> None:
    report = of("mmengine", norm=[INF], loss=[2.3])
    assert report.next[0] == Advice(
        "nothing-to-do",
        "If the next steps are finite there is nothing to do: a loss scaler skips such a step.",
        (),
        True,
    )
    assert "check-data" in ids(report)


SKIPPED = [*EXPLODES[:2], NAN, *EXPLODES[3:]]


@pytest.mark.parametrize(
    ("report", "first"),
    [
        (of(norm=SKIPPED, loss=RISES), ["lower-lr", "clip-gradients"]),
        (of(norm=SKIPPED, loss=[*RISES[:2], NAN, *RISES[3:]]), ["lower-lr", "clip-gradients"]),
        (of("espnet", norm=SKIPPED, loss=[*RISES[:2], NAN, *RISES[3:]]), ["lower-lr", "clip-gradients"]),
        (of(norm=[1.0, NAN, *[10 ** (-i / 8) for i in range(58)]], loss=[2.3] * N), ["check-normalization"]),
    ],
)
def test_a_step_without_a_value_does_not_hide_what_the_others_say(report: RunReport, first: list[str]) -> None:
    assert ids(report)[: len(first)] == first


@pytest.mark.parametrize("framework", [None, "fairseq", "icefall"])
def test_a_minimum_of_the_loss_scale_that_is_only_mentioned_changes_nothing(framework: str | None) -> None:
    for values in ({"norm": CALM, "loss": FALLS}, {"loss": FALLS}):
        assert ids(of(framework, ["scale-at-minimum"], **values))[0] == "nothing-to-do"


def test_one_spike_of_a_speech_models_loss_is_no_lost_update() -> None:
    report = of("espnet", norm=CALM, loss=[*FALLS[:30], 40.0, *FALLS[31:]])
    assert {f.rule for f in report.findings if f.severity is not Severity.INFO} == {"GT301"}
    assert ids(report)[0] == "nothing-to-do"


def test_a_norm_that_does_not_come_back_is_not_nothing() -> None:
    report = of(norm=[*CALM[:30], *[3000.0 + 100 * (i % 3) for i in range(30)]], loss=FALLS)
    assert "GT104" in {f.rule for f in report.findings}
    assert "nothing-to-do" not in ids(report)
    assert ids(report)[0] == "lower-lr"


@pytest.mark.parametrize(
    ("good", "said"), [(0, "from the first row on"), (1, "after 1 healthy row,"), (7, "after 7 healthy rows,")]
)
def test_how_soon_it_fails(good: int, said: str) -> None:
    report = of("transformers", norm=[*CALM[:good], *[NAN] * 6], loss=[*FALLS[: good or 1], *[0.0] * 6])
    assert said in next(f.message for f in report.findings if f.rule == "GT701")


@pytest.mark.parametrize(
    ("rates", "said"),
    [([1e-4 * (i + 1) for i in range(20)], "target of the learning rate"), ([0.02] * 20, "learning rate (0.02 at")],
)
def test_a_rate_that_still_climbs_is_not_the_one_in_the_config(rates: Sequence[float], said: str) -> None:
    report = of("detectron2", loss=[*FALLS[:12], *[NAN] * 8], lr=rates)
    assert said in next(one.text for one in report.next if one.action == "lower-lr")


@pytest.mark.parametrize(("rows_seen", "asked"), [(1, True), (12, False)])
def test_the_next_steps_are_asked_for_where_one_was_seen(rows_seen: int, asked: bool) -> None:
    log = log_of(norm=[0.0] * rows_seen, loss=[0.0] * rows_seen)
    table = pl.concat([log.table, rows("train/reward_std", Role.OTHER, [0.4] * rows_seen)])
    report = judged(dataclasses.replace(log, table=table))
    assert "GT708" in {f.rule for f in report.findings}
    assert ("re-run-to-reproduce" in ids(report)) is asked


RATES = [1e-4 * (i + 1) for i in range(20)]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (of(loss=[NAN] * 8), "from the first logged row on"),
        (of(loss=[NAN] * 8, steps=[100 * (i + 1) for i in range(8)]), "the first row that was logged is step 100"),
        (of(loss=[NAN] * 8, steps=[100 * (i + 1) for i in range(8)], notes=(NO_STEPS,)), "from the first logged row"),
        (
            of(loss=[2.3, *[NAN] * 8], lr=[0.004] * 9),
            "a third of 0.004, the highest so far: it failed after 1 finite row,",
        ),
        (of(loss=[2.3, 2.2, 2.1, *[NAN] * 8]), "after 3 finite rows, without a rise"),
        (of(loss=[*FALLS[:12], *[NAN] * 8], lr=RATES), "of its target (it was still climbing, at 0.0012): it failed"),
        (of("detectron2", loss=[NAN] * 20, lr=RATES), "of its target (it was still climbing, at 1.00e-4)"),
        (of(loss=DEAD), "after 40 finite rows without a rise"),
        (of(loss=[*FALLS[:40], *[4.0 + 3 * i for i in range(12)], *[NAN] * 8]), "rose from step 41 on"),
    ],
)
def test_why_the_rate_stands_first_is_said_by_the_log(report: RunReport, said: str) -> None:
    first = report.next[0]
    assert first.action == "lower-lr"
    assert said in first.text


def test_a_rate_that_moves_nothing_is_not_to_blame() -> None:
    dead = of("transformers", norm=[NAN] * 3, loss=[0.97, 0.0, 0.0], lr=[1e-8, 2e-8, 3e-8])
    assert "lower-lr" not in ids(dead)
    assert "lower-lr" in ids(of(norm=[NAN] * 3, loss=[NAN] * 3, lr=[1e-3] * 3))


def test_a_rate_printed_as_zero_is_not_told() -> None:
    text = " ".join(one.text for one in of(norm=EXPLODES, loss=RISES, lr=[0.0] * N).next)
    assert "third of 0" not in text
    assert "was 0" not in text


def test_there_is_no_mixed_precision_where_it_was_not_invented() -> None:
    assert "stabler-precision" not in ids(of("caffe", norm=DIES, loss=DEAD))
    assert "stabler-precision" in ids(of(norm=DIES, loss=DEAD))


def test_one_place_to_resume_from_and_that_before_the_rise() -> None:
    report = of(norm=[*EXPLODES, *[NAN] * 5], loss=[*RISES, *[NAN] * 5])
    text = next(one.text for one in report.next if one.action == "resume-earlier")
    (step,) = (int(found) for found in re.findall(r"step (\d+)", text))
    assert 38 <= step <= 45
    assert "re-run-to-reproduce" not in ids(report)


def test_the_usual_level_is_that_of_before_it_went_wrong() -> None:
    """Most of the norms are those of a run that has diverged."""
    loss = [3 * 0.9**i + 0.3 + 0.01 * (i % 3) for i in range(60)] + [6.0 + 0.01 * (i % 3) for i in range(140)]
    norm = [1.0 + 0.1 * (i % 3) for i in range(60)] + [10441.0 * (1 + 0.1 * (i % 3)) for i in range(140)]
    report = of(norm=norm, loss=loss)
    diverged = of(norm=[*norm[:60], *norm[:60], *(8 * one for one in norm[:60])], loss=loss[:180])
    assert (report.verdict, diverged.verdict) == (Verdict.EXPLODING, Verdict.DIVERGING)
    for one in (report, diverged):
        (text,) = (advice.text for advice in one.next if advice.action == "clip-gradients")
        assert "(1.1)" in text or "(1)" in text
    later = of(norm=[*norm[:60], *(8 * one for one in norm[:60] * 2)], loss=loss[:180])
    (text,) = (advice.text for advice in later.next if advice.action == "clip-gradients")
    assert later.verdict is Verdict.DIVERGING
    assert "(1.1)" in text


def test_nothing_is_resumed_that_has_not_trained() -> None:
    assert "resume-earlier" not in ids(of(norm=[NAN] * 9, loss=[NAN] * 9))


@pytest.mark.parametrize(
    ("framework", "words"),
    [
        ("transformers", "max_grad_norm=1.0"), ("lightning", "Trainer(gradient_clip_val=1.0)"),
        ("mmengine", "optim_wrapper.clip_grad"), ("fairseq", "--clip-norm"), ("megatron", "--clip-grad 1.0"),
        ("keras", "clipnorm=1.0"), ("nanogpt", "grad_clip=1.0"), ("lightly-train", '"gradient_clip_val": 1.0'),
    ],
)  # fmt: skip
def test_the_option_is_that_of_the_framework(framework: str, words: str) -> None:
    text = next(one.text for one in of(framework, norm=EXPLODES, loss=RISES).next if one.action == "clip-gradients")
    assert words in text
    assert words not in " ".join(one.text for one in of(norm=EXPLODES, loss=RISES).next)


def test_a_log_without_steps_has_rows_in_its_texts() -> None:
    report = of(norm=DIES, loss=DEAD, notes=(NO_STEPS,))
    texts = [one.text for one in report.next] + [f.message for f in report.findings if f.rule == "GT201"]
    assert any("row 40" in text for text in texts)
    assert not any(re.search(r"step \d", text) for text in texts)


def check(report: RunReport) -> None:
    """What holds of every list."""
    told = ids(report)
    assert len(told) == len(set(told)) <= 8
    assert set(told) <= ACTION_IDS
    assert sum(one.conditional for one in report.next[:3]) <= 1
    assert not {"lower-lr", "raise-lr"} <= set(told)
    assert not {"resume-earlier", "re-run-to-reproduce"} <= set(told)
    for one in report.next:
        assert one.conditional == one.text.startswith("If ")
        assert not re.search(r"\{\w*\}|\bNone\b|\bnan\b|third of 0(?![.\d])", one.text), one.text
    if report.verdict in (Verdict.STABLE, Verdict.WARMUP_SPIKE):
        serious = [f for f in report.findings if f.severity is not Severity.INFO]
        loss_failed = report.nonfinite is not None and report.nonfinite.loss_count  # no loss scaler makes that
        assert "nothing-to-do" in told or serious or loss_failed
    if report.verdict in (Verdict.EXPLODING, Verdict.NAN_COLLAPSE, Verdict.DIVERGING):
        assert "nothing-to-do" not in told
        assert told
    assert (report.so_far is None) or report.verdict is Verdict.UNDETERMINED


FOLDERS = sorted(path for path in (FIXTURES / "rules").glob("*/*/*") if path.is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: "/".join(folder.parts[-3:]))
def test_every_list_is_in_order(folder: Path) -> None:
    check(judged(read(folder)))


def test_every_labelled_run_has_a_list_in_order() -> None:
    for run in labelled_runs():
        check(run.report)


@pytest.mark.parametrize("framework", frameworks())
def test_every_framework_gets_its_list(framework: str) -> None:
    for log in (log_of(EXPLODES, RISES), log_of(DIES, DEAD), log_of(CALM, FALLS), log_of(loss=DEAD), log_of()):
        check(judged(RunLog(log.run, log.table, losses=log.losses, settings=Settings(framework))))


def test_situations_and_phrases_name_actions_that_there_are() -> None:
    for situation in SITUATIONS:
        assert set(situation.actions) <= ACTION_IDS
        assert set(situation.texts) <= set(situation.actions)
        assert situation.why.endswith(".")
        assert len(set(situation.actions)) == len(situation.actions)
    assert len({situation.name for situation in SITUATIONS}) == len(SITUATIONS)
    # Findings word their own actions: a phrase is for those that a situation adds.
    assert set(PHRASES) == {action for situation in SITUATIONS for action in situation.actions}
    own = {"so_far", "yet", "typical", "failed_at", "began", "lr_climbing", "a_third", "finite_rows", "first_bad_step"}
    every = [*PHRASES.values(), *(texts for situation in SITUATIONS for texts in situation.texts.values())]
    names = {name for texts in every for text in texts for name in re.findall(r"\{(\w+)\}", text)}
    assert names <= TEMPLATE_NAMES | own


def test_options_stand_behind_actions_that_are_given_somewhere() -> None:
    given = {action for situation in SITUATIONS for action in situation.actions}
    given |= {action.id for rule in shipped_rules() for action in rule.actions if action.id}
    assert {action for name in frameworks() for action in framework_of(name).options} <= given


@pytest.mark.parametrize(
    "run", [run for run in labelled_runs() if run.truth["verdict"][0] == "exploding"][:5], ids=lambda r: r.name
)
def test_what_explodes_is_told_to_lower_the_rate(run: Labelled) -> None:
    assert ids(run.report)[0] == "lower-lr"


def test_a_loss_that_stands_is_not_asked_for_nan() -> None:
    report = of(loss=[3.0 + 0.01 * (i % 3) for i in range(N)])
    assert ids(report)[:3] == ["lower-lr", "check-data", "check-loss-term"]
    assert not any("NaN" in one.text or "log or root of 0" in one.text for one in report.next)
