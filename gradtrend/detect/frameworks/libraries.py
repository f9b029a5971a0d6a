"""Libraries on which anything is trained: frameworks and their options."""

from __future__ import annotations

from collections.abc import Mapping

from gradtrend.detect.frameworks.framework import Framework, framework

_LIGHTNING = {
    "lower_lr": "the lr of configure_optimizers",
    "clip_gradients": "Trainer(gradient_clip_val=1.0)",
    "clip_lower": "Trainer(gradient_clip_val=...)",
    "stabler_precision": 'Trainer(precision="bf16-mixed")',
    "resume_earlier": 'trainer.fit(ckpt_path="...")',
    "raise_batch": "Trainer(accumulate_grad_batches=...)",
    "log_more_often": "Trainer(log_every_n_steps=1)",
    "locate_module": "Trainer(detect_anomaly=True)",
}

LIBRARIES: Mapping[str, Framework] = {
    "lightning": framework("Lightning", **_LIGHTNING),
    "paddle": framework(
        "PaddlePaddle",
        lower_lr="Optimizer.lr",
        clip_gradients="grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0)",
        stabler_precision="paddle.amp.auto_cast(enable=False)",
    ),
    "paddle-v1": framework(
        "PaddlePaddle v1", "old", lower_lr="learning_rate in settings()", clip_gradients="gradient_clipping_threshold"
    ),
    "tf1": framework("TensorFlow 1", "old", clip_gradients="tf.clip_by_global_norm, or clip_gradient_norm of slim"),
    "tensorflow": framework("TensorFlow", clip_gradients="tf.clip_by_global_norm"),
    "keras": framework(
        "Keras",
        "old",
        lower_lr="optimizer learning_rate",
        clip_gradients="optimizer clipnorm=1.0",
        log_more_often="a callback's on_train_batch_end",
    ),
    "caffe": framework(
        "Caffe",
        "old",
        lower_lr="base_lr in the solver",
        clip_gradients="clip_gradients in the solver",
        raise_batch="iter_size in the solver",
    ),
    "chainer": framework("Chainer", "old", clip_gradients="GradientClipping hook"),
    "dynet": framework("DyNet", "old", lower_lr="trainer.learning_rate", clip_gradients="trainer.set_clip_threshold"),
    "mxnet": framework("MXNet", "old", lower_lr="learning_rate", clip_gradients="clip_gradient"),
    "fastai": framework("fastai", "old", lower_lr="lr of fit, by lr_find", clip_gradients="GradientClip callback"),
    "mindspore": framework("MindSpore", clip_gradients="ops.clip_by_global_norm", stabler_precision='amp_level="O0"'),
}
