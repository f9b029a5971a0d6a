"""Metric names -> roles and layers. All knowledge of what metrics are called stands here.

Names are matched word by word on a normalised form (lower case, words joined by `_`), so that `train/grad_norm`,
`Grad Norm`, `gradNorm` and `grad-norm` are one name. Look-alikes (`max_grad_norm`, `grad_norm_clip`, `loss_scale`) are
told apart by the words beside the core.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

from gradtrend.model.words import Role


@dataclass(frozen=True, slots=True)
class Naming:
    """What a metric name says: its role, the layer (None for a total) and why.

    `quantity` is the name without what differs between loggers (`train/`, case, separators): two sources that log the
    same quantity agree on it. `squared` marks a norm logged as its square, `clipped` one measured after clipping,
    `priority` orders candidates for the run's one loss or learning rate (lower is better).
    """

    role: Role
    layer: str | None
    why: str
    quantity: str
    squared: bool = False
    clipped: bool = False
    priority: int = 0


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")
_LOOSE = re.compile(r"[\s_\-()\[\]]+")  # what joins words; names differ in nothing else but case
_CLOSES = {")": "(", "]": "["}
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)  # keeps the length, unlike str.lower
_EDGE = r"(?:^|(?<=[_/.:]))"
_END = r"(?=$|[_/.:])"
# grad_2.0_norm, grad_l2_norm
_ORDER = r"(?:l?_?[12](?:\.0)?|inf|global|total|mean|avg|average|overall|model|all|sq|squared?)"
_GRAD = r"(?:grads?|gradients?)"
_CORE = re.compile(
    _EDGE
    + r"(?:"
    + rf"(?:l2_)?{_GRAD}(?:[_/.]?{_ORDER})*[_/.]?(?:l2_?)?(?:norms?|l2)"
    + rf"|(?:global_|total_)?(?:l2_)?norms?[_/.](?:of_)?(?:the_)?{_GRAD}"
    + rf"|{_GRAD}[_/.](?:l2|magnitude|mag)"
    + r"|g_?norms?|gn"
    + r"|(?:global|total)_(?:l2_)?norm"
    + r")"
    + _END
)
# `gradients/fc1.weight/norm`: the layer stands inside.
_AROUND = re.compile(rf"{_EDGE}{_GRAD}[/.](?P<layer>.+)(?:[/.]|(?<=weight)_|(?<=bias)_|(?<=\d)_)(?:l2_)?(?:norms?|l2)$")
# Words beside the core that make it something else: a limit, a ratio, a statistic of the norm, another quantity.
_BEFORE_NOT = re.compile(
    _EDGE + r"(?:max|min|(?<!pre_)(?<!post_)(?<!before_)(?<!after_)clip(?:ping)?|threshold|thresh|target|ratio|std|var"
    r"|use|log(?:_?10)?|if|is|update|noise|percent|pct|num|count|initial|coef|penalty|snr|cos|ema_decay)_?$"
)
_OF_OTHERS = r"(?:weight|param|parameter|update|moment|activation)s?"  # whose `global_norm` is not of gradients
_AFTER_NOT = re.compile(
    r"^[_/.:](?:clip|clipping|clip_val|clip_value|threshold|thresh|limit|ratio|scale|scaler|coef|penalty|std|var|variance"
    r"|loss|time|type|ema_decay|target|max_norm|clip_ratio|clip_coef|clip_frac|clip_fraction|exceeded|skipped"
    r"|(?:nan_|inf_|spike_)?count|per_param_norm|per_token|snr|log(?:_?10)?|spike|z_?score|delta|diff"
    r"|(?:is_?|has_?|any_)(?:nan|inf)|nan|(?:is_|all_)?(?:non_?)?finite|overflow)s?$"
)
# After the core: words for the whole model. Only the plain ones can stand before a layer (`grad_norm/total/0_weight`).
_TOTAL_AFTER = re.compile(r"^[_/.:](?:total|all|global|overall)(?=$|[/:])")
_WHOLE_AFTER = re.compile(
    r"^(?:[_/.:](?:total|all|global|overall|norm|l2|inf|model|sum|mean|avg|average|step|epoch|train|raw|unclipped"
    r"|pre_?clip(?:ping)?|before(?:_?clip(?:ping)?)?|unscaled|all_params|full|val|value))+$"
)
# A statistic over steps of the norm: used only where the norm itself is not logged.
_STATISTIC_AFTER = re.compile(r"^[_/.:](?:max|min|median|ema|smooth|smoothed|running|running_avg|running_mean|p\d+)$")
_CLIPPED = re.compile(_EDGE + r"(?:clipped|(?:post|after)_?clip(?:ping)?)" + _END + r"|^[_/.:]after$")
_SQUARED = re.compile(_EDGE + r"(?:sq|square|squared|sqr)" + _END)
# Parts of a model that are trained with their own optimiser: each norm is a total of its own, not a layer.
_PARTS = re.compile(
    r"^(?:agent|actor|critic|policy|value|vf|pi|q|qf\d?|q\d|generator|discriminator|gen|disc|netg|netd|g|d|d_\w|g_\w|world_model"
    r"|student|teacher|reward|alpha|encoder_opt|online|main|aux|vae|gan"
    r"|(?:rank|agent|policy|actor|critic|generator|discriminator|learner|worker)_?\d+)$"
)
_HELD_OUT = re.compile(_EDGE + r"(?:val|valid|validation|eval|evaluation|test|dev|holdout|ema)" + _END)
_LOSS = re.compile(
    r"(?:^|[_/.:])(?:\w*loss(?:es)?|nll|cross_?entropy|xent|elbo|mse|bce)(?=$|[_/.:])|^(?:cost|objective)$"
)
_LOSS_NOT = re.compile(
    r"loss_?(?:scale|scaler|scaling|weight|coef|lambda|fn|mask|ratio|time|std|var|spike|delta|per_token_count|count|filter|is_|has_|nonfinite|nan|inf|finite)"
    r"|(?:num|count|time|best|min|max|delta|lossless|lr_|gloss|floss)_?\w*loss|loss_z_?score|lossless|loss_?mult"
)
_LOSS_SCALE = re.compile(
    _EDGE + r"(?:loss[_/]?scale|loss_?scaling|loss_?scaler|grad_?scale|grad_?scaler|scaler|amp_?scale|amp/scale"
    r"|scaler/scale|fp16_?scale|scaler?_?scale)(?:[_/.](?:scale|value))?$|^scale$"
)
_LR = re.compile(
    _EDGE + r"(?:lr|learning_?rates?|lrs?|base_lr|current_lr|lr_?\d+|lr_(?:abs|now|main))(?=$|[_/.:\-\d])|^lr-"
)
_LR_NOT = re.compile(
    r"lr_?(?:scale|mult|factor|ratio|decay|warmup|warm_up|schedule|gamma|end|min|max|reduction|scheduler)|loss|acc|step"
    r"|(?:min|max|peak|init|initial|target|end|final)_(?:lr|learning_?rate)|(?<!no)(?<!params)_(?:momentum|weight_decay)$"
)
_PARAM_NORM = re.compile(
    _EDGE + r"(?:(?:params?|parameters?|weights?|model)[_/.](?:l2_)?(?:global_)?norms?"
    r"|(?:l2_)?norms?[_/.](?:params?|weights?|parameters?)|pnorm|wnorm)" + _END
)
_LEADING = re.compile(r"^(?:train|training|trainer|metrics?|optim|optimizer|debug|stats|scalars?|log|perf)[_/.:]")
_TRAILING = re.compile(r"[_/.:](?:train|training|step)$")
_LAYER_WORD = re.compile(r"\d|(?:^|[_/.:])(?:weight|bias|layers?|blocks?)(?:$|[_/.:])")
_OTHER_AXIS = re.compile(r"_vs_\w+$")  # Megatron writes each metric a second time, over samples

PART_OF_LOSS = 2  # from this priority on a loss is a part of the whole
# Names that mean the gradient norm where nothing else does.
_WEAK_NORMS = {
    "norm": "a bare `norm` beside a loss is the gradient norm",
    "grad": "a bare `grad` beside a loss is the gradient norm",
    "grad_param_norm": "the gradient norm over that of the parameters: its shape is the gradient's",
}


def normalise(name: str) -> str:
    """Lower case, words joined by `_`; the hierarchical separators `/`, `.` and `:` stay."""
    text = _LOOSE.sub("_", _HUMP.sub("_", name.strip()).translate(_LOWER))
    return re.sub(r"_*([/.:])_*", r"\1", text).strip("_")


def _quantity(text: str) -> str:
    """The name without the prefixes and suffixes that loggers add."""
    previous = None
    while previous != text:
        previous, text = text, _TRAILING.sub("", _LEADING.sub("", text))
    text = text.replace("gradients", "grad").replace("gradient", "grad").replace("learning_rate", "lr")
    return re.sub(r"[_/.:]+", "_", text)


def name_metric(name: str) -> Naming:
    """What one metric name says on its own. `assign_roles` settles what needs the other names."""
    text = normalise(name)
    quantity = _quantity(text)
    plain = _without_leading(text)
    if _OTHER_AXIS.search(text):
        return Naming(Role.OTHER, None, "the same metric over another axis than steps", quantity)
    core = _find_core(text)
    if core is not None:
        return _name_gradient(name, text, core, quantity)
    around = _AROUND.search(text)
    if around is not None and not re.fullmatch(rf"(?:max|clip|{_OF_OTHERS})", around["layer"]):
        layer = _verbatim(name, text, *around.span("layer"))
        return Naming(Role.GRAD_NORM, layer, f"a gradient norm of the layer {layer}", quantity)
    if _LOSS_SCALE.search(plain) and not _LR.search(text):
        return Naming(Role.LOSS_SCALE, None, "names a loss scale", quantity)
    if quantity in _WEAK_NORMS:
        return Naming(Role.GRAD_NORM, None, _WEAK_NORMS[quantity], quantity, priority=9)
    if _PARAM_NORM.search(text):
        return Naming(Role.PARAM_NORM, None, "names a norm of the parameters", quantity)
    if _LOSS.search(plain) and not _LOSS_NOT.search(text):
        if _HELD_OUT.search(text):
            return Naming(Role.OTHER, None, "a loss on held-out data, not the training loss", quantity)
        return Naming(Role.LOSS, None, "names a loss", quantity, priority=_loss_priority(text))
    if _LR.search(text) and not _LR_NOT.search(text) and not _HELD_OUT.search(text):
        return Naming(Role.LR, None, "names a learning rate", quantity, priority=len(quantity))
    if "grad" in text and "norm" in text:
        return Naming(Role.OTHER, None, "a limit, ratio or count beside a gradient norm, not the norm itself", quantity)
    return Naming(Role.OTHER, None, "its name says neither gradient norm, loss nor learning rate", quantity)


def _find_core(text: str) -> re.Match[str] | None:
    """The part of the name that says "gradient norm", or None for look-alikes."""
    for match in _CORE.finditer(text):
        if _BEFORE_NOT.search(text[: match.start()]) or _AFTER_NOT.search(text[match.end() :]):
            return None
        if re.match(r"global|total", match.group()) and "grad" not in match.group():
            others = re.search(rf"{_EDGE}{_OF_OTHERS}_?$", text[: match.start()])
            if others or re.match(rf"[_/.:]{_OF_OTHERS}", text[match.end() :]):
                return None
        if _HELD_OUT.search(text[: match.start()]) and not text.startswith("ema"):
            return None
        return match
    return None


def _name_gradient(name: str, text: str, core: re.Match[str], quantity: str) -> Naming:
    before, after = text[: core.start()].strip("_/.:"), text[core.end() :]
    squared = any(_SQUARED.search(part) for part in (before, core.group())) or bool(_SQUARED.match(after, 1))
    clipped = bool(_CLIPPED.search(before) or _CLIPPED.search(after))
    if _STATISTIC_AFTER.match(after):
        return Naming(Role.GRAD_NORM, None, "a statistic of the gradient norm", quantity, squared, clipped, priority=5)
    rest = _CLIPPED.sub("", after)
    rest = _SQUARED.sub("", rest) if squared else rest
    rest = _WHOLE_AFTER.sub("", _TOTAL_AFTER.sub("", rest)).strip("_/.:")
    owner = _without_leading(before)
    layer: str | None = None
    if rest and not _PARTS.match(rest):
        start = core.end() + after.rfind(rest)
        layer = _verbatim(name, text, start, start + len(rest))
    elif not rest and _LAYER_WORD.search(owner) and not _PARTS.match(re.split(r"[/.:]", owner)[-1]):
        layer = _verbatim(name, text, len(text[: core.start()].rstrip("_/.:")) - len(owner), core.start())
    why = "names a gradient norm" if layer is None else f"a gradient norm of the layer {layer}"
    return Naming(Role.GRAD_NORM, layer, why, quantity, squared, clipped)


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
        previous, text = text, _LEADING.sub("", text + "/").rstrip("/")
    return text


def _loss_priority(text: str) -> int:
    """0 for the training loss itself, more for a loss that is only a part of it."""
    quantity = _quantity(text)
    if quantity in {
        "loss",
        "train_loss",
        "loss_train",
        "training_loss",
        "total_loss",
        "loss_total",
        "loss_train_total",
    }:
        return 0
    if quantity in {
        "lm_loss",
        "nll",
        "cost",
        "loss_avg",
        "loss_mean",
        "avg_loss",
        "mean_loss",
        "batch_loss",
        "running_loss",
        "ce_loss",
        "cross_entropy",
        "cross_entropy_loss",
        "language_cross_entropy",
        "reduced_train_loss",
        "loss_metrics_global_avg_loss",
    }:
        return 1
    return PART_OF_LOSS + quantity.count("_")
