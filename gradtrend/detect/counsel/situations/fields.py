"""Situations of one kind of model or of one term of its loss: what fails there fails for reasons of its own."""

from __future__ import annotations

from gradtrend.detect.counsel.situations.situation import Situation

# Norms, losses or updates that are lost now and then.
_LOST_UPDATES = frozenset({"GT205", "GT207", "GT208"})

BY_FIELD: tuple[Situation, ...] = (
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
)
