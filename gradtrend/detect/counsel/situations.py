"""Which actions were most often the fix in which situation, the cheapest test first.

The orders rest on what the maintainers found in some 150 public threads about training runs, over 60 code bases: there
lowering the learning rate was among the answers in 64, clipping in 36, "this is normal" in 36, a term of the loss in
25, the labels in 24, warm-up in 18, an upgrade in 10, the distributed set-up in 9, the gradient's graph and the reward
in 8 each. The first situation that holds gives the order; known causes (GT7xx) come before it, what else the findings
advise after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gradtrend.detect.counsel.facts import Facts
from gradtrend.detect.counsel.phrases import (
    RATE_AFTER_A_RISE,
    RATE_AFTER_A_WHILE,
    RATE_AT_ONCE,
    RATE_WHILE_CLIMBING,
)
from gradtrend.detect.counsel.so_far import look_of
from gradtrend.model.advice import SoFar
from gradtrend.model.words import Verdict


@dataclass(frozen=True, slots=True)
class Situation:
    """What holds in it, the ids of the actions in order, and why in that order; `texts` word an action for it, where no
    finding does.
    """

    name: str
    holds: Callable[[Facts], bool]
    actions: tuple[str, ...]
    why: str
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)


def _is(*verdicts: Verdict) -> Callable[[Facts], bool]:
    return lambda facts: facts.verdict in verdicts


def _at_lightly(verdict: Verdict) -> Callable[[Facts], bool]:
    return lambda facts: facts.name == "lightly-train" and facts.verdict is verdict


# Norms, losses or updates that are lost now and then.
_LOST_UPDATES = frozenset({"GT205", "GT207", "GT208"})

SITUATIONS: tuple[Situation, ...] = (
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
    Situation(
        "one term of the loss alone fails, of a speech model",
        lambda facts: bool(facts.bad_terms) and facts.ctc,
        ("check-labels", "check-data", "check-loss-term"),
        "A CTC loss is inf where the target is longer than the input: of four threads all four.",
    ),
    Situation(
        "a value or a policy fails",
        lambda facts: facts.failed and facts.rewarded and facts.kind("control"),
        ("check-data", "check-reward", "lower-lr"),
        "An inf in an observation or a reward reaches the critic first; the policy follows.",
    ),
    Situation(
        "one term of the loss alone fails",
        lambda facts: bool(facts.bad_terms) and not facts.rose,
        ("check-loss-term", "check-labels", "check-data"),
        "0/0 or log(0) in that term: a batch without such a label, two equal samples, an empty mask.",
    ),
    Situation(
        "language model by rewards fails",
        lambda facts: facts.failed and facts.rewarded,
        ("check-loss-term", "check-reward", "lower-lr"),
        "exp of a large log-ratio in the KL term, or rewards that are all the same at the limit of the length.",
    ),
    Situation(
        "a speech model fails, or loses updates",
        lambda facts: (
            (facts.failed or bool(facts.fired & _LOST_UPDATES) or facts.sign("norm-not-finite"))
            and facts.kind("speech")
            and not facts.rose
        ),
        ("check-data", "check-labels", "check-loss-term"),
        "Targets longer than the input, silent or empty utterances: seven of nine threads.",
    ),
    Situation(
        "values that are not finite come and go",
        lambda facts: (facts.comes_and_goes or "GT205" in facts.fired) and not facts.sick,
        ("check-data", "check-labels", "check-loss-term"),
        "One kind of sample makes them.",
    ),
    Situation(
        "learning from preferences fails at once",
        lambda facts: facts.failed and facts.preferences and not facts.trained,
        ("check-labels", "stabler-precision", "check-loss-term"),
        "Prompts that fill the maximal length leave no answer to compare: two of two threads.",
    ),
    Situation(
        "fine-tuning fails out of nothing",
        lambda facts: (
            facts.failed and facts.kind("transformer", "pretraining") and facts.zero_loss and facts.never_finite
        ),
        ("stabler-precision", "check-attention", "check-labels"),
        "No finite norm from the first row on: precision, the attention's backward pass, or labels all masked.",
    ),
    Situation(
        "the attention's backward pass warns",
        lambda facts: facts.failed and facts.sign("attention-warning") and not facts.rose,
        ("check-attention", "stabler-precision", "check-distributed"),
        "The log itself points at the attention's backend.",
    ),
    Situation(
        "fine-tuning fails without a rise",
        lambda facts: facts.failed and facts.kind("transformer") and facts.zero_loss and not facts.rose,
        ("check-distributed", "stabler-precision", "check-attention"),
        "ZeRO-2 with overlap_comm in six of nine threads, then bfloat16, then the attention's backend.",
    ),
    Situation(
        "fine-tuning in low precision fails",
        lambda facts: facts.failed and facts.kind("transformer") and not facts.rose,
        ("stabler-precision", "lower-lr", "check-data"),
        "A norm that fails beside a finite loss: the backward pass overflowed.",
    ),
    Situation(
        "pretraining fails without a rise",
        lambda facts: facts.failed and facts.kind("pretraining") and facts.trained and not facts.rose,
        ("resume-earlier", "lower-lr", "check-data"),
        "A bad batch or a bad device: roll back, skip the data, go on; a lower rate where it comes again.",
    ),
    Situation(
        "a detector fails",
        lambda facts: facts.failed and facts.detection,
        ("lower-lr", "warm-up-longer", "check-data"),
        "The learning rate of eight cards on one: eight of ten threads; boxes without area in the others.",
    ),
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
    ),
    Situation(
        "healthy so far",
        lambda facts: look_of(facts).so_far is SoFar.HEALTHY,
        ("nothing-to-do",),
        "What there is looks like a healthy run.",
    ),
)


def situation_of(facts: Facts) -> Situation | None:
    """The first situation that holds."""
    return next((situation for situation in SITUATIONS if situation.holds(facts)), None)
