"""Metric names -> roles and layers, by what `patterns` says metrics are called.

Names are matched on a normalised form (lower case, words joined by `_`), so that `train/grad_norm`, `Grad Norm`,
`gradNorm` and `grad-norm` are one name.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from functools import lru_cache

from gradtrend.ingest.limits import LONGEST_NAME
from gradtrend.ingest.reading import patterns
from gradtrend.model.words import Role


@dataclass(frozen=True, slots=True)
class Naming:
    """What a metric name says: its role, the layer (None for a total) and why.

    `quantity` is the name without what differs between loggers (`train/`, case, separators): two sources that log the
    same quantity agree on it. `squared` marks a norm logged as its square, `clipped` one measured after clipping,
    `priority` orders candidates for the run's one loss or learning rate (lower is better); `chosen` marks what the user
    named.
    """

    role: Role
    layer: str | None
    why: str
    quantity: str
    squared: bool = False
    clipped: bool = False
    priority: int = 0
    chosen: bool = False

    @property
    def is_beside_the_task(self) -> bool:
        """Whether it is a regularizer of the loss, which stands for the whole only where there is nothing else."""
        return self.role is Role.LOSS and self.priority >= _BESIDE_THE_TASK


SKIPPED_NORM = "gradient norm of skipped updates"  # known from a trainer's warnings alone, so only where not finite
_BESIDE_THE_TASK = 20  # from this priority on a loss is a regularizer
PART_OF_LOSS = 2  # from this priority on a loss is a part of the whole
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")
_LOOSE = re.compile(r"[\s_\-()\[\]]+")  # what joins words; names differ in nothing else but case
_CLOSES = {")": "(", "]": "["}
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)  # keeps the length, unlike str.lower


def normalise(name: str) -> str:
    """Lower case, words joined by `_`; the hierarchical separators `/`, `.` and `:` stay."""
    text = _LOOSE.sub("_", _HUMP.sub("_", name.strip()).translate(_LOWER))
    return re.sub(r"_*([/.:])_*", r"\1", text).strip("_")


def _quantity(text: str) -> str:
    """The name without the prefixes and suffixes that loggers add."""
    previous = None
    while previous != text:
        previous, text = text, patterns.TRAILING.sub("", patterns.LEADING.sub("", text))
    text = text.replace("gradients", "grad").replace("gradient", "grad").replace("learning_rate", "lr")
    return re.sub(r"[_/.:]+", "_", text)


@lru_cache(maxsize=4096)  # the runs of a folder log the same names
def name_metric(name: str) -> Naming:
    """What one metric name says on its own. `assign_roles` settles what needs the other names."""
    if len(name) > LONGEST_NAME:
        return Naming(Role.OTHER, None, f"of more than {LONGEST_NAME} characters", name)
    text = normalise(name)
    quantity = _quantity(text)
    if name == SKIPPED_NORM:
        return Naming(Role.GRAD_NORM, None, "the trainer warns of each norm that is not finite", quantity, priority=9)
    if patterns.OTHER_AXIS.search(text):
        return Naming(Role.OTHER, None, "the same metric over another axis than steps", quantity)
    if patterns.SETTING.search(text):
        return Naming(Role.OTHER, None, "a setting of the run, not measured", quantity)
    return _named_norm(name, text, quantity) or _named_otherwise(text, quantity)


def is_held_out_loss(name: str) -> bool:
    """Whether a name is that of a loss on data that is not trained on."""
    if len(name) > LONGEST_NAME:
        return False
    text = normalise(name)
    held_out = patterns.HELD_OUT.search(text) is not None
    return held_out and patterns.LOSS.search(text) is not None and patterns.LOSS_NOT.search(text) is None


def _named_norm(name: str, text: str, quantity: str) -> Naming | None:
    """What a name says that speaks of a gradient norm, else None."""
    core = patterns.CORE.search(text)
    if core is not None and not _is_look_alike(text, core):
        return _of_core(name, text, core, quantity)
    around = patterns.AROUND.search(text)
    if around is None or patterns.NO_LAYER.fullmatch(around["layer"]):
        return None
    layer = _verbatim(name, text, *around.span("layer"))
    return Naming(Role.GRAD_NORM, layer, f"a gradient norm of the layer {layer}", quantity)


def _is_look_alike(text: str, core: re.Match[str]) -> bool:
    """Whether the words beside the core make it something else than the gradient norm of the training."""
    before, after = text[: core.start()], text[core.end() :]
    if patterns.BEFORE_NOT.search(before) or patterns.AFTER_NOT.search(after):
        return True
    if patterns.GLOBAL_NORM.match(core.group()) and (
        patterns.OTHERS_BEFORE.search(before) or patterns.OTHERS_AFTER.match(after)
    ):
        return True
    return patterns.HELD_OUT.search(before) is not None and not text.startswith("ema")


def _of_core(name: str, text: str, core: re.Match[str], quantity: str) -> Naming:
    """What the words beside the core say of the gradient norm."""
    before, after = text[: core.start()].strip("_/.:"), text[core.end() :]
    squared = any(patterns.SQUARED.search(part) for part in (before, core.group())) or bool(
        patterns.SQUARED.match(after, 1)
    )
    clipped = bool(patterns.CLIPPED.search(before) or patterns.CLIPPED.search(after))
    if patterns.STATISTIC_AFTER.match(after):
        return Naming(Role.GRAD_NORM, None, "a statistic of the gradient norm", quantity, squared, clipped, priority=5)
    rest = patterns.CLIPPED.sub("", after)
    rest = patterns.SQUARED.sub("", rest) if squared else rest
    layer = _layer_beside(name, text, core, patterns.WHOLE_AFTER.sub("", patterns.TOTAL_AFTER.sub("", rest)))
    why = "names a gradient norm" if layer is None else f"a gradient norm of the layer {layer}"
    return Naming(Role.GRAD_NORM, layer, why, quantity, squared, clipped)


def _layer_beside(name: str, text: str, core: re.Match[str], rest: str) -> str | None:
    """The layer after the core (`rest` is what may be one there) or before it; None for a norm of the whole."""
    rest = rest.strip("_/.:")
    if rest:
        start = core.end() + text[core.end() :].rfind(rest)
        return None if patterns.PARTS.match(rest) else _verbatim(name, text, start, start + len(rest))
    before = text[: core.start()].rstrip("_/.:")
    owner = _without_leading(before.lstrip("_/.:"))
    if _is_part(owner) or patterns.OF_LEARNER.search(text):
        return None
    return _verbatim(name, text, len(before) - len(owner), core.start())


def _is_part(owner: str) -> bool:
    """Whether what stands before a core names a part that is trained on its own, or nothing that could be a layer."""
    if patterns.PARTS.match(re.split(r"[/.:]", owner)[-1]):
        return True
    inner = "/".join(word for word in owner.split("/") if not patterns.PARTS.match(word))
    return patterns.LAYER_WORD.search(inner) is None


def _named_otherwise(text: str, quantity: str) -> Naming:
    """What a name says that does not speak of a gradient norm outright."""
    plain = _without_leading(text)
    if patterns.LOSS_SCALE.search(plain) and not patterns.LR.search(text):
        return Naming(Role.LOSS_SCALE, None, "names a loss scale", quantity)
    if quantity in patterns.WEAK_NORMS:
        return Naming(Role.GRAD_NORM, None, patterns.WEAK_NORMS[quantity], quantity, priority=9)
    if patterns.PARAM_NORM.search(text):
        return Naming(Role.PARAM_NORM, None, "names a norm of the parameters", quantity)
    held_out = patterns.HELD_OUT.search(text) is not None
    if patterns.LOSS.search(plain) and not patterns.LOSS_NOT.search(text):
        if held_out:
            return Naming(Role.OTHER, None, "a loss on held-out data, not the training loss", quantity)
        return Naming(Role.LOSS, None, "names a loss", quantity, priority=_loss_priority(quantity))
    if patterns.LR.search(text) and not patterns.LR_NOT.search(text) and not held_out:
        return Naming(Role.LR, None, "names a learning rate", quantity, priority=len(quantity))
    if "grad" in text and "norm" in text:
        return Naming(Role.OTHER, None, "a limit, ratio or count beside a gradient norm, not the norm itself", quantity)
    return Naming(Role.OTHER, None, "its name says neither gradient norm, loss nor learning rate", quantity)


def _verbatim(name: str, text: str, start: int, end: int) -> str:
    """The piece of `name` that became `text[start:end]` when it was normalised."""
    kept = [i for i, char in enumerate(name) if not _LOOSE.match(char)]
    skip, take = (len(_LOOSE.sub("", piece)) for piece in (text[:start], text[start:end].strip("_/.:")))
    first, last = kept[skip], kept[skip + take - 1] + 1
    if name[last : last + 1] in _CLOSES and _CLOSES[name[last]] in name[first:last]:
        last += 1
    return name[first:last]


def _without_leading(text: str) -> str:
    previous = None
    while previous != text:
        previous, text = text, patterns.LEADING.sub("", text + "/").rstrip("/")
    return text


def _loss_priority(quantity: str) -> int:
    """0 for the training loss itself, more for a loss that is only a part of it."""
    if quantity in patterns.THE_LOSS:
        return 0
    if quantity in patterns.USUAL_LOSS:
        return 1
    return PART_OF_LOSS + quantity.count("_") + (_BESIDE_THE_TASK if patterns.REGULARIZER.search(quantity) else 0)
