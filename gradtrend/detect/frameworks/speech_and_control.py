"""Speech, simulated control and robots: frameworks and their options."""

from __future__ import annotations

from collections.abc import Mapping

from gradtrend.detect.frameworks.framework import Framework, framework

SPEECH_AND_CONTROL: Mapping[str, Framework] = {
    "espnet": framework(
        "ESPnet",
        "speech",
        lower_lr="optim_conf.lr",
        warm_up_longer="scheduler_conf.warmup_steps",
        clip_gradients="grad_clip",
        raise_batch="accum_grad",
        stabler_precision="use_amp: false",
    ),
    "wenet": framework(
        "WeNet",
        "speech",
        lower_lr="optim_conf.lr",
        warm_up_longer="scheduler_conf.warmup_steps",
        clip_gradients="grad_clip",
        raise_batch="accum_grad",
    ),
    "icefall": framework(
        "icefall", "speech", lower_lr="--base-lr", stabler_precision="--use-fp16 0", raise_batch="--max-duration"
    ),
    "funasr": framework("FunASR", "speech", lower_lr="optim_conf.lr", clip_gradients="train_conf.grad_clip"),
    "speechbrain": framework(
        "SpeechBrain", "speech", lower_lr="lr", clip_gradients="max_grad_norm", stabler_precision="precision: fp32"
    ),
    "coqui": framework(
        "Coqui TTS", "speech", lower_lr="lr", clip_gradients="grad_clip", stabler_precision="mixed_precision=False"
    ),
    "rsl-rl": framework(
        "rsl_rl", "control", lower_lr="algorithm.learning_rate", clip_gradients="algorithm.max_grad_norm"
    ),
    "stable-baselines3": framework(
        "Stable-Baselines3",
        "control",
        lower_lr="learning_rate",
        clip_gradients="max_grad_norm",
        check_data="VecCheckNan",
    ),
    "rllib": framework("RLlib", "control", lower_lr="lr", clip_gradients="grad_clip"),
    "rl-games": framework(
        "rl_games", "control", lower_lr="learning_rate", clip_gradients="grad_norm with truncate_grads"
    ),
    "lerobot": framework(
        "LeRobot", lower_lr="--optimizer.lr", clip_gradients="--optimizer.grad_clip_norm", log_more_often="--log_freq"
    ),
}
