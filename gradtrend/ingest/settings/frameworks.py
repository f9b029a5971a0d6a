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
    ("verl", (b"actor/pg_loss", b"actor/")),
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
    ("mmengine", (b"mmengine",)),
    ("mmengine", (b"mmdet",)),
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
# What needs more than a word to be told.
_LINES: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("marian", re.compile(rb"ep\. \d+ ?: up\. \d+ ?:")),
    ("keras", re.compile(rb"\d+/\d+ \[[=>.]+\]|\d+/\d+ \xe2\x94\x81+|\bkeras\b")),
    ("fastai", re.compile(rb"epoch +train[_ ]loss +valid[_ ]loss|epoch +trn_loss +val_loss")),
    ("tf1", re.compile(rb"info:tensorflow:(?:loss|global step)|global step \d+: loss|basic_session_run_hooks")),
    ("timm", re.compile(rb"train: \d+ \[ *\d+/\d+ +\( *\d+%\)\]")),
    ("torchvision", re.compile(rb"epoch: \[\d+\] ?\[ *\d+/\d+\]")),
    ("mmengine", re.compile(rb"epoch \[\d+\]\[\d+/\d+\]\s+lr:")),
    ("transformers", re.compile(rb"\{'(?:train_)?loss': [^}\n]*'(?:grad_norm|learning_rate)': ")),
    ("deepspeed", re.compile(rb"\[deepspeed\]|deepspeed|\boverflow! rank")),
    ("tensorflow", re.compile(rb"info:tensorflow|tensorflow")),
)
# Names of metrics that are one framework's own: any one of them tells.
_METRICS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("verl", re.compile(r"actor/(?:pg_loss|grad_norm|ppo_kl)$")),
    ("ms-swift", re.compile(r"completions/clipped_ratio$|memory\(GiB\)|train_speed\(iter/s\)")),
    ("trl", re.compile(r"rewards/\w+|frac_reward_zero_std$|logps/(?:chosen|rejected)$|completions/mean_length$")),
    ("dinov2", re.compile(r"koleo_loss$")),
    ("nemo", re.compile(r"reduced_train_loss$")),
    ("megatron", re.compile(r"lm[ -]loss$|grad-norm$|loss-scale$")),
    ("ultralytics", re.compile(r"train/dfl_loss$")),
    ("yolov5", re.compile(r"train/obj_loss$")),
    ("stable-baselines3", re.compile(r"train/(?:approx_kl|clip_fraction|policy_gradient_loss)$")),
    ("rsl-rl", re.compile(r"Loss/value_function$|Policy/mean_noise_std$")),
    ("rllib", re.compile(r"(?:^|/)(?:episode_reward_mean|default_policy/)")),
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
    return next((name for name, line in _LINES if line.search(text)), None)


def framework_of_metrics(names: Collection[str]) -> str | None:
    """The framework that logs metrics of these names, None where they could be anybody's."""
    for framework, own in _METRICS:
        if any(own.search(name) for name in names):
            return framework
    keys = {name.rpartition("/")[2] for name in names}
    if {"loss", "grad_norm", "learning_rate"} <= keys and ("epoch" in keys or "train_runtime" in keys):
        return "transformers"
    return None
