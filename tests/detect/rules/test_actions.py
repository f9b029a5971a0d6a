"""Next actions: by the evidence of the run, in the words of its framework, nothing contradictory, nothing unfilled."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.detect.rules.circumstances import CIRCUMSTANCES, EVIDENCE
from gradtrend.detect.rules.template import TEMPLATE_NAMES, fill, show, template_values
from gradtrend.model.capture import Capture, OverflowReport
from gradtrend.model.report import RunReport
from gradtrend.model.runlog import RunLog, Settings
from gradtrend.model.words import Role
from tests.detect.runs import (
    FIXTURES,
    Labelled,
    Values,
    curve_of,
    finding,
    judged,
    labelled_runs,
    log_of,
    one_of_each_kind,
    read,
)

NAN = math.nan
N = 100
EXPLODES = [1.0 + 0.1 * (i % 3) for i in range(60)] + [50.0 * 1.2 ** (i - 60) for i in range(60, N)]
LOSS = [2.0] * 60 + [2.0 + 0.1 * (i - 60) for i in range(60, N)]
DIES = [*EXPLODES[:60], *[NAN] * 20]
DEAD_LOSS = [*LOSS[:60], *[NAN] * 20]
CONSTANT = [1e-3] * N
CLIMBS = [1e-3 * min(1, (i + 1) / 80) for i in range(N)]
JUMPS = [1e-3 if i < 58 else 1e-2 for i in range(N)]
CAPTURE = Capture("debug/nan_capture/rank0/nan_capture.pt", "lightly-train", 60)
REPORT = OverflowReport("debug/underflow_overflow_rank0.log", 60, True, 0, "model.layer2.relu", "ReLU")


def explosion(lr: Values | None = None, **settings: object) -> tuple[str, ...]:
    log = log_of(EXPLODES, LOSS, lr=lr, settings=Settings(**settings))  # type: ignore[arg-type]
    return finding(judged(log), "GT101").actions


def collapse(settings: Settings | None = None, **more: object) -> tuple[str, ...]:
    log = log_of(DIES, DEAD_LOSS, lr=CONSTANT, settings=settings or Settings(), **more)
    return finding(judged(log), "GT201").actions


@pytest.mark.parametrize(
    ("actions", "first"),
    [
        (explosion(CLIMBS), "peak learning rate"),
        (explosion(JUMPS), "scheduler"),
        (explosion(CONSTANT, gradient_clip=0.0), "Clip the gradient norm: the run does not"),
        (explosion(CONSTANT, precision="16-mixed"), "more stable precision than 16-mixed"),
        (explosion(CONSTANT), "Lower the learning rate"),
        (explosion(CONSTANT, gradient_clip=1.0), "Lower the learning rate"),
        (explosion(CLIMBS, gradient_clip=0.0, precision="16-mixed"), "peak learning rate"),
    ],
    ids=["warming up", "switched", "not clipped", "float16", "nothing known", "clipped", "all of them"],
)
def test_the_evidence_of_the_run_comes_first(actions: tuple[str, ...], first: str) -> None:
    assert first in actions[0]


def test_what_is_known_to_be_otherwise_is_not_said() -> None:
    text = " ".join(explosion(CONSTANT, gradient_clip=1.0, precision="bf16-mixed"))
    for wrong in ("peak learning rate", "scheduler", "Clip the gradient norm", "more stable precision"):
        assert wrong not in text
    assert "Clip lower" not in text  # the limit lies below the baseline already
    assert "Clip lower than 50" in " ".join(explosion(CONSTANT, gradient_clip=50.0))


def test_numbers_of_the_run_stand_in_the_actions() -> None:
    actions = explosion(JUMPS)
    assert "(to 0.01)" in actions[0]
    assert "step 60" in actions[0]


def test_a_run_of_lightly_train_is_told_in_its_own_words() -> None:
    text = "\n".join(explosion(CLIMBS, framework="lightly-train", gradient_clip=0.0, precision="16-mixed"))
    for words in ('model_args={"lr": ...}', 'precision="bf16-mixed"'):
        assert words in text
    assert '"nancapture"' in "\n".join(collapse(Settings(framework="lightly-train")))
    other = "\n".join(explosion(CLIMBS, framework="lightning", gradient_clip=0.0))
    assert "model_args" not in other


def test_a_nan_escalates_from_module_to_capture_to_replay() -> None:
    nothing = collapse()
    assert [i for i, text in enumerate(nothing) if "first module" in text] < [
        i for i, text in enumerate(nothing) if "capture the failing step" in text
    ]
    reported = collapse(overflow_reports=(REPORT,))
    assert "model.layer2.relu" in reported[0]
    assert not any("forward hooks" in text for text in reported)
    captured = collapse(captures=(CAPTURE,), overflow_reports=(REPORT,))
    assert "Replay the captured step 60" in captured[0]
    assert not any("apture the failing step" in text for text in captured)


def test_a_collapse_in_float16_is_first_tried_in_float32() -> None:
    assert "32-true" in collapse(Settings(precision="16-mixed"))[0]


def test_a_failure_at_the_first_step_has_no_checkpoint_before_it() -> None:
    actions = finding(judged(log_of([NAN] * 5, [NAN] * 5)), "GT201").actions
    assert not any("checkpoint" in text for text in actions)
    assert any("first batch" in text for text in actions)


@pytest.mark.parametrize(
    ("precision", "low"),
    [
        ("16-mixed", True), ("fp16", True), ("float16", True), ("torch.float16", True), ("half", True),
        ("16-true", True),
        ("bf16-mixed", False), ("bfloat16", False), ("32-true", False), ("float32", False), (None, None),
    ],
)  # fmt: skip
def test_what_counts_as_low_precision(precision: str | None, low: bool | None) -> None:
    assert CIRCUMSTANCES["low_precision"](curve_of(log_of(EXPLODES, settings=Settings(precision=precision)))) is low


def variants(log: RunLog) -> Iterator[RunLog]:
    """The same run, set up in other ways."""
    for settings in (
        Settings(),
        Settings("lightly-train", "16-mixed", gradient_clip=1.0),
        Settings("lightly-train", "bf16-mixed", gradient_clip=0.0),
        Settings("transformers", "32-true", gradient_clip=0.5),
    ):
        yield replace(log, settings=settings)
    yield replace(log, captures=(CAPTURE,), overflow_reports=(REPORT,))


def texts(report: RunReport) -> Iterator[str]:
    for found in report.findings:
        if found.name != "stopped-on-nan":  # repeats the log's own words
            yield found.message
        yield from found.actions


def check_texts(report: RunReport) -> None:
    for text in texts(report):
        assert not re.search(r"\{\w*\}|\{\{", text), text
        assert not re.search(r"\bNone\b|\bnan\b", text), text
        assert text.strip()
    for found in report.findings:
        assert found.actions, found.rule
        assert len(set(found.actions)) == len(found.actions), found.rule


def has_loss_scale(report: RunReport) -> bool:
    return any(series.role is Role.LOSS_SCALE for series in report.series)


def check_advice(report: RunReport) -> None:
    """Nothing is advised that the run does already."""
    clip, precision = report.settings.gradient_clip, report.settings.precision or ""
    for text in texts(report):
        if clip:
            assert not re.search(r"[Cc]lip the gradient norm|no clipping is set", text), text
            assert not re.search(rf"gradient_clip_val\W+ {clip:g}\b", text), text
        if clip == 0:
            assert not re.search(r"Clip lower|clipping at", text), text
        if precision.startswith("bf16") and not has_loss_scale(report):  # one that scales its loss is not in bf16
            assert "bf16-mixed" not in text, text
        if report.captures:
            assert "apture the failing step" not in text, text
        if report.settings.framework != "lightly-train":
            assert "model_args" not in text, text


FIRING = sorted(path for path in (FIXTURES / "rules").glob("*/fires/*") if path.is_dir())


@pytest.mark.parametrize("folder", FIRING, ids=lambda folder: f"{folder.parts[-3]}/{folder.name}")
def test_every_rule_s_texts_are_filled_and_fit_the_run(folder: Path) -> None:
    for log in variants(read(folder)):
        report = judged(log)
        check_texts(report)
        check_advice(report)


def test_no_text_of_a_labelled_run_is_unfilled() -> None:
    for run in labelled_runs():
        check_texts(run.report)


@pytest.mark.parametrize("run", one_of_each_kind(), ids=lambda run: run.name)
def test_advice_fits_the_run(run: Labelled) -> None:
    for log in list(variants(run.log))[1:]:
        report = judged(log)
        check_texts(report)
        check_advice(report)


def test_a_template_is_filled_or_left_out() -> None:
    assert fill("{a} of {b}", {"a": 1, "b": 2.0}) == "1 of 2"
    assert fill("{a} of {b}", {"a": 1, "b": None}) is None
    assert fill("{a} of {b}", {"a": 1}) is None
    assert fill('x={{"k": {a}}}', {"a": 1}) == 'x={"k": 1}'
    assert fill("{a}", {"a": "{b}"}) == "{b}"  # what a log says is no template


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"), (1.0, "1"), (0.12345, "0.123"), (12.345, "12.3"), (1234.5, "1234"), (3.2e5, "3.20e5"),
        (1e-7, "1.00e-7"), (3.4e38, "3.40e38"), (5, "5"), ("fp16", "fp16"),
    ],
)  # fmt: skip
def test_numbers_are_shown_as_a_person_writes_them(value: object, shown: str) -> None:
    assert show(value) == shown


@given(st.floats(-1e300, 1e300))
def test_a_shown_number_is_near_the_number(value: float) -> None:
    assert float(show(value)) == pytest.approx(value, rel=6e-3, abs=1e-300)


def test_every_name_in_a_template_has_a_value_somewhere() -> None:
    assert set(template_values(curve_of(log_of(EXPLODES, LOSS)))) == TEMPLATE_NAMES
    assert set(EVIDENCE) <= set(CIRCUMSTANCES)
