"""Situations of any run: it fails, explodes, vanishes, or is healthy."""

from __future__ import annotations

from collections.abc import Callable

from gradtrend.detect.counsel.facts import Facts
from gradtrend.detect.counsel.phrases import (
    RATE_AFTER_A_RISE,
    RATE_AFTER_A_WHILE,
    RATE_AT_ONCE,
    RATE_WHILE_CLIMBING,
)
from gradtrend.detect.counsel.situations.situation import Situation
from gradtrend.detect.counsel.so_far import look_of
from gradtrend.model.advice import SoFar
from gradtrend.model.words import Verdict


def _is(*verdicts: Verdict) -> Callable[[Facts], bool]:
    return lambda facts: facts.verdict in verdicts


OF_ANY_RUN: tuple[Situation, ...] = (
    Situation(
        "it fails before the rate has risen",
        lambda facts: facts.failed and not facts.trained and facts.rate_is_nothing,
        ("stabler-precision", "check-data", "check-loss-term"),
        "At the start of warm-up the rate moves nothing: precision, the first batch, or the loss itself.",
    ),
    Situation(
        "it fails while the rate climbs",
        lambda facts: facts.failed and facts.warming_up,
        ("lower-lr", "warm-up-longer", "clip-gradients"),
        "The rate had not yet been tried at that height.",
        {"lower-lr": RATE_WHILE_CLIMBING},
    ),
    Situation(
        "it fails after a rise",
        lambda facts: facts.failed and facts.rose,
        ("lower-lr", "clip-gradients", "resume-earlier"),
        "A divergence that ends in NaN: the rate, then clipping, from before the rise.",
        {"lower-lr": RATE_AFTER_A_RISE},
    ),
    Situation(
        "it fails in float16, without a rise",
        lambda facts: facts.failed and facts.float16,
        ("stabler-precision", "lower-lr", "check-data"),
        "float16 ends at 65504: full precision or bfloat16 tells at once.",
    ),
    Situation(
        "it fails at once",
        lambda facts: facts.failed and not facts.trained,
        ("lower-lr", "check-data", "check-loss-term"),
        "Too high a rate in most threads; else the first batches, or a log or a division in the loss.",
        {"lower-lr": RATE_AT_ONCE},
    ),
    Situation(
        "it fails after a while",
        lambda facts: facts.failed,
        ("lower-lr", "check-data", "clip-gradients"),
        "The rate, one bad batch, or a single large step.",
        {"lower-lr": RATE_AFTER_A_WHILE},
    ),
    Situation(
        "it explodes while the rate climbs",
        lambda facts: facts.verdict in (Verdict.EXPLODING, Verdict.DIVERGING) and facts.warming_up,
        ("lower-lr", "warm-up-longer", "clip-gradients"),
        "The rate had not yet been tried at that height.",
    ),
    Situation(
        "it explodes",
        _is(Verdict.EXPLODING, Verdict.DIVERGING),
        ("lower-lr", "clip-gradients", "resume-earlier", "warm-up-longer"),
        "The rate in two of three threads, then clipping, both from before the rise.",
    ),
    Situation(
        "healthy",
        lambda facts: facts.healthy,
        ("nothing-to-do",),
        "Most pastes of healthy runs ask whether this is normal.",
    ),
    Situation(
        "the log ends high",
        lambda facts: bool(facts.fired & {"GT110", "GT308"}),
        ("check-data", "re-run-to-reproduce", "clip-gradients"),
        "One row: look at its batch and go on, before anything is changed.",
    ),
    Situation(
        "the loss climbs",
        lambda facts: "GT303" in facts.fired,
        ("lower-lr", "warm-up-longer", "check-data"),
        "A divergence under way: the rate, then its warm-up, then the data that came in.",
    ),
    Situation(
        "the loss blew up and came back to its start",
        lambda facts: "GT309" in facts.fired,
        ("lower-lr", "warm-up-longer", "check-data"),
        "A step too large, most often one of the first: the rate, its warm-up, then what came in.",
    ),
    Situation(
        "it vanishes",
        _is(Verdict.VANISHING),
        ("check-normalization", "check-activation", "raise-lr", "check-init"),
        "Inputs and activations that saturate; a low norm of a small model may only want a larger rate.",
    ),
    Situation(
        "the loss stands",
        lambda facts: "GT302" in facts.fired,
        ("lower-lr", "check-data", "check-loss-term"),
        "A rate too high to leave the plateau, data that do not say the labels, a term that collapsed.",
        {
            "check-data": ("Check that labels belong to their inputs, and inputs are scaled as the model expects.",),
            "check-loss-term": ("Log the terms of the loss apart: one may stand, or outweigh the others.",),
        },
    ),
    Situation(
        "healthy so far",
        lambda facts: look_of(facts).so_far is SoFar.HEALTHY,
        ("nothing-to-do",),
        "What there is looks like a healthy run.",
    ),
)
