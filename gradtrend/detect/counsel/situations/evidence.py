"""Situations in which the log holds more than curves, or steps that were skipped: they come first."""

from __future__ import annotations

from collections.abc import Callable

from gradtrend.detect.counsel.facts import Facts
from gradtrend.detect.counsel.situations.situation import Situation
from gradtrend.model.words import Verdict


def _at_lightly(verdict: Verdict) -> Callable[[Facts], bool]:
    return lambda facts: facts.name == "lightly-train" and facts.verdict is verdict


BY_EVIDENCE: tuple[Situation, ...] = (
    Situation(
        "a bad step was captured",
        lambda facts: facts.failed and bool(facts.run.log.captures),
        ("capture-and-replay", "locate-module", "stabler-precision"),
        "The step itself lies there: a replay tells data, precision and operator apart.",
    ),
    Situation(
        "a module is named",
        lambda facts: facts.failed and bool(facts.run.log.overflow_reports),
        ("locate-module", "stabler-precision", "capture-and-replay"),
        "A report names the first module with a value that is not finite.",
    ),
    Situation(
        "LightlyTrain explodes",
        _at_lightly(Verdict.EXPLODING),
        ("lower-lr", "stabler-precision", "warm-up-longer", "clip-gradients"),
        "Its page on instability: lower model_args.lr, then a more stable precision.",
    ),
    Situation(
        "LightlyTrain vanishes",
        _at_lightly(Verdict.VANISHING),
        ("raise-lr", "check-normalization"),
        "Its page on instability: raise the learning rate of small models, check the normalization of the input.",
    ),
    Situation(
        "LightlyTrain collapses",
        _at_lightly(Verdict.NAN_COLLAPSE),
        ("re-run-to-reproduce", "stabler-precision", "locate-module", "capture-and-replay"),
        "Its page on instability: the latest checkpoint again, then 32-true, then the module, then a capture.",
    ),
    Situation(
        "the loss scale of a speech model is at its end, and the run went wrong",
        lambda facts: (
            facts.kind("speech") and facts.went_wrong and (facts.sign("scale-at-minimum") or "GT204" in facts.fired)
        ),
        ("lower-lr", "check-data", "stabler-precision"),
        "Zipformers in float16: the base rate was too high, or utterances too short; then full precision.",
    ),
    Situation(
        "the loss scale is at its end, and the run went wrong",
        lambda facts: facts.went_wrong and facts.sign("scale-at-minimum", "blames-the-rate"),
        ("lower-lr", "clip-gradients", "raise-batch", "stabler-precision"),
        "A scale that no halving helps: the values have grown. Rate, clipping, batch, as fairseq itself says.",
    ),
    Situation(
        "skipped steps of a run that goes on",
        lambda facts: facts.run.nonfinite.grad_count > 0 and facts.healthy,
        ("nothing-to-do", "check-loss-scale"),
        "A loss scaler finds its level by overflowing, and skips those steps.",
    ),
    Situation(
        "one norm fails beside a finite loss",
        lambda facts: (
            facts.run.nonfinite.grad_count > 0
            and not facts.run.nonfinite.loss_count
            and not facts.failed
            and not facts.sick
        ),
        ("nothing-to-do", "check-data", "check-loss-scale"),
        "A loss scaler skips such steps in any run in float16; without one the batch is to blame.",
        {"nothing-to-do": ("If the next steps are finite there is nothing to do: a loss scaler skips such a step.",)},
    ),
)
