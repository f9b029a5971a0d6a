"""What each action says where no finding words it; of several templates the first that the run can fill.

The names in braces are those of the rules' texts, and `terms`, `ground` (why) and `so_far`.
"""

from __future__ import annotations

from collections.abc import Mapping

PHRASES: Mapping[str, tuple[str, ...]] = {
    "nothing-to-do": ("Nothing to do{yet}: {so_far}.", "Nothing to do."),
    "lower-lr": ("Lower the learning rate, {a_third}.",),
    "raise-lr": ("Raise the learning rate: it was {lr_peak} at most.", "Raise the learning rate."),
    "warm-up-longer": (
        "Warm up longer: the learning rate was still climbing ({lr_climbing}).",
        "Warm up, or warm up longer: the first steps at the full rate are the largest.",
    ),
    "clip-gradients": (
        "Clip the gradient norm, if the run does not yet: a little above its usual level ({typical}).",
        "Clip the gradient norm, if the run does not yet: 1.0 is usual.",
    ),
    "raise-batch": (
        "Raise the batch, by gradient accumulation where memory is short: one sample then counts for less.",
    ),
    "stabler-precision": (
        "Train in bfloat16 or float32 instead of {precision}; a short run in float32 tells whether that is the cause.",
        "Train in bfloat16, or turn mixed precision off: a short run in float32 tells whether that is the cause.",
    ),
    "check-loss-scale": ("Look at the loss scale: it should come to rest after the first steps.",),
    "check-data": (
        "Look at the data of the steps around {failed_at}: NaN or inf in an input, an empty or far too short sample, a "
        "value out of range.",
        "Look at the data: NaN or inf in an input, an empty or far too short sample, a value out of range.",
    ),
    "check-labels": (
        "Check the labels: none out of range, none empty or longer than its input, not all of them ignored.",
    ),
    "check-loss-term": (
        "Look at {terms}: a log or root of 0, a division by 0, or an exp of a large number makes it non-finite.",
        "Look in the loss for a log or root of 0, a division by 0, an exp of a large number; add an epsilon, a clamp.",
    ),
    "check-reward": ("Check the reward: that it is finite, and that it differs between the answers to one prompt.",),
    "check-init": ("Check the initialisation: too large or too small weights show in the first steps.",),
    "check-normalization": ("Check that the input is normalised as the model expects it.",),
    "check-activation": ("Look for saturating activations (sigmoid, tanh) and missing residual connections.",),
    "check-distributed": (
        "Rule the communication out: one device alone, and with DeepSpeed's ZeRO stage 2 `overlap_comm: false`.",
    ),
    "resume-earlier": (
        "Resume from a checkpoint before step {began}, where it began to rise, with what was changed.",
        "Resume from a checkpoint before step {onset}, with what was changed.",
        "Resume from a checkpoint before it began, with what was changed.",
    ),
    "re-run-to-reproduce": (
        "Run on from the last checkpoint: if it fails at the same place again, it is the data, if not, the state.",
    ),
    "locate-module": (
        "Find the first module with a non-finite value: forward hooks, or torch.autograd.detect_anomaly.",
    ),
    "capture-and-replay": ("Capture the failing step and replay it with `gradtrend replay`.",),
    "check-attention": (
        "Try another attention backend (eager in place of SDPA or flash); look for rows that are masked as a whole.",
    ),
}

# Why the rate stands first, by what the log shows before the failure.
RATE_AT_ONCE = (
    "Lower the learning rate, {a_third}: the first row that was logged is step {first_bad_step}, so it failed in the "
    "steps before, most often because the rate is too high.",
    "Lower the learning rate, {a_third}: it failed after {finite_rows}, without a rise that was logged, most often "
    "because the rate is too high.",
    "Lower the learning rate, {a_third}: what is not finite from the first logged row on comes most often of too large "
    "a first update; if it is so before any update, the rate is not to blame.",
)
RATE_AFTER_A_WHILE = (
    "Lower the learning rate, {a_third}: it failed after {finite_rows} without a rise that was logged, as after a "
    "single step that was too large.",
)
RATE_AFTER_A_RISE = ("Lower the learning rate, {a_third}: norm or loss rose from step {began} on, before it failed.",)
RATE_WHILE_CLIMBING = ("Lower the learning rate, {a_third}: it failed at a height that had not been tried before.",)
