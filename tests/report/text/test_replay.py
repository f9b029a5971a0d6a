"""A replay for a person: verdict, why, the numbers, what to do; nothing unsafe reaches the terminal."""

from __future__ import annotations

import json
import math

import pytest

from gradtrend.model.replay import (
    Field,
    Inspection,
    LayerGradient,
    Magnitude,
    ModuleFrame,
    Origin,
    Outcome,
    Replay,
    ReplayCause,
    SweepRow,
    TensorHealth,
)
from gradtrend.report.json.replay import replays_to_dict
from gradtrend.report.json.strict import strict_json
from gradtrend.report.text.replay import render_replays
from gradtrend.report.wording.style import Style

SEEN = Inspection(
    path="run/debug/a.gradtrend.pt",
    kind="gradtrend",
    step=7,
    rank=1,
    model="train:make",
    bad_parameters=("conv.weight", "conv.bias"),
    parameters=12,
    microbatches=((Field("image", "float32", (8, 3, 32, 32)),),) * 4,
    precision="float16",
    gradient_norm=math.inf,
    versions=(("torch", "2.13.0"),),
    nonfinite=(TensorHealth("input", "microbatch 2: image", "float32", (8, 3, 32, 32), 5, 0, 0),),
    imports=("train:make",),
    notes=("It has a limit.",),
)
CONFIRMED = Replay(
    inspection=SEEN,
    outcome=Outcome.CONFIRMED,
    cause=ReplayCause.PRECISION_RANGE,
    device="cpu",
    precision="float16",
    sweep=(
        SweepRow("float32", True, 2.5, 1.25, 0, None, 90000.0, 33.5),
        SweepRow("float16", False, math.nan, math.nan, 2, "layer.relu", 65000.0, 0.0),
        SweepRow("float64", None, problem="RuntimeError: no kernel"),
    ),
    origin=Origin("forward", "layer.relu", "HalfExp", "exp", "float16", "operator"),
    frames=(ModuleFrame("layer.bn", "BatchNorm2d", Magnitude("output", "float16", (8, 8), 0.001, 9.5)),),
    layers=(
        LayerGradient("conv.weight", math.nan, 0.0, None, None, ("non-finite",)),
        LayerGradient("head.weight", 0.0, 1.0, 0.0, 0.0, ("zero",)),
        LayerGradient("head.bias", 0.5, 0.0, 0.1, 1.0, ()),
    ),
    why=("First reason.", "Second reason."),
)


def test_everything_stands_there_in_its_order() -> None:
    text = render_replays([CONFIRMED], Style())
    wanted = [
        "run/debug/a.gradtrend.pt: confirmed: the precision's range, in layer.relu (float16 on cpu)",
        "gradtrend, step 7, rank 1; train:make; 12 tensors of state",
        "microbatch 0: image float32 (8x3x32x32)",
        "and 2 more microbatches",
        "2 parameters named bad, the first conv.weight",
        "recorded: precision float16, torch 2.13.0, gradient norm inf",
        "--trust would import and call: train:make",
        "non-finite input microbatch 2: image: 5 NaN, 0 inf, 0 -inf",
        "First reason.",
        "Second reason.",
        "float32",
        "33.5 decades",
        "layer.relu",
        "could not be run: RuntimeError: no kernel",
        "BatchNorm2d",
        "1 of 3 parameters non-finite: conv.weight",
        "head.weight",
        "It has a limit.",
    ]
    places = [text.index(words, 0) for words in wanted if words not in ("layer.relu", "float32", "head.weight")]
    assert places == sorted(places)
    assert all(words in text for words in wanted)


def test_no_line_is_wider_than_asked_but_the_tables() -> None:
    lines = render_replays([CONFIRMED], Style(width=70)).splitlines()
    prose = [line for line in lines if "decades" not in line and "headroom" not in line]
    assert max(len(line) for line in prose[1:]) <= 90


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_words(outcome: Outcome) -> None:
    assert "nothing" in render_replays([Replay(SEEN, outcome)], Style()) or outcome not in (
        Outcome.CANNOT_RUN,
        Outcome.INSPECTED,
    )


@pytest.mark.parametrize("cause", list(ReplayCause))
def test_every_cause_has_words(cause: ReplayCause) -> None:
    first = render_replays([Replay(SEEN, Outcome.CONFIRMED, cause)], Style()).splitlines()[0]
    assert first.count(":") == 2


def test_text_from_the_file_cannot_move_the_cursor() -> None:
    evil = "\x1b[2J\u202e"
    seen = Inspection(evil, "gradtrend", 1, 0, evil, bad_parameters=(evil,), imports=(evil,), problem=None)
    frames = (ModuleFrame(evil, evil, Magnitude("output", "float16", (1,), 0.0, 1.0)),)
    layers = (
        LayerGradient(evil, 0.0, 1.0, 0.0, 0.0, ("zero",)),
        LayerGradient(evil, math.nan, 0, None, None, ("non-finite",)),
    )
    rows = (SweepRow("float16", False, 1.0, 1.0, 0, evil, 1.0, 1.0), SweepRow("float32", None, problem=evil))
    hostile = Replay(
        seen, Outcome.CONFIRMED, sweep=rows, frames=frames, layers=layers, why=(evil,), notes=(evil,), hint=evil
    )
    text = render_replays([hostile], Style())
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_json_says_what_a_null_was() -> None:
    made = json.loads(strict_json(replays_to_dict([CONFIRMED], 1)), parse_constant=pytest.fail)
    row = made["replays"][0]["sweep"][1]
    assert row["loss"] is None
    assert row["nonfinite_fields"] == {"loss": "nan", "gradient_norm": "nan"}
    assert made["replays"][0]["inspection"]["nonfinite_fields"] == {"gradient_norm": "inf"}
