"""What metrics are called: the patterns that a name is compared with, once it is normalised.

Names are matched word by word. Look-alikes (`max_grad_norm`, `grad_norm_clip`, `loss_scale`) are told apart by the
words beside the core.
"""

from __future__ import annotations

import re

# What data is called that is not trained on. Who looks for it elsewhere (folders, console text) starts from these.
HELD_OUT_WORDS = ("val", "valid", "validation", "eval", "evaluation", "test")

_EDGE = r"(?:^|(?<=[_/.:]))"
_END = r"(?=$|[_/.:])"
# grad_2.0_norm, grad_l2_norm
_ORDER = r"(?:l?_?[12](?:\.0)?|inf|global|total|mean|avg|average|overall|model|all|sq|squared?)"
_GRAD = r"(?:grads?|gradients?)"
CORE = re.compile(
    _EDGE
    + r"(?:"
    + rf"(?:l2_)?{_GRAD}(?:[_/.]?{_ORDER})*[_/.]?(?:l2_?)?(?:norms?|l2)"
    + rf"|(?:global_|total_)?(?:l2_)?norms?[_/.](?:of_)?(?:the_)?{_GRAD}"
    + rf"|{_GRAD}[_/.](?:l2|magnitude|mag)"
    + rf"|(?:{_GRAD}_)?g_?norms?|gn|grdn"
    + r"|(?:global|total)_(?:l2_)?norm"
    + r")"
    + _END
)
# `gradients/fc1.weight/norm`: the layer stands inside.
AROUND = re.compile(rf"{_EDGE}{_GRAD}[/.](?P<layer>.+)(?:[/.]|(?<=weight)_|(?<=bias)_|(?<=\d)_)(?:l2_)?(?:norms?|l2)$")
_OF_OTHERS = r"(?:weight|param|parameter|update|moment|activation)s?"  # whose norm is not of gradients
NO_LAYER = re.compile(rf"max|clip|{_OF_OTHERS}")
# Words beside the core that make it something else: a limit, a ratio, a statistic of the norm, another quantity.
BEFORE_NOT = re.compile(
    _EDGE + r"(?:max|min|(?<!pre_)(?<!post_)(?<!before_)(?<!after_)clip(?:ping)?|threshold|thresh|target|ratio|std|var"
    r"|use|log(?:_?10)?|if|is|update|noise|percent|pct|num|count|initial|coef|penalty|snr|cos|ema_decay)_?$"
)
# A core that says only that it is of the whole, and what says beside it that it is not of gradients.
GLOBAL_NORM = re.compile(r"(?:global|total)(?!.*grad)")
OTHERS_BEFORE = re.compile(rf"{_EDGE}{_OF_OTHERS}_?$")
OTHERS_AFTER = re.compile(rf"[_/.:]{_OF_OTHERS}")
AFTER_NOT = re.compile(
    r"^[_/.:](?:clip|clipping|clip_val|clip_value|threshold|thresh|limit|ratio|scale|scaler|coef|penalty|std|var|variance"
    r"|loss|time|type|ema_decay|target|max_norm|clip_ratio|clip_coef|clip_frac|clip_fraction|exceeded|skipped"
    r"|(?:nan_|inf_|spike_)?count|per_param_norm|per_token|snr|log(?:_?10)?|spike|z_?score|delta|diff"
    r"|(?:is_?|has_?|any_)(?:nan|inf)|nan|(?:is_|all_)?(?:non_?)?finite|overflow)s?$"
)
# After the core: words for the whole model. Only the plain ones can stand before a layer (`grad_norm/total/0_weight`).
TOTAL_AFTER = re.compile(r"^[_/.:](?:total|all|global|overall)(?=$|[/:])")
WHOLE_AFTER = re.compile(
    r"^(?:[_/.:](?:total|all|global|overall|norm|l2|inf|model|sum|mean|avg|average|step|epoch|train|raw|unclipped"
    r"|pre_?clip(?:ping)?|before(?:_?clip(?:ping)?)?|unscaled|all_params|full|val|value))+$"
)
# A statistic over steps of the norm: used only where the norm itself is not logged.
STATISTIC_AFTER = re.compile(r"^[_/.:](?:max|min|median|ema|smooth|smoothed|running|running_avg|running_mean|p\d+)$")
CLIPPED = re.compile(_EDGE + r"(?:clipped|(?:post|after)_?clip(?:ping)?)" + _END + r"|^[_/.:]after$")
SQUARED = re.compile(_EDGE + r"(?:sq|square|squared|sqr)" + _END)
# Parts of a model that are trained with their own optimiser: each norm is a total of its own, not a layer.
PARTS = re.compile(
    r"^(?:agent|actor|critic|policy|value|vf|pi|q|qf\d?|q\d|generator|discriminator|gen|disc|netg|netd|g|d|d_\w|g_\w|world_model"
    r"|student|teacher|reward|alpha|encoder_opt|[pv]|online|main|aux|vae|gan"
    r"|(?:rank|agent|policy|actor|critic|generator|discriminator|learner|worker)_?\d+)$"
)
# RLlib: `info/learner/red_0/learner_stats/grad_gnorm`, `learners/p1/gradients_default_optimizer_global_norm`. Each
# policy is trained on its own, whatever it is called.
OF_LEARNER = re.compile(_EDGE + r"(?:(?:info/learner|learners)/[^/]+/|learner_stats/)")
# What a row repeats of how the run was set up: `config/lr` of Ray Tune is no learning rate of that step.
SETTING = re.compile(_EDGE + r"(?:config|hparams?|hyper_?params?|hyperparameters)[/.]")
# `ema` stands for averaged weights, which are evaluated and not trained; `dev` is sure only as a whole word of a name.
HELD_OUT = re.compile(rf"{_EDGE}(?:{'|'.join((*HELD_OUT_WORDS, 'dev', 'holdout', 'ema'))}){_END}")
LOSS = re.compile(
    r"(?:^|[_/.:])(?:\w*loss(?:es)?|loss(?:v|pi|q\d?)|nll|cross_?entropy|xent|elbo|mse|bce)(?=$|[_/.:])"
    r"|^(?:(?:train(?:ing)?|current|cur|avg|average|mean|total|batch)_?)?(?:cost|objective)$"
)
# Terms beside the task itself: they say least of how training goes.
REGULARIZER = re.compile(
    r"(?:^|_)(?:entropy|ent|kl|aux|auxiliary|reg|regularization|z|commit|commitment|balance|penalty)(?:_|$)"
)
LOSS_NOT = re.compile(
    r"loss_?(?:scale|scaler|scaling|weight|coef|lambda|fn|mask|ratio|time|std|var|spike|delta|per_token_count|count|filter|is_|has_|nonfinite|nan|inf|finite)"
    r"|(?:num|count|time|best|min|max|delta|lossless|lr_|gloss|floss)_?\w*loss|loss_z_?score|lossless|loss_?mult"
)
LOSS_SCALE = re.compile(
    _EDGE + r"(?:loss[_/]?scale|loss_?scaling|loss_?scaler|grad_?scale|grad_?scaler|scaler|amp_?scale|amp/scale"
    r"|scaler/scale|fp16_?scale|scaler?_?scale)(?:[_/.](?:scale|value))?$|^scale$"
)
LR = re.compile(
    _EDGE + r"(?:lr|learning_?rates?|lrs?|base_lr|current_lr|lr_?\d+|lr_(?:abs|now|main))(?=$|[_/.:\-\d])|^lr-"
)
LR_NOT = re.compile(
    r"lr_?(?:scale|mult|factor|ratio|decay|warmup|warm_up|schedule|gamma|end|min|max|reduction|scheduler)|loss|acc|step"
    r"|(?:min|max|peak|init|initial|target|end|final)_(?:lr|learning_?rate)|(?<!no)(?<!params)_(?:momentum|weight_decay)$"
)
PARAM_NORM = re.compile(
    _EDGE + r"(?:(?:params?|parameters?|weights?|model)[_/.](?:l2_)?(?:global_)?norms?"
    r"|(?:l2_)?norms?[_/.](?:params?|weights?|parameters?)|pnorm|wnorm)" + _END
)
LEADING = re.compile(
    r"^(?:ray/tune|train|training|trainer|metrics?|optim|optimizer|debug|stats|scalars?|log|perf)[_/.:]"
)
TRAILING = re.compile(r"[_/.:](?:train|training|step|nats?|bits?)$")  # the last two are units: `Loss [nats]`
LAYER_WORD = re.compile(r"\d|(?:^|[_/.:])(?:weight|bias|layers?|blocks?)(?:$|[_/.:])")
OTHER_AXIS = re.compile(r"_vs_\w+$")  # Megatron writes each metric a second time, over samples

# Names that mean the gradient norm where nothing else does.
WEAK_NORMS = {
    "norm": "a bare `norm` beside a loss is the gradient norm",
    "grad": "a bare `grad` beside a loss is the gradient norm",
    "gparam": "OpenNMT's and seq2seq-attn's |GParam|, beside |Param|",
    "grad_param_norm": "the gradient norm over that of the parameters: its shape is the gradient's",
}
# What the one loss of a run is called, and, where that is missing, what may stand for it.
THE_LOSS = frozenset({
    "loss", "train_loss", "loss_train", "training_loss", "total_loss", "loss_total", "loss_train_total",
})  # fmt: skip
USUAL_LOSS = frozenset({
    "lm_loss", "nll", "cost", "current_cost", "train_cost", "total_cost", "loss_avg", "loss_mean", "avg_loss",
    "mean_loss", "batch_loss", "running_loss", "ce_loss",
    "cross_entropy", "cross_entropy_loss", "language_cross_entropy", "reduced_train_loss",
    "loss_metrics_global_avg_loss",
})  # fmt: skip
