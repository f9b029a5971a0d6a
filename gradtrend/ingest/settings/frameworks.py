"""Which framework wrote a log, from what its lines and metric names look like."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

# What a line of each framework's own log holds, in lower case; all words of one group must be there. The particular
# come before the general: what is built on another prints the other's lines too.
_WORDS: tuple[tuple[str, tuple[bytes, ...]], ...] = (
    ("lightly-train", (b"lightly_train",)),
    ("lightly-train", (b"lightlytrain",)),
    ("llama-factory", (b"llamafactory",)),
    ("llama-factory", (b"llama-factory",)),
    ("axolotl", (b"axolotl",)),
    ("unsloth", (b"unsloth",)),
    ("ms-swift", (b"info:swift",)),
    ("ms-swift", (b"ms-swift",)),
    ("ms-swift", (b"global_step/max_steps",)),
    ("verl", (b"actor/pg_loss",)),
    ("openrlhf", (b"openrlhf",)),
    ("lerobot", (b"smpl:", b"ep:", b"grdn:")),
    ("nemo", (b"reduced_train_loss",)),
    ("nemo", (b"[nemo ",)),
    ("internlm", (b"tgs (tokens/gpu/second)",)),
    ("colossalai", (b"colossalai",)),
    ("megatron", (b"consumed samples:", b"iteration")),
    ("megatron", (b"lm loss:", b"iteration")),
    ("torchtitan", (b"torchtitan",)),
    ("detectron2", (b"d2.utils.events",)),
    ("detectron2", (b"detectron2",)),
    ("maskrcnn-benchmark", (b"maskrcnn_benchmark",)),
    ("mmdet", (b"mmdet",)),
    ("mmengine", (b"mmengine",)),
    ("mmengine", (b"mmcv",)),
    ("mmengine", (b"epoch(train)",)),
    ("paddledetection", (b"ppdet",)),
    ("paddle-v1", (b"trainerinternal.cpp",)),
    ("paddle", (b"paddle",)),
    ("paddle", (b"ppocr",)),
    ("paddle", (b"ppcls",)),
    ("tf-object-detection", (b"model_lib_v2.py",)),
    ("tf-object-detection", (b"object_detection/",)),
    ("ultralytics", (b"gpu_mem", b"box_loss")),
    ("yolov5", (b"gpu_mem", b" obj ")),
    ("yolact", (b"|| b: ", b"| c: ")),
    ("darknet", (b" avg, ", b" rate, ", b" images")),
    ("caffe", (b"solver.cpp:",)),
    ("espnet", (b"epoch:train:",)),
    ("espnet", (b"espnet",)),
    ("espnet", (b"e2e_asr",)),
    ("funasr", (b"loss_avg_rank",)),
    ("icefall", (b"tot_loss[",)),
    ("icefall", (b"tot_loss:",)),
    ("wenet", (b"debug train batch",)),
    ("wenet", (b"debug cv batch",)),
    ("speechbrain", (b"speechbrain",)),
    ("coqui", (b"global_step:", b"step:", b"| >")),
    ("fairseq", (b"num_updates", b"gnorm")),
    ("fairseq", (b"fairseq",)),
    ("fairseq", (b"train_inner",)),
    ("opennmt", (b"tok/s;", b"; acc:")),
    ("seq2seq-attn", (b"|gparam|",)),
    ("dinov2", (b"koleo_loss",)),
    ("dinov2", (b"dinov2",)),
    ("rsl-rl", (b"learning iteration", b"mean action noise std")),
    ("rsl-rl", (b"mean value_function loss",)),
    ("stable-baselines3", (b"ep_rew_mean",)),
    ("rllib", (b"episode_reward_mean",)),
    ("rl-games", (b"fps step:",)),
    ("mindspore", (b"loss is ", b"step: ", b"epoch: ")),
    ("mindspore", (b"mindspore",)),
    ("mxnet", (b"mxnet",)),
    ("chainer", (b"chainer",)),
    ("chainer", (b"main/loss", b"iteration")),
    ("dynet", (b"[dynet]",)),
    ("nanogpt", (b"mfu ", b"iter ")),
    ("litgpt", (b"litgpt",)),
    ("diffusers", (b"step_loss=",)),
    ("kohya", (b"avr_loss=",)),
    ("trl", (b"'rewards/",)),
    ("trl", (b"'logps/",)),
    ("lightning", (b"v_num=",)),
    ("lightning", (b"lightning",)),
)  # fmt: skip
# What needs more than a word to be told: a word without which the pattern need not be looked for, and the pattern.
_LINES: tuple[tuple[str, bytes, str], ...] = (
    ("marian", b"ep. ", r"ep\. \d+ ?: up\. \d+ ?:"),
    ("keras", b"eta: ", r"\d+/\d+ \[[=>.]+\]|\d+/\d+ \S+ eta:"),
    ("keras", b"keras", r"\bkeras\b"),
    ("keras", b" - loss: ", r"\d+/\d+ \[=+\] - |\d+s \d+m?s/step - "),
    ("fastai", b"epoch ", r"epoch +train[_ ]loss +valid[_ ]loss|epoch +trn_loss +val_loss"),
    ("tf1", b"info:tensorflow:", r"info:tensorflow:(?:loss|global step)"),
    ("tf1", b"global step ", r"global step \d+: loss"),
    ("tf1", b"basic_session_run_hooks", ""),
    ("timm", b"train: ", r"train: \d+ \[ *\d+/\d+ +\( *\d+%\)\]"),
    ("torchvision", b"epoch: [", r"epoch: \[\d+\] ?\[ *\d+/\d+\]"),
    ("mmengine", b"epoch [", r"epoch \[\d+\]\[\d+/\d+\]\s+lr:"),
    ("transformers", b"loss': ", r"\{'(?:train_)?loss': [^}\n]*'(?:grad_norm|learning_rate)': "),
    ("deepspeed", b"deepspeed", ""),
    ("deepspeed", b"overflow! rank", ""),
    ("tensorflow", b"tensorflow", ""),
)
# How names of metrics end that are one framework's own: any one of them tells.
_METRICS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("verl", ("actor/pg_loss", "actor/grad_norm", "actor/ppo_kl")),
    ("ms-swift", ("completions/clipped_ratio", "memory(GiB)", "train_speed(iter/s)")),
    ("trl", ("frac_reward_zero_std", "logps/chosen", "logps/rejected", "completions/mean_length", "rewards/chosen")),
    ("dinov2", ("koleo_loss",)),
    ("nemo", ("reduced_train_loss",)),
    ("megatron", ("lm loss", "lm-loss-training/lm loss", "grad-norm/grad-norm")),
    ("ultralytics", ("train/dfl_loss",)),
    ("yolov5", ("train/obj_loss",)),
    ("stable-baselines3", ("train/approx_kl", "train/clip_fraction", "train/policy_gradient_loss")),
    ("rsl-rl", ("Loss/value_function", "Policy/mean_noise_std")),
    ("rllib", ("episode_reward_mean",)),
)
# What others are built on, or use: their names say less than any other.
_GENERAL = frozenset({"transformers", "lightning", "deepspeed", "tensorflow", "torchvision", "mmengine"})


def most_particular(names: Iterable[str | None]) -> str | None:
    """Of the frameworks that several sources name, the first that is not built on by others; else the first."""
    known = [name for name in names if name is not None]
    return next((name for name in known if name not in _GENERAL), known[0] if known else None)


def framework_of_lines(text: bytes) -> str | None:
    """The framework whose lines stand in a piece of a log, given in lower case; None where none is known."""
    for name, words in _WORDS:
        if all(word in text for word in words):
            return name
    for name, word, pattern in _LINES:
        if word in text and (not pattern or re.search(pattern.encode(), text)):
            return name
    return None


def framework_of_metrics(names: Collection[str]) -> str | None:
    """The framework that logs metrics of these names, None where they could be anybody's."""
    together = "".join(f"{name}\n" for name in names)
    for framework, own in _METRICS:
        if any(f"{ending}\n" in together for ending in own):
            return framework
    keys = {name.rpartition("/")[2] for name in names}
    if {"loss", "grad_norm", "learning_rate"} <= keys and ("epoch" in keys or "train_runtime" in keys):
        return "transformers"
    return None
