"""What is known of a framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# transformer: trains language models by the Hugging Face Trainer. pretraining: Megatron and its like. old: from before
# mixed precision. detection, speech, translation, control (simulated robots and games), self-supervised, diffusion:
# what for.
KINDS = frozenset(
    {
        "transformer",
        "pretraining",
        "old",
        "detection",
        "speech",
        "translation",
        "control",
        "self-supervised",
        "diffusion",
    }
)


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework. `kinds` are words of `KINDS`; `options` say by id of an action what does it there, as the
    framework's documentation has it.
    """

    title: str
    kinds: frozenset[str] = frozenset()
    options: Mapping[str, str] = field(default_factory=dict)


def framework(title: str, kinds: str = "", **options: str) -> Framework:
    """A framework with the options by action, `_` in the place of `-`."""
    return Framework(title, frozenset(kinds.split()), {name.replace("_", "-"): text for name, text in options.items()})
