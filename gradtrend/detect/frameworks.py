"""Frameworks: what each is called, what kind it is of, and the options by which it takes an action.

The options are those of their documentations; what is not known is said in general words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework. `kinds` are words of `KINDS`; `options` say by id of an action what does it there."""

    title: str
    kinds: frozenset[str] = frozenset()
    options: Mapping[str, str] = field(default_factory=dict)


# transformer: trains language models by the Hugging Face Trainer. pretraining: Megatron and its like. old: from before
# mixed precision. detection, speech, translation, control (simulated robots and games), self-supervised: what for.
KINDS = frozenset(
    {"transformer", "pretraining", "old", "detection", "speech", "translation", "control", "self-supervised"}
)


def _framework(title: str, kinds: str = "", **options: str) -> Framework:
    return Framework(title, frozenset(kinds.split()), {name.replace("_", "-"): text for name, text in options.items()})


_HF = {
    "lower_lr": "learning_rate=...", "raise_lr": "learning_rate=...", "warm_up_longer": "warmup_steps=...",
    "clip_gradients": "max_grad_norm=1.0", "clip_lower": "max_grad_norm=...", "stabler_precision": "bf16=True",
    "resume_earlier": 'resume_from_checkpoint="..."', "raise_batch": "gradient_accumulation_steps=...",
    "log_more_often": "logging_steps=1", "regularize_weights": "weight_decay=...",
    "check_loss_scale": "fp16=True scales, bf16=True does not", "log_loss": "logging_nan_inf_filter=False",
}  # fmt: skip
_LIGHTNING = {
    "lower_lr": "the lr of configure_optimizers", "clip_gradients": "Trainer(gradient_clip_val=1.0)",
    "clip_lower": "Trainer(gradient_clip_val=...)", "stabler_precision": 'Trainer(precision="bf16-mixed")',
    "resume_earlier": 'trainer.fit(ckpt_path="...")', "raise_batch": "Trainer(accumulate_grad_batches=...)",
    "log_more_often": "Trainer(log_every_n_steps=1)", "locate_module": "Trainer(detect_anomaly=True)",
}  # fmt: skip
_MEGATRON = {
    "lower_lr": "--lr", "warm_up_longer": "--lr-warmup-iters", "clip_gradients": "--clip-grad 1.0",
    "clip_lower": "--clip-grad", "stabler_precision": "--bf16", "resume_earlier": "--load with --ckpt-step",
    "raise_batch": "--global-batch-size",
    "check_loss_scale": "--initial-loss-scale, --min-loss-scale", "log_more_often": "--log-interval 1",
}  # fmt: skip
_MM = {
    "lower_lr": "optim_wrapper.optimizer.lr, or auto_scale_lr", "warm_up_longer": "param_scheduler LinearLR end=...",
    "clip_gradients": "optim_wrapper.clip_grad=dict(max_norm=35)", "clip_lower": "optim_wrapper.clip_grad.max_norm",
    "stabler_precision": "OptimWrapper in place of AmpOptimWrapper", "resume_earlier": "--resume",
    "log_more_often": "default_hooks.logger.interval",
}  # fmt: skip

