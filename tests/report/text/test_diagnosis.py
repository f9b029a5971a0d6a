"""A diagnosis for a person: one screen a table, what stands out first, nothing unsafe on the terminal."""

from __future__ import annotations

import math
from dataclasses import replace

from gradtrend.model.advice import Advice
from gradtrend.model.diagnosis import (
    DepthTrend,
    Diagnosis,
    Fit,
    Flow,
    LayerFlow,
    LayerOutput,
    LossStart,
    Moments,
    Overfit,
    Start,
)
from gradtrend.model.sweep import SweepRow
from gradtrend.report.text.diagnosis import MAX_ROWS, render_diagnosis
from gradtrend.report.wording.style import Style

SEEN = Moments(100, 0.001234, 0.0456, 0.2, 0.004, 0.5)
SICK = Diagnosis(
    loss=9.25,
    gradient_norm=1.5,
    device="cpu",
    precision="float32",
    training=False,
    parameters=1234,
    layers=(
        LayerFlow("stem", "Conv2d", 1, 100, 2.0, SEEN, size=0.05, ratio=0.25),
        LayerFlow("gate\x1b[31m", "Linear", 1, 10, 2.0, replace(SEEN, norm=1e-9), size=1e-10, ratio=5e-10, breaks=True),
        LayerFlow("frozen", "Linear", 1, 10, 2.0, missing="frozen"),
        LayerFlow("cut", "Linear", 1, 10, 2.0, missing="not-reached"),
        LayerFlow("", "Net", 1, 10, 2.0, replace(SEEN, nonfinite=3), size=0.05),
        LayerFlow("head", "Linear", 1, 0, 0.0, shared="stem"),
    ),
    outputs=(
        LayerOutput("relu", "ReLU", 2, SEEN, 64, 32, dead=60),
        LayerOutput("tanh", "Tanh", 1, SEEN, 8, 32, saturated=2, saturated_share=0.751),
        LayerOutput("head", "Linear", 1, replace(SEEN, nonfinite=7)),
    ),
    trend=DepthTrend(Flow.VANISHING, 1.5, 10**-1.5, 12, "stem", "blocks.3", ("gate",)),
    start=LossStart(9.25, 10, math.log(10), Start.FAR_ABOVE, "cross_entropy"),
    precisions=(SweepRow("float16", False, math.nan, math.inf, 2, "relu", 65000.0, 0.0),),
    overfit=Overfit(Fit.STANDS, 50, 0.001, 9.25, 9.2),
    remarks=("Something stands out.", "And something else."),
    next=tuple(Advice("check-init", f"Do {word}.") for word in ("one", "two", "three", "four", "five", "six")),
    notes=("It has a limit.",),
)
SOUND = Diagnosis(1.0, 0.5, "cpu", "float32", True, 10, trend=DepthTrend(Flow.EVEN, 0.01, 0.98, 9, "a", "b"))


def text_of(diagnosis: Diagnosis) -> str:
    return render_diagnosis(diagnosis, Style())


def test_all_of_it() -> None:
    assert (
        text_of(SICK).splitlines()
        == """\
One step: loss 9.25, gradient norm 1.5; 6 layers of 1234 parameters, float32 on cpu

Layers: what stands out
  - Something stands out.
  - And something else.

Gradients by depth (input first)
                                         mean      std  max abs  zeros     norm  /weight
  stem                  Conv2d         0.0012    0.046      0.2     1%      0.5     0.25
  gate\\x1b[31m          Linear         0.0012    0.046      0.2     1%     1e-9    5e-10  breaks the chain
  frozen                Linear        frozen
  cut                   Linear        no gradient reaches it
  (the model)           Net            0.0012    0.046      0.2     1%      0.5           3 NaN or inf
  vanishing from blocks.3 toward the input: x0.032 a layer over 12 layers

Activations by depth
                                         mean      std  max abs  zeros  units
  relu                  ReLU           0.0012    0.046      0.2     1%  60 of 64 dead, 2 calls
  tanh                  Tanh           0.0012    0.046      0.2     1%  2 of 8 saturated, 75% of values
  head                  Linear         0.0012    0.046      0.2     1%  7 NaN or inf

Loss beside guessing
  cross_entropy 9.25, ln(10) is 2.3: far above: the logits are too large

Precisions
                         loss  grad norm  finite    largest      headroom  first bad module
  float16                 NaN        inf  NO          65000   0.0 decades  relu

Learning the batch by heart
  loss 9.25 to 9.2 in 50 steps of Adam at 0.001, on a copy: it stands

Bear in mind
  It has a limit.

Next
  1. Do one.
  2. Do two.
  3. Do three.
  4. Do four.
  5. Do five.
""".splitlines()
    )


def test_where_nothing_stands_out_it_says_so() -> None:
    text = text_of(SOUND)
    assert "  - nothing stands out\n" in text
    assert text.endswith("\nNext\n  nothing to do\n")
    assert "Activations" not in text


def test_an_even_trend_and_one_that_cannot_be_told() -> None:
    layer = LayerFlow("a", "Linear", 1, 10, 2.0, SEEN, size=0.05)
    assert "  even: x0.98 a layer over 9 layers toward the input\n" in text_of(replace(SOUND, layers=(layer,)))
    unknown = replace(SOUND, layers=(layer,), trend=DepthTrend(Flow.UNKNOWN, layers=1))
    assert "  too few layers (1) with weights and a gradient to tell a trend\n" in text_of(unknown)


def test_of_thousands_the_worst_are_shown_in_order_and_the_others_counted() -> None:
    layers = [LayerFlow(f"layer{i}", "Linear", 1, 10, 2.0, SEEN, size=0.05) for i in range(5000)]
    outputs = [LayerOutput(f"layer{i}", "Linear", 1, SEEN) for i in range(5000)]
    layers[4000] = replace(layers[4000], size=1e-9)
    layers[3000] = replace(layers[3000], gradient=None, missing="not-reached", size=None)
    outputs[2000] = replace(outputs[2000], values=replace(SEEN, nonfinite=1))
    outputs[2500] = replace(outputs[2500], units=4, dead=4)
    text = text_of(replace(SICK, layers=tuple(layers), outputs=tuple(outputs)))
    assert len(text.splitlines()) < 90
    assert f"  and {5000 - MAX_ROWS} more layers that stand out less\n" in text
    assert f"  and {5000 - MAX_ROWS} more outputs that stand out less\n" in text
    places = [text.index(f"layer{place} ") for place in (3000, 4000, 2000, 2500)]
    assert places == sorted(places)


def test_what_was_not_tried_is_said() -> None:
    text = text_of(replace(SOUND, overfit=Overfit(Fit.NOT_TRIED, 0, 0.001, problem="the model cannot be copied")))
    assert "  not tried: the model cannot be copied\n" in text
