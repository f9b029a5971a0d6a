"""What a log speaks of: the lines, the names of the metrics and the settings give one answer."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest

from gradtrend.detect.counsel import Facts
from gradtrend.detect.curves.run import run_curves
from gradtrend.detect.curves.terms import regresses_boxes, speaks_of, terms_of
from gradtrend.model.runlog import RunLog, Settings
from gradtrend.model.words import Role, Verdict
from tests.detect.runs import log_of, rows

FALLS = [2.0 - 0.1 * i for i in range(9)]


def with_metric(name: str) -> RunLog:
    log = log_of(loss=FALLS)
    return dataclasses.replace(log, table=pl.concat([log.table, rows(name, Role.LOSS, FALLS)]))


@pytest.mark.parametrize(
    ("log", "sign", "speaks"),
    [
        (log_of(loss=FALLS, signs=frozenset({"ctc"})), "ctc", True),
        (with_metric("loss_ctc"), "ctc", True),
        (with_metric("train/attctc_loss"), "ctc", True),
        (with_metric("doctcheck_loss"), "ctc", False),
        (log_of(loss=FALLS), "ctc", False),
        (log_of(loss=FALLS, signs=frozenset({"float16"})), "float16", True),
        (log_of(loss=FALLS, settings=Settings(precision="16-mixed")), "float16", True),
        (log_of(loss=FALLS, settings=Settings(precision="bf16-mixed")), "float16", False),
        (log_of(loss=FALLS, loss_scale=[65536.0] * 9), "float16", True),
        (log_of(loss=FALLS, loss_scale=[1.0] * 9), "float16", False),
        (log_of(loss=FALLS), "float16", False),
        (log_of(loss=FALLS, settings=Settings(precision="16-mixed")), "attention-warning", False),
    ],
)
def test_rules_and_counsel_ask_one_question(log: RunLog, sign: str, speaks: bool) -> None:
    assert speaks_of(log, sign) is speaks
    assert Facts(run_curves(log), Verdict.UNDETERMINED, ()).sign(sign) is speaks


@pytest.mark.parametrize(
    ("name", "boxes"),
    [("loss_bbox", True), ("train/box_loss", True), ("loss_cls", False), ("decode.loss_ce", False)],
)
def test_boxes_are_known_by_their_terms(name: str, boxes: bool) -> None:
    assert regresses_boxes(with_metric(name)) is boxes


@pytest.mark.parametrize("name", ["lm loss", "train/lm_loss", "loss scale", "total loss", "loss/scale"])
def test_the_whole_loss_and_its_scale_are_no_terms(name: str) -> None:
    assert terms_of(with_metric(name)) == []
