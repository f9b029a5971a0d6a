"""Language models and translation: frameworks and their options."""

from __future__ import annotations

from collections.abc import Mapping

from gradtrend.detect.frameworks.framework import Framework, framework

_HF = {
    "lower_lr": "learning_rate=...",
    "raise_lr": "learning_rate=...",
    "warm_up_longer": "warmup_steps=...",
    "clip_gradients": "max_grad_norm=1.0",
    "clip_lower": "max_grad_norm=...",
    "stabler_precision": "bf16=True",
    "resume_earlier": 'resume_from_checkpoint="..."',
    "raise_batch": "gradient_accumulation_steps=...",
    "log_more_often": "logging_steps=1",
    "regularize_weights": "weight_decay=...",
    "check_loss_scale": "fp16=True scales, bf16=True does not",
    "log_loss": "logging_nan_inf_filter=False",
}
_MEGATRON = {
    "lower_lr": "--lr",
    "warm_up_longer": "--lr-warmup-iters",
    "clip_gradients": "--clip-grad 1.0",
    "clip_lower": "--clip-grad",
    "stabler_precision": "--bf16",
    "resume_earlier": "--load with --ckpt-step",
    "raise_batch": "--global-batch-size",
    "check_loss_scale": "--initial-loss-scale, --min-loss-scale",
    "log_more_often": "--log-interval 1",
}

LANGUAGE: Mapping[str, Framework] = {
    "transformers": framework("Hugging Face Trainer", "transformer", **_HF),
    "trl": framework("TRL", "transformer", **_HF, check_reward="reward_funcs, num_generations, temperature"),
    "unsloth": framework("Unsloth", "transformer", **_HF),
    "llama-factory": framework("LLaMA-Factory", "transformer", **_HF),
    "axolotl": framework("axolotl", "transformer", **_HF),
    "ms-swift": framework("ms-swift", "transformer", **_HF, check_reward="reward_funcs, num_generations, temperature"),
    "verl": framework(
        "verl",
        lower_lr="actor_rollout_ref.actor.optim.lr",
        clip_gradients="actor_rollout_ref.actor.grad_clip",
        check_loss_term="actor_rollout_ref.actor.kl_loss_type",
        check_reward="the reward function, rollout.n, the response length",
    ),
    "openrlhf": framework("OpenRLHF", lower_lr="--actor_learning_rate", clip_gradients="--max_norm"),
    "nemo": framework(
        "NeMo",
        "pretraining",
        lower_lr="model.optim.lr",
        warm_up_longer="model.optim.sched.warmup_steps",
        clip_gradients="trainer.gradient_clip_val=1.0",
        clip_lower="trainer.gradient_clip_val",
        stabler_precision="trainer.precision=bf16",
    ),
    "megatron": framework("Megatron", "pretraining", **_MEGATRON),
    "internlm": framework(
        "InternLM", "pretraining", lower_lr="adam.lr", clip_gradients="hybrid_zero_optimizer.clip_grad_norm"
    ),
    "colossalai": framework("ColossalAI", "pretraining", lower_lr="lr", clip_gradients="grad_clip"),
    "torchtitan": framework(
        "torchtitan",
        "pretraining",
        lower_lr="--optimizer.lr",
        warm_up_longer="--lr_scheduler.warmup_steps",
        clip_gradients="--training.max_norm",
    ),
    "litgpt": framework(
        "LitGPT", "pretraining", lower_lr="--optimizer.init_args.lr", clip_gradients="--train.max_norm"
    ),
    "nanogpt": framework(
        "nanoGPT",
        "pretraining",
        lower_lr="learning_rate",
        warm_up_longer="warmup_iters",
        clip_gradients="grad_clip=1.0",
        stabler_precision="dtype='bfloat16'",
    ),
    "deepspeed": framework(
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
    "fairseq": framework(
        "fairseq",
        "translation",
        lower_lr="--lr",
        warm_up_longer="--warmup-updates",
        clip_gradients="--clip-norm",
        clip_lower="--clip-norm",
        raise_batch="--update-freq or --max-tokens",
        stabler_precision="--bf16",
        check_loss_scale="--min-loss-scale, --fp16-scale-window",
        resume_earlier="--restore-file",
    ),
    "opennmt": framework(
        "OpenNMT",
        "translation",
        lower_lr="-learning_rate",
        warm_up_longer="-warmup_steps",
        clip_gradients="-max_grad_norm",
        raise_batch="-accum_count",
    ),
    "marian": framework(
        "Marian",
        "translation",
        lower_lr="--learn-rate",
        warm_up_longer="--lr-warmup",
        clip_gradients="--clip-norm",
        raise_batch="--optimizer-delay",
    ),
    "seq2seq-attn": framework(
        "seq2seq-attn", "translation old", lower_lr="-learning_rate", clip_lower="-max_grad_norm"
    ),
}