FRAMEWORKS: Mapping[str, Framework] = {
    "lightly-train": _framework(
        "LightlyTrain",
        lower_lr='model_args={"lr": ...}',
        raise_lr='model_args={"lr": ...}',
        warm_up_longer='model_args={"lr_warmup_steps": ...}',
        clip_gradients='model_args={"gradient_clip_val": 1.0}',
        clip_lower='model_args={"gradient_clip_val": ...}',
        stabler_precision='precision="bf16-mixed" or "32-true"',
        resume_earlier="resume_interrupted=True",
        re_run_to_reproduce="resume_interrupted=True",
        check_normalization='transform_args={"normalize": ...}',
        raise_batch="batch_size=..., gradient_accumulation_steps=...",
        locate_module='debug_args={"underflow_overflow": {"enabled": True}}',
        capture_and_replay='debug_args={"nancapture": {"enabled": True}}',
        log_more_often='logger_args={"log_every_num_steps": 1}',
        regularize_weights='model_args={"weight_decay": ...}',
    ),
    "transformers": _framework("Hugging Face Trainer", "transformer", **_HF),
    "trl": _framework("TRL", "transformer", **_HF, check_reward="reward_funcs, num_generations, temperature"),
    "unsloth": _framework("Unsloth", "transformer", **_HF),
    "llama-factory": _framework("LLaMA-Factory", "transformer", **_HF),
    "axolotl": _framework("axolotl", "transformer", **_HF),
    "ms-swift": _framework("ms-swift", "transformer", **_HF, check_reward="reward_funcs, num_generations, temperature"),
    "lerobot": _framework(
        "LeRobot", lower_lr="--optimizer.lr", clip_gradients="--optimizer.grad_clip_norm", log_more_often="--log_freq"
    ),
    "verl": _framework(
        "verl",
        lower_lr="actor_rollout_ref.actor.optim.lr",
        clip_gradients="actor_rollout_ref.actor.grad_clip",
        check_loss_term="actor_rollout_ref.actor.kl_loss_type",
        check_reward="the reward function, rollout.n, the response length",
    ),
    "openrlhf": _framework("OpenRLHF", lower_lr="--actor_learning_rate", clip_gradients="--max_norm"),
    "lightning": _framework("Lightning", **_LIGHTNING),
    "nemo": _framework(
        "NeMo",
        "pretraining",
        lower_lr="model.optim.lr",
        warm_up_longer="model.optim.sched.warmup_steps",
        clip_gradients="trainer.gradient_clip_val=1.0",
        clip_lower="trainer.gradient_clip_val",
        stabler_precision="trainer.precision=bf16",
    ),
    "megatron": _framework("Megatron", "pretraining", **_MEGATRON),
    "internlm": _framework("InternLM", "pretraining", lower_lr="adam.lr", clip_gradients="hybrid_zero_optimizer.clip_grad_norm"),
    "colossalai": _framework("ColossalAI", "pretraining", lower_lr="lr", clip_gradients="grad_clip"),
    "torchtitan": _framework(
        "torchtitan", "pretraining", lower_lr="--optimizer.lr", warm_up_longer="--lr_scheduler.warmup_steps",
        clip_gradients="--training.max_norm",
    ),
    "litgpt": _framework("LitGPT", "pretraining", lower_lr="--optimizer.init_args.lr", clip_gradients="--train.max_norm"),
    "nanogpt": _framework(
        "nanoGPT", "pretraining", lower_lr="learning_rate", warm_up_longer="warmup_iters", clip_gradients="grad_clip=1.0",
        stabler_precision="dtype='bfloat16'",
    ),
    "deepspeed": _framework(
        "DeepSpeed",
        "transformer",
        lower_lr="optimizer.params.lr in the ds_config",
        warm_up_longer="scheduler.params.warmup_num_steps in the ds_config",
        clip_gradients='"gradient_clipping": 1.0 in the ds_config',
        stabler_precision='"bf16": {"enabled": true} in the ds_config',
        check_loss_scale='"initial_scale_power" and "hysteresis" under "fp16" in the ds_config',
        check_distributed='"overlap_comm": false under "zero_optimization" in the ds_config',
        raise_batch='"train_batch_size" in the ds_config',
    ),
    "detectron2": _framework(
        "detectron2",
        "detection",
        lower_lr="SOLVER.BASE_LR",
        warm_up_longer="SOLVER.WARMUP_ITERS",
        clip_gradients="SOLVER.CLIP_GRADIENTS.ENABLED True",
        raise_batch="SOLVER.IMS_PER_BATCH",
        stabler_precision="SOLVER.AMP.ENABLED False",
    ),
    "maskrcnn-benchmark": _framework(
        "maskrcnn-benchmark", "detection", lower_lr="SOLVER.BASE_LR", warm_up_longer="SOLVER.WARMUP_ITERS",
        raise_batch="SOLVER.IMS_PER_BATCH",
    ),
    "mmengine": _framework("MMEngine", "detection", **_MM),
    "ultralytics": _framework(
        "Ultralytics", "detection", lower_lr="lr0=...", warm_up_longer="warmup_epochs=...", stabler_precision="amp=False",
        raise_batch="batch=...",
    ),
    "yolov5": _framework(
        "YOLOv5", "detection", lower_lr="lr0 in the hyp file", warm_up_longer="warmup_epochs in the hyp file",
        raise_batch="--batch-size",
    ),
    "yolact": _framework("YOLACT", "detection", lower_lr="--lr", raise_batch="--batch_size"),
    "darknet": _framework(
        "Darknet", "detection old", lower_lr="learning_rate in the cfg", warm_up_longer="burn_in in the cfg",
        raise_batch="batch and subdivisions in the cfg",
    ),
    "paddledetection": _framework(
        "PaddleDetection", "detection", lower_lr="LearningRate.base_lr", warm_up_longer="LinearWarmup.steps",
        clip_gradients="OptimizerBuilder.clip_grad_by_norm",
    ),
    "paddle": _framework(
        "PaddlePaddle", lower_lr="Optimizer.lr", clip_gradients="grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0)",
        stabler_precision="paddle.amp.auto_cast(enable=False)",
    ),
    "paddle-v1": _framework(
        "PaddlePaddle v1", "old", lower_lr="learning_rate in settings()", clip_gradients="gradient_clipping_threshold",
    ),
    "tf-object-detection": _framework(
        "the TensorFlow object detection API", "detection", lower_lr="learning_rate_base in pipeline.config",
        warm_up_longer="warmup_steps in pipeline.config", clip_gradients="gradient_clipping_by_norm in pipeline.config",
    ),
    "tf1": _framework("TensorFlow 1", "old", clip_gradients="tf.clip_by_global_norm, or clip_gradient_norm of slim"),
    "tensorflow": _framework("TensorFlow", clip_gradients="tf.clip_by_global_norm"),
    "keras": _framework(
        "Keras", "old", lower_lr="optimizer learning_rate", clip_gradients="optimizer clipnorm=1.0",
        log_more_often="a callback's on_train_batch_end",
    ),
    "caffe": _framework(
        "Caffe", "old", lower_lr="base_lr in the solver", clip_gradients="clip_gradients in the solver",
        raise_batch="iter_size in the solver",
    ),
    "chainer": _framework("Chainer", "old", clip_gradients="GradientClipping hook"),
    "dynet": _framework("DyNet", "old", lower_lr="trainer.learning_rate", clip_gradients="trainer.set_clip_threshold"),
    "mxnet": _framework("MXNet", "old", lower_lr="learning_rate", clip_gradients="clip_gradient"),
    "fastai": _framework("fastai", "old", lower_lr="lr of fit, by lr_find", clip_gradients="GradientClip callback"),
    "fairseq": _framework(
        "fairseq", "translation", lower_lr="--lr", warm_up_longer="--warmup-updates", clip_gradients="--clip-norm",
        clip_lower="--clip-norm", raise_batch="--update-freq or --max-tokens", stabler_precision="--bf16",
        check_loss_scale="--min-loss-scale, --fp16-scale-window", resume_earlier="--restore-file",
    ),
    "opennmt": _framework(
        "OpenNMT", "translation", lower_lr="-learning_rate", warm_up_longer="-warmup_steps", clip_gradients="-max_grad_norm",
        raise_batch="-accum_count",
    ),
    "marian": _framework(
        "Marian", "translation", lower_lr="--learn-rate", warm_up_longer="--lr-warmup", clip_gradients="--clip-norm",
        raise_batch="--optimizer-delay", check_skip_limit="--check-gradient-nan",
    ),
    "seq2seq-attn": _framework("seq2seq-attn", "translation old", lower_lr="-learning_rate", clip_lower="-max_grad_norm"),
    "espnet": _framework(
        "ESPnet", "speech", lower_lr="optim_conf.lr", warm_up_longer="scheduler_conf.warmup_steps",
        clip_gradients="grad_clip", raise_batch="accum_grad", stabler_precision="use_amp: false",
    ),
    "wenet": _framework(
        "WeNet", "speech", lower_lr="optim_conf.lr", warm_up_longer="scheduler_conf.warmup_steps", clip_gradients="grad_clip",
        raise_batch="accum_grad",
    ),
    "icefall": _framework("icefall", "speech", lower_lr="--base-lr", stabler_precision="--use-fp16 0", raise_batch="--max-duration"),
    "funasr": _framework("FunASR", "speech", lower_lr="optim_conf.lr", clip_gradients="train_conf.grad_clip"),
    "speechbrain": _framework("SpeechBrain", "speech", lower_lr="lr", clip_gradients="max_grad_norm", stabler_precision="precision: fp32"),
    "coqui": _framework(
        "Coqui TTS", "speech", lower_lr="lr", clip_gradients="grad_clip", stabler_precision="mixed_precision=False",
    ),
    "dinov2": _framework(
        "DINOv2", "self-supervised", lower_lr="optim.base_lr", warm_up_longer="optim.warmup_epochs",
        clip_gradients="optim.clip_grad", check_loss_term="dino.koleo_loss_weight",
        raise_batch="train.batch_size_per_gpu",
    ),
    "rsl-rl": _framework(
        "rsl_rl", "control", lower_lr="algorithm.learning_rate", clip_gradients="algorithm.max_grad_norm",
    ),
    "stable-baselines3": _framework(
        "Stable-Baselines3", "control", lower_lr="learning_rate", clip_gradients="max_grad_norm", check_data="VecCheckNan",
    ),
    "rllib": _framework("RLlib", "control", lower_lr="lr", clip_gradients="grad_clip"),
    "rl-games": _framework("rl_games", "control", lower_lr="learning_rate", clip_gradients="grad_norm with truncate_grads"),
    "timm": _framework(
        "timm", lower_lr="--lr", warm_up_longer="--warmup-epochs", clip_gradients="--clip-grad 1.0", stabler_precision="--amp-dtype bfloat16",
    ),
    "torchvision": _framework("the PyTorch reference scripts", lower_lr="--lr"),
    "mindspore": _framework("MindSpore", clip_gradients="ops.clip_by_global_norm", stabler_precision='amp_level="O0"'),
    "diffusers": _framework(
        "diffusers", lower_lr="--learning_rate", warm_up_longer="--lr_warmup_steps", clip_gradients="--max_grad_norm",
        stabler_precision="--mixed_precision bf16",
    ),
    "kohya": _framework(
        "sd-scripts", lower_lr="--learning_rate", warm_up_longer="--lr_warmup_steps", clip_gradients="--max_grad_norm",
        stabler_precision="--mixed_precision bf16, --no_half_vae",
    ),
}  # fmt: skip
UNKNOWN = Framework("the framework")


def framework_of(name: str | None) -> Framework:
    """The framework of a name that the log gave away; one without options for any other."""
    return FRAMEWORKS.get(name or "", UNKNOWN)
