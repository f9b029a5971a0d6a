"""Names of precisions: ours, and what is made of those that frameworks write."""

from __future__ import annotations

# How a step can be computed. "float32" is no autocast (the parameters' own type); "-scaled" is with loss scaling;
# "-true" has the parameters themselves in that type.
PRECISIONS = (
    "float32", "bfloat16", "float16", "float16-scaled", "float64", "float32-tf32", "bfloat16-true", "float16-true",
)  # fmt: skip


# What frameworks write -> ours: Lightning and LightlyTrain ("16-mixed"), Hugging Face ("fp16"), torch
# ("torch.float16"). In all of them float16 training scales the loss.
_NAMES = {
    "32-true": "float32", "32": "float32", "fp32": "float32", "float32": "float32", "no": "float32",
    "16-mixed": "float16-scaled", "16": "float16-scaled", "fp16": "float16-scaled", "float16": "float16-scaled",
    "bf16-mixed": "bfloat16", "bf16": "bfloat16", "bfloat16": "bfloat16",
    "16-true": "float16-true", "bf16-true": "bfloat16-true",
    "64-true": "float64", "64": "float64", "fp64": "float64", "float64": "float64", "double": "float64",
    "tf32": "float32-tf32",
}  # fmt: skip


def precision_of_setting(text: str | None) -> str | None:
    """One of `PRECISIONS` for what a run's settings say ("16-mixed", "bf16", "torch.float16" ...), else None."""
    if text is None:
        return None
    return _NAMES.get(text.strip().lower().removeprefix("torch."))


def is_float16(text: str) -> bool:
    """Whether a precision is float16, as Lightning ("16-mixed"), Transformers ("fp16") and torch write it.

    Takes more than `precision_of_setting` ("half", "amp_fp16"): advice may rest on a name that looks like float16, the
    precision that a step is replayed in only on one that is known.
    """
    name = text.lower()
    return ("16" in name or "half" in name) and "bf16" not in name and "bfloat16" not in name
